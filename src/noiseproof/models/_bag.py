"""A network for texts: the mean of the embeddings of their tokens, and a hidden layer."""

from __future__ import annotations

from torch import Tensor, nn


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
        length = (x != 0).sum(1, keepdim=True).clamp(min=1).to(self.embed.weight.dtype).sqrt()
        return self.classes((self.embed(x) / length).relu())  # type: ignore[no-any-return]
