"""Batch norm fused with ReLU, an addition and a pooling; in training, forward and backward."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

_BLOCKS = 256  # of rows, whose sums are joined by one small kernel: two for each multiprocessor
_LEAST = 64  # rows of a block
_COLUMNS = 64  # of a tile
# The rows of a kernel's tile and the warps that share it; a pooled pixel is four.
_TILES = {
    "moments": {"M": 64, "num_warps": 4},
    "apply": {"M": 64, "num_warps": 4},
    "sums": {"M": 64, "num_warps": 4},
    "pooled sums": {"M": 32, "num_warps": 4},
    "pass_back": {"M": 64, "num_warps": 4},
    "pooled pass_back": {"M": 32, "num_warps": 4},
}


def norm_relu(
    y: Tensor,
    norm: nn.BatchNorm1d | nn.BatchNorm2d,
    *,
    conv_bias: Tensor | None = None,
    relu: bool = True,
    residual: Tensor | None = None,
    pool: bool = False,
) -> Tensor:
    """``max_pool2d(relu(norm(y + conv_bias) + residual), 2)`` with what of it is asked for.

    Args:
        y: [N, C, H, W], channels last in memory. It may have more channels than the norm; those
            come out as zeros.
        norm: its weight, bias and running statistics. In training these are updated; otherwise
            they are what y is normalised with, and no gradient passes.
        conv_bias: the bias that was not added to y, since the norm takes it away again: it is felt
            in the running mean alone, and its gradient is zeros.
        relu: whether there is one.
        residual: what is added before the ReLU; not with ``pool``.
        pool: whether the largest of each two by two pixels is taken; needs ``relu``, even sizes.
    """
    assert norm.running_mean is not None
    assert norm.running_var is not None
    if not norm.training:
        return _as_used(y, norm, conv_bias, relu, residual, pool)
    counted = norm.num_batches_tracked
    if counted is not None and not (y.is_cuda and torch.cuda.is_current_stream_capturing()):
        counted.add_(1)  # in a graph it would be a launch of its own; whoever replays it counts
    out: Tensor = _NormRelu.apply(  # type: ignore[no-untyped-call]
        y, norm.weight, norm.bias, residual, norm.running_mean, norm.running_var, conv_bias,
        norm.momentum, norm.eps, relu, pool,
    )  # fmt: skip
    return out


def _empty(channels: int, like: Tensor, rows: int = 1) -> Tensor:
    return torch.empty(rows, channels, dtype=torch.float32, device=like.device)


@torch.no_grad()
def _as_used(
    y: Tensor,
    norm: nn.BatchNorm1d | nn.BatchNorm2d,
    conv_bias: Tensor | None,
    relu: bool,
    residual: Tensor | None,
    pool: bool,
) -> Tensor:
    """By the running statistics, which are a scale and a shift of each channel."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
    mean = norm.running_mean if conv_bias is None else norm.running_mean - conv_bias
    saved = torch.zeros(4, y.shape[1], device=y.device)
    saved[2, : len(scale)] = scale
    saved[3, : len(scale)] = norm.bias - mean * scale
    y = y.contiguous(memory_format=torch.channels_last)
    return _apply(y, saved, residual, {"RELU": relu, "ADD": residual is not None, "POOL": pool})


def _apply(y: Tensor, saved: Tensor, residual: Tensor | None, flags: dict[str, bool]) -> Tensor:
    """``relu(y * scale + shift + residual)``, pooled, with the scale and shift that were saved."""
    from . import _norm_kernels as kernels

    n, channels, height, width = y.shape
    shape = (n, channels, height // 2, width // 2) if flags["POOL"] else y.shape
    out = torch.empty(shape, dtype=y.dtype, device=y.device, memory_format=torch.channels_last)
    if residual is not None:
        residual = residual.contiguous(memory_format=torch.channels_last)
    rows = out.numel() // channels
    tile = _TILES["apply"]
    kernels.apply[-(-rows // tile["M"]), -(-channels // _COLUMNS)](
        y, y if residual is None else residual, out, saved,
        rows, channels, width // 2, width, **flags, C=_COLUMNS, **tile,
    )  # fmt: skip
    return out


class _NormRelu(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, y: Tensor, weight: Tensor, bias: Tensor, residual: Tensor | None,
        running_mean: Tensor, running_var: Tensor, conv_bias: Tensor | None,
        momentum: float, eps: float, relu: bool, pool: bool,
    ) -> Tensor:  # fmt: skip
        from . import _norm_kernels as kernels

        y = y.contiguous(memory_format=torch.channels_last)
        channels, real = y.shape[1], len(weight)
        rows = y.numel() // channels
        tiles = -(-channels // _COLUMNS)
        each, blocks = _shares(rows)
        means, squares = _empty(channels, y, blocks), _empty(channels, y, blocks)
        kernels.moments[blocks, tiles](
            y, means, squares, rows, channels, each, C=_COLUMNS, **_TILES["moments"]
        )
        saved = _empty(channels, y, 4)
        few = {"B": _power_of_two(blocks), "C": 8}
        kernels.statistics[(-(-channels // 8),)](
            means, squares, weight, bias, running_mean, running_var,
            weight if conv_bias is None else conv_bias, saved,
            rows, channels, real, each, blocks, momentum, eps,
            HAS_BIAS=conv_bias is not None, **few,
        )  # fmt: skip
        flags = {"RELU": relu, "ADD": residual is not None, "POOL": pool}
        out = _apply(y, saved, residual, flags)
        ctx.save_for_backward(
            y, weight, saved, out if residual is not None and relu else None, conv_bias
        )
        ctx.flags = flags
        return out

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        from . import _norm_kernels as kernels

        y, weight, saved, out, conv_bias = ctx.saved_tensors
        flags = ctx.flags
        upstream = upstream.contiguous(memory_format=torch.channels_last)
        channels, width = y.shape[1], y.shape[3]
        rows_y, rows = y.numel() // channels, upstream.numel() // channels
        tiles = -(-channels // _COLUMNS)
        each, blocks = _shares(rows)
        pooled = "pooled " if flags["POOL"] else ""
        passed = torch.empty_like(y) if flags["ADD"] else y
        sum_g, sum_gx = _empty(channels, y, blocks), _empty(channels, y, blocks)
        kernels.sums[blocks, tiles](
            upstream, y, y if out is None else out, passed, saved, sum_g, sum_gx,
            rows, channels, each, width // 2, width, **flags, C=_COLUMNS,
            **_TILES[f"{pooled}sums"],
        )  # fmt: skip
        factors = _empty(channels, y, 3)
        d_weight, d_bias = torch.empty_like(weight), torch.empty_like(weight)
        kernels.coefficients[(-(-channels // 8),)](
            sum_g, sum_gx, saved, factors, d_weight, d_bias,
            rows_y, channels, len(weight), blocks, B=_power_of_two(blocks), C=8,
        )  # fmt: skip
        gradient = torch.empty_like(y)
        tile = _TILES[f"{pooled}pass_back"]
        kernels.pass_back[-(-rows // tile["M"]), tiles](
            upstream, y, passed, gradient, saved, factors,
            rows, channels, width // 2, width, **flags, C=_COLUMNS, **tile,
        )  # fmt: skip
        d_residual = passed if flags["ADD"] else None
        d_conv_bias = None if conv_bias is None else torch.zeros_like(conv_bias)
        return (gradient, d_weight, d_bias, d_residual, None, None, d_conv_bias, *[None] * 4)


def _shares(rows: int) -> tuple[int, int]:
    """How many rows a block has, at least a tile of them, and how many blocks there are."""
    each = _LEAST * max(1, -(-rows // (_BLOCKS * _LEAST)))
    return each, -(-rows // each)


def _power_of_two(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()
