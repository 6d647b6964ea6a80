"""SGD with momentum, after clipping the norm of the gradient."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ... import kernels
from ...runs import ResolvedRun
from ._gradient import clipped, soft_threshold_


@dataclass(frozen=True)
class SGD:
    """``clip_grad_norm_`` and ``torch.optim.SGD``, with an L1 penalty as a part of the loss."""

    momentum: float
    nesterov: bool
    weight_decay: float
    clip: float
    l1: float
    decay_on: str = "all"
    buffers: ClassVar[tuple[str, ...]] = ("momentum_buffer",)
    scalars: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def from_run(cls, run: ResolvedRun) -> SGD:
        return cls(run.momentum, run.nesterov, run.weight_decay, run.clip, run.l1, run.decay_on)

    def step(
        self,
        weights: Tensor,
        buffers: Mapping[str, Tensor],
        compute_grad: Tensor,
        grad: Tensor,
        lr: Tensor,
        compute_weights: Tensor,
        *,
        num_matrix_weights: int,
        fused: bool,
        shrink: Tensor | None = None,
    ) -> Tensor:
        update = kernels.sgd if fused else sgd
        return update(
            weights, buffers["momentum_buffer"], compute_grad, grad, lr, compute_weights,
            self.momentum, self.nesterov, self.weight_decay, self.clip, self.l1,
            num_decayed=num_matrix_weights if self.decay_on == "matrices" else None,
            shrink=shrink,
        )  # fmt: skip


def sgd(
    weights: Tensor, momentum_buffer: Tensor, compute_grad: Tensor, grad: Tensor, lr: Tensor,
    compute_weights: Tensor, momentum: float, nesterov: bool, weight_decay: float, clip: float,
    l1: float, num_decayed: int | None = None, shrink: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The plain twin of `noiseproof.kernels.sgd`."""
    grad, norm = clipped(weights, compute_grad, grad, clip, l1)
    if weight_decay and num_decayed is None:
        grad = grad.add(weights, alpha=weight_decay)
    elif weight_decay:
        first, last = grad[:num_decayed], grad[num_decayed:]
        grad = torch.cat([first.add(weights[:num_decayed], alpha=weight_decay), last])
    momentum_buffer.mul_(momentum).add_(grad)
    direction = grad.add(momentum_buffer, alpha=momentum) if nesterov else momentum_buffer
    weights.addcmul_(direction, lr, value=-1)
    if shrink is not None:
        soft_threshold_(weights, shrink)
    compute_weights.copy_(weights[: compute_weights.numel()])
    return norm
