"""Batch norm with what follows it: an addition, a ReLU and a pooling.

Images are stored with their channels last, so a tensor is a matrix: a pixel is a row, a channel a
column. Each pass, forward and backward, is two kernels over that matrix with a small one between
them: the first computes sums over blocks of rows for every channel, the small one joins the blocks,
the last applies the result to every element.

``y`` is what is normalized, ``saved`` the mean, 1 / standard deviation (``rstd``), scale and shift
of each channel, so that the norm is ``y * scale + shift``. There may be more channels in memory
than the norm has (``num_features``); the others come out as zeros.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _load_tile(y, start, last, c, channels, BLOCK_M: tl.constexpr):
    """Rows ``start`` to ``last - 1`` of y, at most BLOCK_M, in float32; 0 outside.

    Args:
        y: [rows, channels], compute dtype, channels contiguous.
        start: the first row.
        last: the row after the last one.
        c: the channels of the tile, int32.
        channels: of ``y``.
        BLOCK_M: rows of the tile.
    """
    r = start + tl.arange(0, BLOCK_M)
    valid = (r < last)[:, None] & (c < channels)[None, :]
    at = y + r.to(tl.int64)[:, None] * channels + c[None, :]
    return tl.load(at, valid, 0.0).to(tl.float32)


@triton.jit
def moments(
    y, block_mean, block_m2, rows, channels, rows_per_block,
    BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """The mean and the sum of squared deviations (M2) of every channel in a block of rows.

    Args:
        y: [rows, channels], compute dtype, channels contiguous.
        block_mean: [blocks, channels], float32: written.
        block_m2: [blocks, channels], float32: written.
        rows: of ``y``.
        channels: of ``y``.
        rows_per_block: rows for each program.
        BLOCK_M: rows of a tile.
        BLOCK_C: channels of a tile.
    """
    block = tl.program_id(0)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = c < channels
    first = block * rows_per_block
    last = tl.minimum(first + rows_per_block, rows)
    # Deviations are taken from the mean of the first tile, so that no digits cancel. They are added
    # up in each thread and reduced once at the end: a reduction for every tile would make the loads
    # wait for each other.
    first_tile = _load_tile(y, first, last, c, channels, BLOCK_M)
    pivot = tl.sum(first_tile, 0) / tl.minimum(last - first, BLOCK_M)
    total = tl.zeros([BLOCK_M, BLOCK_C], tl.float32)
    square = tl.zeros([BLOCK_M, BLOCK_C], tl.float32)
    for start in range(first, last, BLOCK_M):
        valid = (start + tl.arange(0, BLOCK_M) < last)[:, None] & inside[None, :]
        x = _load_tile(y, start, last, c, channels, BLOCK_M)
        deviation = tl.where(valid, x - pivot[None, :], 0.0)
        total += deviation
        square += deviation * deviation
    n = (last - first).to(tl.float32)
    sum_deviation = tl.sum(total, 0)
    tl.store(block_mean + block * channels + c, pivot + sum_deviation / n, inside)
    m2 = tl.maximum(tl.sum(square, 0) - sum_deviation * sum_deviation / n, 0.0)
    tl.store(block_m2 + block * channels + c, m2, inside)


@triton.jit
def statistics(
    block_mean, block_m2, weight, bias, running_mean, running_var, conv_bias, saved,
    rows, channels, num_features, rows_per_block, blocks, momentum, eps,
    HAS_BIAS: tl.constexpr, BLOCKS: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Join the blocks: mean, rstd, scale and shift of each channel, and the running statistics.

    Args:
        block_mean: [blocks, channels], float32, from ``moments``.
        block_m2: [blocks, channels], float32, from ``moments``.
        weight: [num_features], float32.
        bias: [num_features], float32.
        running_mean: [num_features], float32: updated.
        running_var: [num_features], float32: updated.
        conv_bias: [num_features], float32: what was not added to y, and counts in the running mean.
        saved: [4, channels], float32: written, mean, rstd, scale and shift.
        rows: of y.
        channels: of y.
        num_features: of the norm.
        rows_per_block: rows of each block; the last may have fewer.
        blocks: the number of blocks.
        momentum: of the running statistics, as in ``torch.nn.BatchNorm2d``.
        eps: as in ``torch.nn.BatchNorm2d``.
        HAS_BIAS: whether there is a ``conv_bias``; it is not read otherwise.
        BLOCKS: the power of 2 from ``blocks`` on.
        BLOCK_C: channels for each program.
    """
    c = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = c < channels
    is_feature = c < num_features
    b = tl.arange(0, BLOCKS)
    valid = (b < blocks)[:, None] & inside[None, :]
    means = tl.load(block_mean + b[:, None] * channels + c[None, :], valid, 0.0)
    m2 = tl.load(block_m2 + b[:, None] * channels + c[None, :], valid, 0.0)
    n = tl.where(b < blocks, tl.minimum(rows - b * rows_per_block, rows_per_block), 0)
    n = n.to(tl.float32)
    mean = tl.sum(means * n[:, None], 0) / rows
    deviation = tl.where(valid, means - mean[None, :], 0.0)
    variance = (tl.sum(m2, 0) + tl.sum(deviation * deviation * n[:, None], 0)) / rows
    rstd = 1 / tl.sqrt(variance + eps)
    scale = tl.load(weight + c, is_feature, 0.0) * rstd
    tl.store(saved + c, mean, inside)
    tl.store(saved + channels + c, rstd, inside)
    tl.store(saved + 2 * channels + c, scale, inside)
    tl.store(saved + 3 * channels + c, tl.load(bias + c, is_feature, 0.0) - mean * scale, inside)
    biased_mean = mean
    if HAS_BIAS:
        biased_mean += tl.load(conv_bias + c, is_feature, 0.0)
    old = tl.load(running_mean + c, is_feature, 0.0)
    tl.store(running_mean + c, old + momentum * (biased_mean - old), is_feature)
    old = tl.load(running_var + c, is_feature, 0.0)
    unbiased = variance * (rows / tl.maximum(rows - 1, 1).to(tl.float32))
    tl.store(running_var + c, old + momentum * (unbiased - old), is_feature)


@triton.jit
def _window(p, pooled_width, width):
    """The row of y of the first of the four pixels, two by two, of the pooled pixel p."""
    return (p // pooled_width) * 2 * width + (p % pooled_width) * 2


@triton.jit
def _activated(y, r, c, valid, channels, scale, shift):
    """Rows r of y, and ``relu(y * scale + shift)`` of them, both in float32.

    Args:
        y: [rows, channels], compute dtype, channels contiguous.
        r: the rows, [BLOCK_M].
        c: the channels, [BLOCK_C].
        valid: which elements of the tile exist, [BLOCK_M, BLOCK_C].
        channels: of ``y``.
        scale: of the channels c, float32 [BLOCK_C].
        shift: of the channels c, float32 [BLOCK_C].
    """
    at = y + r.to(tl.int64)[:, None] * channels + c[None, :]
    x = tl.load(at, valid, 0.0).to(tl.float32)
    return x, tl.maximum(x * scale[None, :] + shift[None, :], 0.0)


@triton.jit
def apply(
    y, residual, out, saved, rows, channels, pooled_width, width,
    RELU: tl.constexpr, ADD: tl.constexpr, POOL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """``relu(y * scale + shift + residual)``, pooled.

    Args:
        y: [rows, or 4 * rows if POOL, channels], compute dtype, channels contiguous.
        residual: [rows, channels], compute dtype, channels contiguous; read only if ADD.
        out: [rows, channels], compute dtype, channels contiguous: written.
        saved: [4, channels], float32, from ``statistics``; the scale and the shift are read.
        rows: of ``out``.
        channels: of ``y`` and ``out``.
        pooled_width: the width of the images of ``out``, if POOL.
        width: the width of the images of ``y``.
        RELU: whether there is a ReLU.
        ADD: whether there is a residual; not with POOL.
        POOL: whether the largest of each two by two pixels is taken; it implies RELU.
        BLOCK_M: rows of ``out`` for each program.
        BLOCK_C: channels for each program.
    """
    r = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = c < channels
    valid = (r < rows)[:, None] & inside[None, :]
    scale = tl.load(saved + 2 * channels + c, inside, 0.0)
    shift = tl.load(saved + 3 * channels + c, inside, 0.0)
    at = r.to(tl.int64)[:, None] * channels + c[None, :]
    if POOL:
        start = _window(r, pooled_width, width)
        _, best = _activated(y, start, c, valid, channels, scale, shift)
        _, other = _activated(y, start + 1, c, valid, channels, scale, shift)
        best = tl.maximum(best, other)
        _, other = _activated(y, start + width, c, valid, channels, scale, shift)
        best = tl.maximum(best, other)
        _, other = _activated(y, start + width + 1, c, valid, channels, scale, shift)
        a = tl.maximum(best, other)
    else:
        a = tl.load(y + at, valid, 0.0).to(tl.float32) * scale[None, :] + shift[None, :]
        if ADD:
            a += tl.load(residual + at, valid, 0.0).to(tl.float32)
        if RELU:
            a = tl.maximum(a, 0.0)
    tl.store(out + at, a.to(out.dtype.element_ty), valid)


@triton.jit
def _unpool(a0, a1, a2, a3, grad, dtype):
    """The gradient of a pooled pixel, given to the largest of its four; to the first of equals.

    Activations are compared in the dtype in which they are stored.

    Args:
        a0, a1, a2, a3: the activations of the four pixels, float32 [BLOCK_M, BLOCK_C].
        grad: the gradient of the pooled pixel, float32 [BLOCK_M, BLOCK_C].
        dtype: of the stored activations, the compute dtype.
    """
    b0, b1 = a0.to(dtype).to(tl.float32), a1.to(dtype).to(tl.float32)
    b2, b3 = a2.to(dtype).to(tl.float32), a3.to(dtype).to(tl.float32)
    best = tl.maximum(tl.maximum(b0, b1), tl.maximum(b2, b3))
    grad = tl.where(best > 0, grad, 0.0)
    is0 = b0 == best
    is1 = (b1 == best) & (is0 == 0)
    is2 = (b2 == best) & (is0 == 0) & (is1 == 0)
    is3 = (is0 == 0) & (is1 == 0) & (is2 == 0)
    g0, g1 = tl.where(is0, grad, 0.0), tl.where(is1, grad, 0.0)
    g2, g3 = tl.where(is2, grad, 0.0), tl.where(is3, grad, 0.0)
    return g0, g1, g2, g3


@triton.jit
def grad_sums(
    grad_out, y, out, grad_residual, saved, sum_g, sum_gx,
    rows, channels, rows_per_block, pooled_width, width,
    RELU: tl.constexpr, ADD: tl.constexpr, POOL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """The sums of g and of g times the normalized y, for every channel in a block of rows.

    g is the gradient of the norm's output, after the backward passes of the pooling and the ReLU.
    It is also the gradient of the residual, so with a residual it is stored.

    Args:
        grad_out: [rows, channels], compute dtype, channels contiguous: the gradient of ``out``.
        y: [rows, or 4 * rows if POOL, channels], compute dtype, channels contiguous.
        out: [rows, channels], compute dtype, channels contiguous; read only if ADD and RELU.
        grad_residual: [rows, channels], compute dtype, channels contiguous: written if ADD.
        saved: [4, channels], float32, from ``statistics``.
        sum_g: [blocks, channels], float32: written.
        sum_gx: [blocks, channels], float32: written.
        rows: of ``grad_out``.
        channels: of ``y`` and ``grad_out``.
        rows_per_block: rows of ``grad_out`` for each program.
        pooled_width: the width of the images of ``grad_out``, if POOL.
        width: the width of the images of ``y``.
        RELU: whether there was a ReLU.
        ADD: whether there was a residual.
        POOL: whether there was a pooling.
        BLOCK_M: rows of a tile.
        BLOCK_C: channels of a tile.
    """
    block = tl.program_id(0)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = c < channels
    mean = tl.load(saved + c, inside, 0.0)
    rstd = tl.load(saved + channels + c, inside, 0.0)
    scale = tl.load(saved + 2 * channels + c, inside, 0.0)
    shift = tl.load(saved + 3 * channels + c, inside, 0.0)
    first = block * rows_per_block
    last = tl.minimum(first + rows_per_block, rows)
    total = tl.zeros([BLOCK_M, BLOCK_C], tl.float32)  # reduced once, at the end
    weighted = tl.zeros([BLOCK_M, BLOCK_C], tl.float32)
    for start in range(first, last, BLOCK_M):
        r = start + tl.arange(0, BLOCK_M)
        valid = (r < last)[:, None] & inside[None, :]
        at = r.to(tl.int64)[:, None] * channels + c[None, :]
        g = tl.load(grad_out + at, valid, 0.0).to(tl.float32)
        if POOL:
            w = _window(r, pooled_width, width)
            x0, a0 = _activated(y, w, c, valid, channels, scale, shift)
            x1, a1 = _activated(y, w + 1, c, valid, channels, scale, shift)
            x2, a2 = _activated(y, w + width, c, valid, channels, scale, shift)
            x3, a3 = _activated(y, w + width + 1, c, valid, channels, scale, shift)
            g0, g1, g2, g3 = _unpool(a0, a1, a2, a3, g, y.dtype.element_ty)
            total += g0 + g1 + g2 + g3
            weighted += g0 * (x0 - mean[None, :]) + g1 * (x1 - mean[None, :])
            weighted += g2 * (x2 - mean[None, :]) + g3 * (x3 - mean[None, :])
        else:
            x = tl.load(y + at, valid, 0.0).to(tl.float32)
            if ADD:
                if RELU:
                    g = tl.where(tl.load(out + at, valid, 0.0) > 0, g, 0.0)
                tl.store(grad_residual + at, g.to(grad_residual.dtype.element_ty), valid)
            elif RELU:
                g = tl.where(x * scale[None, :] + shift[None, :] > 0, g, 0.0)
            total += g
            weighted += g * (x - mean[None, :])
    tl.store(sum_g + block * channels + c, tl.sum(total, 0), inside)
    tl.store(sum_gx + block * channels + c, tl.sum(weighted, 0) * rstd, inside)


@triton.jit
def grad_coefficients(
    sum_g, sum_gx, saved, coefficients, grad_weight, grad_bias,
    rows, channels, num_features, blocks,
    BLOCKS: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Join the blocks: the gradients of weight and bias, and f of ``dy = f0 * g + f1 * y + f2``.

    Args:
        sum_g: [blocks, channels], float32, from ``grad_sums``.
        sum_gx: [blocks, channels], float32, from ``grad_sums``.
        saved: [4, channels], float32, from ``statistics``.
        coefficients: [3, channels], float32: written, f0, f1 and f2.
        grad_weight: [num_features], float32: written.
        grad_bias: [num_features], float32: written.
        rows: of y.
        channels: of y.
        num_features: of the norm.
        blocks: the number of blocks.
        BLOCKS: the power of 2 from ``blocks`` on.
        BLOCK_C: channels for each program.
    """
    c = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = c < channels
    b = tl.arange(0, BLOCKS)
    valid = (b < blocks)[:, None] & inside[None, :]
    g = tl.sum(tl.load(sum_g + b[:, None] * channels + c[None, :], valid, 0.0), 0)
    gx = tl.sum(tl.load(sum_gx + b[:, None] * channels + c[None, :], valid, 0.0), 0)
    tl.store(grad_bias + c, g, c < num_features)
    tl.store(grad_weight + c, gx, c < num_features)
    mean = tl.load(saved + c, inside, 0.0)
    rstd = tl.load(saved + channels + c, inside, 0.0)
    scale = tl.load(saved + 2 * channels + c, inside, 0.0)
    f1 = -scale * rstd * gx / rows
    tl.store(coefficients + c, scale, inside)
    tl.store(coefficients + channels + c, f1, inside)
    tl.store(coefficients + 2 * channels + c, -scale * g / rows - f1 * mean, inside)


@triton.jit
def _store_grad(grad_y, r, c, valid, channels, x, g, f0, f1, f2):
    """Store ``f0 * g + f1 * x + f2`` to rows r and channels c of ``grad_y``.

    Args:
        grad_y: [rows, channels], compute dtype, channels contiguous: written.
        r: the rows, [BLOCK_M].
        c: the channels, [BLOCK_C].
        valid: which elements of the tile exist, [BLOCK_M, BLOCK_C].
        channels: of ``grad_y``.
        x: y at these rows and channels, float32 [BLOCK_M, BLOCK_C].
        g: the gradient of the norm's output there, float32 [BLOCK_M, BLOCK_C].
        f0, f1, f2: the coefficients of the channels c, float32 [BLOCK_C].
    """
    at = grad_y + r.to(tl.int64)[:, None] * channels + c[None, :]
    d = f0[None, :] * g + f1[None, :] * x + f2[None, :]
    tl.store(at, d.to(grad_y.dtype.element_ty), valid)


@triton.jit
def grad_input(
    grad_out, y, grad_residual, grad_y, saved, coefficients, rows, channels, pooled_width, width,
    RELU: tl.constexpr, ADD: tl.constexpr, POOL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """The gradient of y.

    Args:
        grad_out: [rows, channels], compute dtype, channels contiguous; not read if ADD.
        y: [rows, or 4 * rows if POOL, channels], compute dtype, channels contiguous.
        grad_residual: [rows, channels], compute dtype, channels contiguous, from ``grad_sums``;
            read only if ADD.
        grad_y: like ``y``: written.
        saved: [4, channels], float32, from ``statistics``; the scale and the shift are read.
        coefficients: [3, channels], float32, from ``grad_coefficients``.
        rows: of ``grad_out``.
        channels: of ``y`` and ``grad_out``.
        pooled_width: the width of the images of ``grad_out``, if POOL.
        width: the width of the images of ``y``.
        RELU: whether there was a ReLU.
        ADD: whether there was a residual.
        POOL: whether there was a pooling.
        BLOCK_M: rows of ``grad_out`` for each program.
        BLOCK_C: channels for each program.
    """
    r = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = c < channels
    valid = (r < rows)[:, None] & inside[None, :]
    f0 = tl.load(coefficients + c, inside, 0.0)
    f1 = tl.load(coefficients + channels + c, inside, 0.0)
    f2 = tl.load(coefficients + 2 * channels + c, inside, 0.0)
    scale = tl.load(saved + 2 * channels + c, inside, 0.0)
    shift = tl.load(saved + 3 * channels + c, inside, 0.0)
    at = r.to(tl.int64)[:, None] * channels + c[None, :]
    if POOL:
        g = tl.load(grad_out + at, valid, 0.0).to(tl.float32)
        w = _window(r, pooled_width, width)
        x0, a0 = _activated(y, w, c, valid, channels, scale, shift)
        x1, a1 = _activated(y, w + 1, c, valid, channels, scale, shift)
        x2, a2 = _activated(y, w + width, c, valid, channels, scale, shift)
        x3, a3 = _activated(y, w + width + 1, c, valid, channels, scale, shift)
        g0, g1, g2, g3 = _unpool(a0, a1, a2, a3, g, y.dtype.element_ty)
        _store_grad(grad_y, w, c, valid, channels, x0, g0, f0, f1, f2)
        _store_grad(grad_y, w + 1, c, valid, channels, x1, g1, f0, f1, f2)
        _store_grad(grad_y, w + width, c, valid, channels, x2, g2, f0, f1, f2)
        _store_grad(grad_y, w + width + 1, c, valid, channels, x3, g3, f0, f1, f2)
    else:
        x = tl.load(y + at, valid, 0.0).to(tl.float32)
        if ADD:
            g = tl.load(grad_residual + at, valid, 0.0).to(tl.float32)
        else:
            g = tl.load(grad_out + at, valid, 0.0).to(tl.float32)
            if RELU:
                g = tl.where(x * scale[None, :] + shift[None, :] > 0, g, 0.0)
        _store_grad(grad_y, r, c, valid, channels, x, g, f0, f1, f2)
