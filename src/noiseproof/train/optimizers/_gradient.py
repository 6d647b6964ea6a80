"""What optimizers share: the gradient that they begin with, the penalty that they end with."""

from __future__ import annotations

import torch
from torch import Tensor


def clipped(
    weights: Tensor, compute_grad: Tensor, grad: Tensor, clip: float, l1: float
) -> tuple[Tensor, Tensor]:
    """The whole gradient [P] with that of the L1 penalty, clipped, and its norm before that."""
    if compute_grad.numel():
        grad = torch.cat([compute_grad.float(), grad])
    if l1:  # a part of the loss, so it is clipped with the rest
        grad = grad.add(weights.sign(), alpha=l1)
    norm: Tensor = torch.linalg.vector_norm(grad)
    if clip:
        grad = grad * (clip / (norm + 1e-6)).clamp(max=1)
    return grad, norm


def soft_threshold_(weights: Tensor, shrink: Tensor) -> None:
    """Bring every weight closer to zero, and to zero exactly where it is no larger than that."""
    weights.sub_(torch.clamp(weights, -shrink, shrink))
