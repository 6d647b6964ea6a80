"""Mixup (Zhang et al., ICLR 2018): batches of pairs of samples, mixed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .._errors import UsageError
from .._seeds import derive
from ._objective import Objective


@dataclass(frozen=True)
class Mixed:
    """How the samples of one batch are mixed.

    Attributes:
        partner: int64 [B], the row of the batch that each row is mixed with.
        weight: of the row itself, a tensor of one element from 0.5 to 1; its partner has the rest.
    """

    partner: Tensor
    weight: Tensor

    def inputs(self, x: Tensor) -> Tensor:
        """Normalized inputs [B, ...], mixed; in float32, and back in their dtype."""
        if not x.is_floating_point():
            raise UsageError(
                f"mixup adds inputs, and these are whole numbers ({x.dtype}), such as token ids: "
                "leave mixup out"
            )
        mixed = x.float().lerp(x.index_select(0, self.partner).float(), 1 - self.weight)
        return mixed.to(x.dtype)

    def loss(self, objective: Objective, logits: Tensor, labels: Tensor, index: Tensor) -> Tensor:
        """The loss at the labels of both, weighted likewise.

        For a loss that takes class probabilities this is the loss at the mixed labels; one that
        takes class indices alone can be trained with it too.
        """
        own = objective(logits, labels, index)
        other = objective(logits, labels[self.partner], index[self.partner])
        return self.weight * own + (1 - self.weight) * other


class Mixup:
    """The partners and weights of an epoch, drawn from the seed and the epoch's number.

    As in the authors' code a batch has one weight, and the partners are the batch in another order.
    The weight is the larger of a Beta variable and 1 minus it: a batch has the same distribution as
    with the variable itself, and the larger part of a mixed sample is that of its own row.

    Args:
        alpha: of the Beta distribution; both its parameters.
        num_samples: of an epoch.
        batch_size: of a step; the last one may be smaller.
        device: where the steps are.
        seed: of the run.
    """

    def __init__(
        self, alpha: float, num_samples: int, batch_size: int, device: torch.device, seed: int
    ) -> None:
        self.alpha = alpha
        self.seed = seed
        self.num_samples = num_samples
        steps = -(-num_samples // batch_size)
        self._partners = torch.zeros(steps, batch_size, dtype=torch.int64, device=device)
        self._weights = torch.ones(steps, device=device)

    def begin_epoch(self, epoch: int) -> None:
        """Draw the epoch's partners and weights; in place, so that captured steps see them."""
        device, (steps, batch) = self._weights.device, self._partners.shape
        generator = torch.Generator(device).manual_seed(derive(self.seed, "mixup", epoch))
        scores = torch.rand(steps * batch, dtype=torch.float64, generator=generator, device=device)
        scores[self.num_samples :] = 2  # after the last sample: they stay behind it
        self._partners.copy_(scores.view(steps, batch).argsort(dim=1, stable=True))
        rng = np.random.default_rng(derive(self.seed, "mixup weight", epoch))
        drawn = rng.beta(self.alpha, self.alpha, steps)
        self._weights.copy_(torch.from_numpy(np.maximum(drawn, 1 - drawn)))

    def at(self, step: Tensor, size: int) -> Mixed:
        """How the batch of a step is mixed, its position read from a tensor of one element."""
        at = step.view(1)
        partner = self._partners.index_select(0, at)[0, :size]
        return Mixed(partner, self._weights.index_select(0, at)[0])
