"""Gradient clipping and SGD on flat buffers, in two kernels."""

from __future__ import annotations

import torch
from torch import Tensor

_MAX_PARTIALS = 1024  # programs of the first kernel, each with one partial sum
_NORM_BLOCK = 4096  # elements of the gradient that a program of it reads at a time
UPDATE_BLOCK = 1024  # weights for each program of the second kernel


def sgd(
    weights: Tensor, momentum_buffer: Tensor, compute_grad: Tensor, grad: Tensor, lr: Tensor,
    compute_weights: Tensor, momentum: float, nesterov: bool, weight_decay: float, clip: float,
    l1: float, num_decayed: int | None = None, shrink: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """``clip_grad_norm_`` and a step of ``torch.optim.SGD``, in place; returns the gradient's norm.

    The first M of all P weights have a copy in the compute dtype, such as bfloat16, which the
    network multiplies with; their gradients come in that dtype too. M is 0 where there is none.

    Args:
        weights: float32 [P], all weights; updated.
        momentum_buffer: float32 [P]; updated.
        compute_grad: compute dtype [M], the gradient of the first M weights.
        grad: float32 [P - M], the gradient of the others.
        lr: the learning rate, a float32 tensor of one element.
        compute_weights: compute dtype [M], the copy of the first M weights; updated.
        momentum: as in ``torch.optim.SGD``.
        nesterov: as in ``torch.optim.SGD``.
        weight_decay: as in ``torch.optim.SGD``.
        clip: the largest norm of the gradient; 0 for no clipping.
        l1: the factor of the L1 penalty, whose gradient is clipped with the rest.
        num_decayed: how many weights decay, the first ones; None for all.
        shrink: what every weight is brought closer to zero by after the update, and to zero where
            it is no larger; a float32 tensor of one element, or None for nothing.

    Returns:
        The norm of the gradient before clipping, a float32 tensor of one element.
    """
    from . import _sgd_kernels as kernels

    size, num_compute = weights.numel(), compute_grad.numel()
    partials = partial_squared_norms(weights, compute_grad, grad, l1)
    norm = torch.empty((), device=weights.device)
    kernels.update[(-(-size // UPDATE_BLOCK),)](
        compute_grad if num_compute else grad, grad, weights, momentum_buffer,
        compute_weights if num_compute else weights, lr, partials, norm,
        num_compute, size, len(partials), momentum, weight_decay, clip, l1,
        size if num_decayed is None else num_decayed, lr if shrink is None else shrink,
        NESTEROV=nesterov, CLIP=clip > 0, L1=l1 > 0, COPY=num_compute > 0,
        DECAY_ALL=num_decayed is None, SHRINK=shrink is not None,
        PARTIALS=1 << max(0, len(partials) - 1).bit_length(), BLOCK=UPDATE_BLOCK,
    )  # fmt: skip
    return norm


def partial_squared_norms(weights: Tensor, compute_grad: Tensor, grad: Tensor, l1: float) -> Tensor:
    """Sums of the squares of parts of the gradient, with that of the L1 penalty; float32."""
    from . import _sgd_kernels as kernels

    size, num_compute = weights.numel(), compute_grad.numel()
    num_partials = min(_MAX_PARTIALS, -(-size // _NORM_BLOCK))
    partials = torch.empty(num_partials, device=weights.device)
    kernels.partial_squared_norms[(num_partials,)](
        compute_grad if num_compute else grad,  # never read
        grad, weights, partials, num_compute, size, l1, L1=l1 > 0, BLOCK=_NORM_BLOCK,
    )  # fmt: skip
    return partials
