"""Batch norm fused with an addition, a ReLU and a pooling, forward and backward."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

_MAX_BLOCKS = 256  # of rows, summed apart and joined by one small kernel: two a multiprocessor
_MIN_ROWS = 64  # of a block
_BLOCK_C = 64  # channels of a tile
_BLOCK_C_JOIN = 8  # channels for each program that joins the blocks
# The rows of each kernel's tile, and its warps. A row of a pooled kernel is four rows of y.
_TILES = {
    "moments": {"BLOCK_M": 64, "num_warps": 4},
    "apply": {"BLOCK_M": 64, "num_warps": 4},
    "grad_sums": {"BLOCK_M": 64, "num_warps": 4},
    "pooled grad_sums": {"BLOCK_M": 32, "num_warps": 4},
    "grad_input": {"BLOCK_M": 64, "num_warps": 4},
    "pooled grad_input": {"BLOCK_M": 32, "num_warps": 4},
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
    """``max_pool2d(relu(norm(y + conv_bias) + residual), 2)``, each step but the norm optional.

    Args:
        y: [N, C, H, W], channels last in memory. It may have more channels than the norm; those
            come out as zeros.
        norm: a batch norm. In training mode its running statistics are updated; in eval mode they
            are what y is normalized with, and there is no gradient.
        conv_bias: [norm.num_features], the bias of the layer before, where it was not added to y.
            A batch norm subtracts it again with the mean, so it changes the running mean alone,
            and its gradient is zero.
        relu: whether to apply a ReLU.
        residual: like y, added before the ReLU; not with ``pool``.
        pool: whether to apply a 2×2 max pooling; needs ``relu`` and an even height and width.
    """
    assert norm.running_mean is not None
    assert norm.running_var is not None
    if not norm.training:
        return _eval_norm_relu(y, norm, conv_bias, relu, residual, pool)
    counted = norm.num_batches_tracked
    if counted is not None and not (y.is_cuda and torch.cuda.is_current_stream_capturing()):
        counted.add_(1)  # a CUDA graph is without this launch: who replays it counts
    out: Tensor = _NormRelu.apply(  # type: ignore[no-untyped-call]
        y, norm.weight, norm.bias, residual, norm.running_mean, norm.running_var, conv_bias,
        norm.momentum, norm.eps, relu, pool,
    )  # fmt: skip
    return out


def _empty(rows: int, channels: int, like: Tensor) -> Tensor:
    return torch.empty(rows, channels, dtype=torch.float32, device=like.device)


@torch.no_grad()
def _eval_norm_relu(
    y: Tensor,
    norm: nn.BatchNorm1d | nn.BatchNorm2d,
    conv_bias: Tensor | None,
    relu: bool,
    residual: Tensor | None,
    pool: bool,
) -> Tensor:
    """The same in eval mode, where the norm is a scale and a shift of each channel."""
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
    kernels.apply[-(-rows // tile["BLOCK_M"]), -(-channels // _BLOCK_C)](
        y, y if residual is None else residual, out, saved,
        rows, channels, width // 2, width, **flags, BLOCK_C=_BLOCK_C, **tile,
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
        channels, num_features = y.shape[1], len(weight)
        rows = y.numel() // channels
        tiles = -(-channels // _BLOCK_C)
        rows_per_block, blocks = _row_blocks(rows)
        block_mean, block_m2 = _empty(blocks, channels, y), _empty(blocks, channels, y)
        kernels.moments[blocks, tiles](
            y, block_mean, block_m2, rows, channels, rows_per_block,
            BLOCK_C=_BLOCK_C, **_TILES["moments"],
        )  # fmt: skip
        saved = _empty(4, channels, y)
        kernels.statistics[(-(-channels // _BLOCK_C_JOIN),)](
            block_mean, block_m2, weight, bias, running_mean, running_var,
            weight if conv_bias is None else conv_bias, saved,
            rows, channels, num_features, rows_per_block, blocks, momentum, eps,
            HAS_BIAS=conv_bias is not None, BLOCKS=_power_of_two(blocks), BLOCK_C=_BLOCK_C_JOIN,
        )  # fmt: skip
        flags = {"RELU": relu, "ADD": residual is not None, "POOL": pool}
        out = _apply(y, saved, residual, flags)
        ctx.save_for_backward(
            y, weight, saved, out if residual is not None and relu else None, conv_bias
        )
        ctx.flags = flags
        return out

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        from . import _norm_kernels as kernels

        y, weight, saved, out, conv_bias = ctx.saved_tensors
        flags = ctx.flags
        grad_out = grad_out.contiguous(memory_format=torch.channels_last)
        channels, width = y.shape[1], y.shape[3]
        rows_y, rows = y.numel() // channels, grad_out.numel() // channels
        tiles = -(-channels // _BLOCK_C)
        rows_per_block, blocks = _row_blocks(rows)
        pooled = "pooled " if flags["POOL"] else ""
        grad_residual = torch.empty_like(y) if flags["ADD"] else y
        sum_g, sum_gx = _empty(blocks, channels, y), _empty(blocks, channels, y)
        kernels.grad_sums[blocks, tiles](
            grad_out, y, y if out is None else out, grad_residual, saved, sum_g, sum_gx,
            rows, channels, rows_per_block, width // 2, width, **flags, BLOCK_C=_BLOCK_C,
            **_TILES[f"{pooled}grad_sums"],
        )  # fmt: skip
        coefficients = _empty(3, channels, y)
        grad_weight, grad_bias = torch.empty_like(weight), torch.empty_like(weight)
        kernels.grad_coefficients[(-(-channels // _BLOCK_C_JOIN),)](
            sum_g, sum_gx, saved, coefficients, grad_weight, grad_bias,
            rows_y, channels, len(weight), blocks,
            BLOCKS=_power_of_two(blocks), BLOCK_C=_BLOCK_C_JOIN,
        )  # fmt: skip
        grad_y = torch.empty_like(y)
        tile = _TILES[f"{pooled}grad_input"]
        kernels.grad_input[-(-rows // tile["BLOCK_M"]), tiles](
            grad_out, y, grad_residual, grad_y, saved, coefficients,
            rows, channels, width // 2, width, **flags, BLOCK_C=_BLOCK_C, **tile,
        )  # fmt: skip
        grad_conv_bias = None if conv_bias is None else torch.zeros_like(conv_bias)
        return (
            grad_y, grad_weight, grad_bias, grad_residual if flags["ADD"] else None,
            None, None, grad_conv_bias, *[None] * 4,
        )  # fmt: skip


def _row_blocks(rows: int) -> tuple[int, int]:
    """The rows of a block, a multiple of ``_MIN_ROWS``, and the number of blocks."""
    rows_per_block = _MIN_ROWS * max(1, -(-rows // (_MAX_BLOCKS * _MIN_ROWS)))
    return rows_per_block, -(-rows // rows_per_block)


def _power_of_two(n: int) -> int:
    """The smallest power of two that is at least n."""
    return 1 << max(0, n - 1).bit_length()
