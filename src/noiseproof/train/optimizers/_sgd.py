"""SGD with momentum, after clipping the norm of the gradient."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ... import kernels
from ...runs import ResolvedRun


@dataclass(frozen=True)
class SGD:
    """``clip_grad_norm_`` and ``torch.optim.SGD``, with an L1 penalty as a part of the loss."""

    momentum: float
    nesterov: bool
    weight_decay: float
    clip: float
    l1: float
    buffers: ClassVar[tuple[str, ...]] = ("momentum_buffer",)

    @classmethod
    def from_run(cls, run: ResolvedRun) -> SGD:
        return cls(run.momentum, run.nesterov, run.weight_decay, run.clip, run.l1)

    def step(
        self,
        weights: Tensor,
        buffers: Mapping[str, Tensor],
        compute_grad: Tensor,
        grad: Tensor,
        lr: Tensor,
        compute_weights: Tensor,
        *,
        fused: bool,
    ) -> Tensor:
        update = kernels.sgd if fused else sgd
        return update(
            weights, buffers["momentum_buffer"], compute_grad, grad, lr, compute_weights,
            self.momentum, self.nesterov, self.weight_decay, self.clip, self.l1,
        )  # fmt: skip


def sgd(
    weights: Tensor, momentum_buffer: Tensor, compute_grad: Tensor, grad: Tensor, lr: Tensor,
    compute_weights: Tensor, momentum: float, nesterov: bool, weight_decay: float, clip: float,
    l1: float,
) -> Tensor:  # fmt: skip
    """The plain twin of `noiseproof.kernels.sgd`."""
    if compute_grad.numel():
        grad = torch.cat([compute_grad.float(), grad])
    if l1:  # a part of the loss, so it is clipped with the rest
        grad = grad.add(weights.sign(), alpha=l1)
    norm: Tensor = torch.linalg.vector_norm(grad)
    if clip:
        grad = grad * (clip / (norm + 1e-6)).clamp(max=1)
    if weight_decay:
        grad = grad.add(weights, alpha=weight_decay)
    momentum_buffer.mul_(momentum).add_(grad)
    direction = grad.add(momentum_buffer, alpha=momentum) if nesterov else momentum_buffer
    weights.addcmul_(direction, lr, value=-1)
    compute_weights.copy_(weights[: compute_weights.numel()])
    return norm
