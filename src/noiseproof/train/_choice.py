"""Which epoch's weights are the product, by the labels that were held out.

The best epoch so far is kept with the training state, on the device: a copy of its weights, and for
every held-out sample whether it was right. That is all that the choice needs, however many epochs
there are, and it goes into checkpoints with the rest.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


def clearly_better(one: Tensor, other: Tensor) -> Tensor:
    """Whether one is right more often than the other, by more than one paired standard error.

    Args:
        one: bool [N], whether each sample was predicted right.
        other: the same of other weights, on the same samples.

    Returns:
        A bool tensor of one element.

    >>> right = torch.tensor([True] * 90 + [False] * 10)
    >>> bool(clearly_better(right, right)), bool(clearly_better(right, ~right))
    (False, True)
    """
    n = len(one)
    gained, lost = (one & ~other).sum().double(), (other & ~one).sum().double()
    mean = (gained - lost) / n
    variance = (gained + lost - n * mean.square()) / max(1, n - 1)
    return (mean > 0) & (mean > (variance / n).clamp(min=0).sqrt())


class BestEpoch:
    """The weights of the epoch that was right most often on what was held out; of equals the last.

    Args:
        weights: flat, those of the start.
        buffers: of the network, by name.
        held_out: how many samples are.
    """

    def __init__(self, weights: Tensor, buffers: Mapping[str, Tensor], held_out: int) -> None:
        self.weights = weights.clone()
        self.buffers = {name: buffer.clone() for name, buffer in buffers.items()}
        self.correct = torch.zeros(held_out, dtype=torch.bool, device=weights.device)
        self.epoch = torch.zeros((), dtype=torch.int64, device=weights.device)

    def offer(
        self, epoch: Tensor, correct: Tensor, weights: Tensor, buffers: Mapping[str, Tensor]
    ) -> Tensor:
        """Keep an epoch if none was better; the one to choose if it is the last.

        That is itself, unless the best is clearly better. All of it is computed on the device, so
        that it can be captured.
        """
        better = correct.sum() >= self.correct.sum()
        kept = [self.weights, self.correct, self.epoch, *self.buffers.values()]
        new = [weights, correct, epoch, *(buffers[name] for name in self.buffers)]
        for mine, other in zip(kept, new, strict=True):
            mine.copy_(torch.where(better, other, mine))
        return torch.where(clearly_better(self.correct, correct), self.epoch, epoch)

    def state_dict(self) -> dict[str, Tensor]:
        """All that must be saved; the tensors themselves, not copies."""
        own = {"weights": self.weights, "correct": self.correct, "epoch": self.epoch}
        named = own | {f"buffer.{name}": buffer for name, buffer in self.buffers.items()}
        return {f"best.{name}": tensor for name, tensor in named.items()}
