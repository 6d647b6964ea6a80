"""Gradient clipping and AdamW on flat buffers, in two kernels."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ._sgd import UPDATE_BLOCK, partial_squared_norms


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
    from . import _adamw_kernels as kernels

    size, num_compute = weights.numel(), compute_grad.numel()
    partials = partial_squared_norms(weights, compute_grad, grad, l1)
    norm = torch.empty((), device=weights.device)
    step.add_(1)
    # Numbers become float32 on their way: 1 - beta and log(beta) would lose their digits there.
    kernels.update[(-(-size // UPDATE_BLOCK),)](
        compute_grad if num_compute else grad, grad, weights, exp_avg, exp_avg_sq, step,
        compute_weights if num_compute else weights, lr, partials, norm,
        num_compute, size, len(partials), 1 - beta1, _log(beta1), beta2, 1 - beta2, _log(beta2),
        eps, weight_decay, clip, l1, size if num_decayed is None else num_decayed,
        lr if shrink is None else shrink,
        CLIP=clip > 0, L1=l1 > 0, COPY=num_compute > 0, SHRINK=shrink is not None,
        PARTIALS=1 << max(0, len(partials) - 1).bit_length(), BLOCK=UPDATE_BLOCK,
    )  # fmt: skip
    return norm


def _log(beta: float) -> float:
    return math.log(beta) if beta else -math.inf
