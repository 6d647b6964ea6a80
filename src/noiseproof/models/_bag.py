"""A network for texts: the mean of the embeddings of their tokens, and a hidden layer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# torch 2.6 has the second alone
_is_exporting = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)


class Bag(nn.Module):
    """The sum of the embeddings of a row of token ids, of length one, ReLU, a linear classifier.

    Args:
        num_classes: the number of outputs.
        vocabulary: how many token ids there are; 0 is padding.
        width: of an embedding.
    """

    def __init__(self, num_classes: int, vocabulary: int, width: int = 64) -> None:
        super().__init__()
        self.embed = nn.EmbeddingBag(vocabulary, width, mode="sum", padding_idx=0)
        self.classes = nn.Linear(width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        # as for a row of a document-term matrix that is brought to length one
        weight = self.embed.weight
        length = (x != 0).sum(1, keepdim=True).clamp(min=1).to(weight.dtype).sqrt()
        if _is_exporting():  # other programs would loop over the rows of a bag
            total = (F.embedding(x, weight) * (x != 0).unsqueeze(2)).sum(1)
        else:
            total = self.embed(x)
        return self.classes((total / length).relu())  # type: ignore[no-any-return]
