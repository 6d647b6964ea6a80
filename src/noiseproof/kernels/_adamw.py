"""Gradient clipping and AdamW on flat buffers, in two kernels."""

from __future__ import annotations

import math

from torch import Tensor

from ._update import launch


def adamw(
    weights: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, step: Tensor, compute_grad: Tensor,
    grad: Tensor, lr: Tensor, compute_weights: Tensor, beta1: float, beta2: float, eps: float,
    weight_decay: float, clip: float, l1: float, num_decayed: int | None = None,
    shrink: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """``clip_grad_norm_`` and a step of ``torch.optim.AdamW``, in place; returns the norm.

    The first M of all P weights have a copy in the compute dtype, as in `noiseproof.kernels.sgd`.

    Args:
        weights: float32 [P], all weights; updated.
        exp_avg: float32 [P], the mean of the gradient; updated.
        exp_avg_sq: float32 [P], the mean of its square; updated.
        step: float32 tensor of one element, the number of steps before this one; updated.
        compute_grad: compute dtype [M], the gradient of the first M weights.
        grad: float32 [P - M], the gradient of the others.
        lr: the learning rate, a float32 tensor of one element.
        compute_weights: compute dtype [M], the copy of the first M weights; updated.
        beta1: as in ``torch.optim.AdamW``.
        beta2: as in ``torch.optim.AdamW``.
        eps: as in ``torch.optim.AdamW``.
        weight_decay: as in ``torch.optim.AdamW``.
        clip: the largest norm of the gradient; 0 for no clipping.
        l1: the factor of the L1 penalty, whose gradient is clipped with the rest.
        num_decayed: how many weights decay, the first ones; None for all.
        shrink: what every weight is brought closer to zero by after the update, and to zero where
            it is no larger; a float32 tensor of one element, or None for nothing.

    Returns:
        The norm of the gradient before clipping, a float32 tensor of one element.
    """
    from ._adamw_kernels import update

    step.add_(1)
    # Numbers become float32 on their way: 1 - beta and log(beta) would lose their digits there.
    return launch(
        update, weights, compute_grad, grad, lr, compute_weights, clip, l1, num_decayed, shrink,
        exp_avg=exp_avg, exp_avg_sq=exp_avg_sq, step=step, rest1=1 - beta1, log_beta1=_log(beta1),
        beta2=beta2, rest2=1 - beta2, log_beta2=_log(beta2), eps=eps, weight_decay=weight_decay,
    )  # fmt: skip


def _log(beta: float) -> float:
    return math.log(beta) if beta else -math.inf
