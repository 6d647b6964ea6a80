"""AdamW, after clipping the norm of the gradient."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ... import kernels
from ...runs import ResolvedRun
from ._gradient import clipped, soft_threshold_


@dataclass(frozen=True)
class AdamW:
    """``clip_grad_norm_`` and ``torch.optim.AdamW``, with an L1 penalty as a part of the loss."""

    beta1: float
    beta2: float
    eps: float
    weight_decay: float
    clip: float
    l1: float
    decay_on: str = "all"
    buffers: ClassVar[tuple[str, ...]] = ("exp_avg", "exp_avg_sq")
    scalars: ClassVar[tuple[str, ...]] = ("step",)

    @classmethod
    def from_run(cls, run: ResolvedRun) -> AdamW:
        return cls(run.beta1, run.beta2, run.eps, run.weight_decay, run.clip, run.l1, run.decay_on)

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
        update = kernels.adamw if fused else adamw
        return update(
            weights, buffers["exp_avg"], buffers["exp_avg_sq"], buffers["step"], compute_grad, grad,
            lr, compute_weights, self.beta1, self.beta2, self.eps, self.weight_decay, self.clip,
            self.l1, num_decayed=num_matrix_weights if self.decay_on == "matrices" else None,
            shrink=shrink,
        )  # fmt: skip


def adamw(
    weights: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, step: Tensor, compute_grad: Tensor,
    grad: Tensor, lr: Tensor, compute_weights: Tensor, beta1: float, beta2: float, eps: float,
    weight_decay: float, clip: float, l1: float, num_decayed: int | None = None,
    shrink: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The plain twin of `noiseproof.kernels.adamw`."""
    grad, norm = clipped(weights, compute_grad, grad, clip, l1)
    step.add_(1)
    if weight_decay:
        weights[:num_decayed].mul_(1 - lr * weight_decay)
    exp_avg.lerp_(grad, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    root = exp_avg_sq.sqrt().div_(_bias_correction(beta2, step).sqrt()).add_(eps)
    weights.addcmul_(exp_avg / root, lr / _bias_correction(beta1, step), value=-1)
    if shrink is not None:
        soft_threshold_(weights, shrink)
    compute_weights.copy_(weights[: compute_weights.numel()])
    return norm


def _bias_correction(beta: float, step: Tensor) -> Tensor:
    """1 - beta ** step, to the last digits also where beta is close to 1."""
    return -(step * math.log(beta)).expm1() if beta else step.new_ones(())
