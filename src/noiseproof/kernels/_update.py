"""What the updates of all optimizers share: a kernel that sums squares, then one of their own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_MAX_PARTIALS = 1024  # programs of the first kernel, each with one partial sum
_NORM_BLOCK = 4096  # elements of the gradient that a program of it reads at a time
_BLOCK = 1024  # weights for each program of the second kernel


def launch(
    update: Any, weights: Tensor, compute_grad: Tensor, grad: Tensor, lr: Tensor,
    compute_weights: Tensor, clip: float, l1: float, num_decayed: int | None,
    shrink: Tensor | None, **own: Any,
) -> Tensor:  # fmt: skip
    """Clip the gradient's norm and update all weights; returns the norm before that.

    Args:
        update: the second kernel, which takes what is here by its name.
        weights: float32 [P], all weights; updated.
        compute_grad: compute dtype [M], the gradient of the first M weights.
        grad: float32 [P - M], the gradient of the others.
        lr: the learning rate, a float32 tensor of one element.
        compute_weights: compute dtype [M], the copy of the first M weights; updated.
        clip: the largest norm of the gradient; 0 for no clipping.
        l1: the factor of the L1 penalty.
        num_decayed: how many weights decay, the first ones; None for all.
        shrink: what weights are shrunk by, a float32 tensor of one element; None for nothing.
        own: what else the kernel takes.
    """
    from ._update_kernels import partial_squared_norms

    size, num_compute = weights.numel(), compute_grad.numel()
    num_partials = min(_MAX_PARTIALS, -(-size // _NORM_BLOCK))
    partials = torch.empty(num_partials, device=weights.device)
    norm = torch.empty((), device=weights.device)
    if not num_compute:  # a kernel takes no empty tensor; these are never read or written
        compute_grad, compute_weights = grad, weights
    partial_squared_norms[(num_partials,)](
        compute_grad, grad, weights, partials, num_compute, size, l1, L1=l1 > 0, BLOCK=_NORM_BLOCK
    )
    update[(-(-size // _BLOCK),)](
        compute_grad=compute_grad, grad=grad, weights=weights, compute_weights=compute_weights,
        lr=lr, partials=partials, norm=norm, num_compute=num_compute, size=size,
        num_partials=num_partials, clip=clip, l1=l1,
        num_decayed=size if num_decayed is None else num_decayed,
        shrink=lr if shrink is None else shrink, CLIP=clip > 0, L1=l1 > 0, COPY=num_compute > 0,
        SHRINK=shrink is not None, PARTIALS=1 << max(0, num_partials - 1).bit_length(),
        BLOCK=_BLOCK, **own,
    )  # fmt: skip
    return norm
