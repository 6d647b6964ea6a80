"""Clipping and SGD on flat buffers, in two kernels."""

from __future__ import annotations

import torch
from torch import Tensor

_SHARES, _SHARE, _BLOCK = 1024, 4096, 1024


def sgd(
    weights: Tensor, momenta: Tensor, low_gradient: Tensor, gradient: Tensor, rate: Tensor,
    low: Tensor, momentum: float, nesterov: bool, weight_decay: float, clip: float, l1: float,
) -> Tensor:  # fmt: skip
    """What `noiseproof.train` does with these arguments on a CPU; returns the gradient's norm."""
    from . import _sgd_kernels as kernels

    size, wide = weights.numel(), low_gradient.numel()
    shares = min(_SHARES, -(-size // _SHARE))
    partial = torch.empty(shares, device=weights.device)
    norm = torch.empty((), device=weights.device)
    if not wide:
        low_gradient = gradient  # never read
    kernels.squares[(shares,)](
        low_gradient, gradient, weights, partial, wide, size, l1, L1=l1 > 0, BLOCK=_SHARE
    )
    kernels.update[(-(-size // _BLOCK),)](
        low_gradient, gradient, weights, momenta, low if wide else weights, rate, partial, norm,
        wide, size, shares, momentum, weight_decay, clip, l1,
        NESTEROV=nesterov, CLIP=clip > 0, L1=l1 > 0, COPY=wide > 0,
        SHARES=1 << max(0, shares - 1).bit_length(), BLOCK=_BLOCK,
    )  # fmt: skip
    return norm
