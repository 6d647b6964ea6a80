"""Batch norm with what follows it: ReLU, an addition before it, a pooling after it.

Images lie with their channels last, so a tensor is a matrix: a row a pixel, a column a channel.
Each pass is two kernels over that matrix with a small one between them: the first sums up what each
channel needs, block of rows by block of rows; the second applies it.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _tile(y, start, last, c, channels, M: tl.constexpr):
    r = start + tl.arange(0, M)
    valid = (r < last)[:, None] & (c < channels)[None, :]
    at = y + r.to(tl.int64)[:, None] * channels + c[None, :]
    return tl.load(at, valid, 0.0).to(tl.float32)


@triton.jit
def moments(y, means, squares, rows, channels, each, M: tl.constexpr, C: tl.constexpr):
    """Of a block of ``each`` rows, every channel's mean and sum of squared deviations."""
    block = tl.program_id(0)
    c = tl.program_id(1) * C + tl.arange(0, C)
    inside = c < channels
    first = block * each
    last = tl.minimum(first + each, rows)
    # Deviations from about the mean lose no digits. They are added up thread by thread, and joined
    # once at the end: to join them for every tile would make the loads wait for each other.
    about = tl.sum(_tile(y, first, last, c, channels, M), 0) / tl.minimum(last - first, M)
    total = tl.zeros([M, C], tl.float32)
    square = tl.zeros([M, C], tl.float32)
    for start in range(first, last, M):
        valid = (start + tl.arange(0, M) < last)[:, None] & inside[None, :]
        off = tl.where(valid, _tile(y, start, last, c, channels, M) - about[None, :], 0.0)
        total += off
        square += off * off
    n = (last - first).to(tl.float32)
    off = tl.sum(total, 0)
    tl.store(means + block * channels + c, about + off / n, inside)
    tl.store(
        squares + block * channels + c, tl.maximum(tl.sum(square, 0) - off * off / n, 0.0), inside
    )


@triton.jit
def statistics(
    means, squares, weight, bias, running_mean, running_var, conv_bias, saved,
    rows, channels, real, each, blocks, momentum, eps,
    HAS_BIAS: tl.constexpr, B: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """Blocks to the whole: mean, 1/deviation, scale and shift; and the running statistics."""
    c = tl.program_id(0) * C + tl.arange(0, C)
    inside = c < channels
    true = c < real
    b = tl.arange(0, B)
    valid = (b < blocks)[:, None] & inside[None, :]
    m = tl.load(means + b[:, None] * channels + c[None, :], valid, 0.0)
    s = tl.load(squares + b[:, None] * channels + c[None, :], valid, 0.0)
    n = tl.where(b < blocks, tl.minimum(rows - b * each, each), 0).to(tl.float32)
    mean = tl.sum(m * n[:, None], 0) / rows
    off = tl.where(valid, m - mean[None, :], 0.0)
    variance = (tl.sum(s, 0) + tl.sum(off * off * n[:, None], 0)) / rows
    deviation = 1 / tl.sqrt(variance + eps)
    scale = tl.load(weight + c, true, 0.0) * deviation
    tl.store(saved + c, mean, inside)
    tl.store(saved + channels + c, deviation, inside)
    tl.store(saved + 2 * channels + c, scale, inside)
    tl.store(saved + 3 * channels + c, tl.load(bias + c, true, 0.0) - mean * scale, inside)
    tracked = mean
    if HAS_BIAS:
        tracked += tl.load(conv_bias + c, true, 0.0)
    old = tl.load(running_mean + c, true, 0.0)
    tl.store(running_mean + c, old + momentum * (tracked - old), true)
    old = tl.load(running_var + c, true, 0.0)
    unbiased = variance * (rows / tl.maximum(rows - 1, 1).to(tl.float32))
    tl.store(running_var + c, old + momentum * (unbiased - old), true)


@triton.jit
def _window(p, half_width, width):
    """The first of the four pixels, two by two, that the pooled pixel p is the largest of."""
    return (p // half_width) * 2 * width + (p % half_width) * 2


@triton.jit
def _activated(y, r, c, valid, channels, scale, shift):
    at = y + r.to(tl.int64)[:, None] * channels + c[None, :]
    x = tl.load(at, valid, 0.0).to(tl.float32)
    return x, tl.maximum(x * scale[None, :] + shift[None, :], 0.0)


@triton.jit
def apply(
    y, residual, out, saved, rows, channels, half_width, width,
    RELU: tl.constexpr, ADD: tl.constexpr, POOL: tl.constexpr, M: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """relu(y * scale + shift + residual), pooled; ``rows`` are those of the result."""
    r = tl.program_id(0) * M + tl.arange(0, M)
    c = tl.program_id(1) * C + tl.arange(0, C)
    inside = c < channels
    valid = (r < rows)[:, None] & inside[None, :]
    scale = tl.load(saved + 2 * channels + c, inside, 0.0)
    shift = tl.load(saved + 3 * channels + c, inside, 0.0)
    to = r.to(tl.int64)[:, None] * channels + c[None, :]
    if POOL:
        start = _window(r, half_width, width)
        _, best = _activated(y, start, c, valid, channels, scale, shift)
        _, other = _activated(y, start + 1, c, valid, channels, scale, shift)
        best = tl.maximum(best, other)
        _, other = _activated(y, start + width, c, valid, channels, scale, shift)
        best = tl.maximum(best, other)
        _, other = _activated(y, start + width + 1, c, valid, channels, scale, shift)
        a = tl.maximum(best, other)
    else:
        a = tl.load(y + to, valid, 0.0).to(tl.float32) * scale[None, :] + shift[None, :]
        if ADD:
            a += tl.load(residual + to, valid, 0.0).to(tl.float32)
        if RELU:
            a = tl.maximum(a, 0.0)
    tl.store(out + to, a.to(out.dtype.element_ty), valid)


@triton.jit
def _shares(a0, a1, a2, a3, gradient, like):
    """The gradient of a pooled pixel to the one of its four that was chosen, the first of equals.

    Compared as they were stored, in the type of the activations.
    """
    b0, b1 = a0.to(like).to(tl.float32), a1.to(like).to(tl.float32)
    b2, b3 = a2.to(like).to(tl.float32), a3.to(like).to(tl.float32)
    best = tl.maximum(tl.maximum(b0, b1), tl.maximum(b2, b3))
    gradient = tl.where(best > 0, gradient, 0.0)
    is0 = b0 == best
    is1 = (b1 == best) & (is0 == 0)
    is2 = (b2 == best) & (is0 == 0) & (is1 == 0)
    is3 = (is0 == 0) & (is1 == 0) & (is2 == 0)
    g0, g1 = tl.where(is0, gradient, 0.0), tl.where(is1, gradient, 0.0)
    g2, g3 = tl.where(is2, gradient, 0.0), tl.where(is3, gradient, 0.0)
    return g0, g1, g2, g3


@triton.jit
def sums(
    upstream, y, out, passed, saved, sum_g, sum_gx, rows, channels, each, half_width, width,
    RELU: tl.constexpr, ADD: tl.constexpr, POOL: tl.constexpr, M: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """Of a block of rows, every channel's sum of g and of g times the normalised y.

    g is the gradient behind the ReLU and the pooling; where there was an addition it is stored too,
    being the gradient of what was added.
    """
    block = tl.program_id(0)
    c = tl.program_id(1) * C + tl.arange(0, C)
    inside = c < channels
    mean = tl.load(saved + c, inside, 0.0)
    deviation = tl.load(saved + channels + c, inside, 0.0)
    scale = tl.load(saved + 2 * channels + c, inside, 0.0)
    shift = tl.load(saved + 3 * channels + c, inside, 0.0)
    first = block * each
    last = tl.minimum(first + each, rows)
    total = tl.zeros([M, C], tl.float32)  # joined once, at the end
    weighted = tl.zeros([M, C], tl.float32)
    for start in range(first, last, M):
        r = start + tl.arange(0, M)
        valid = (r < last)[:, None] & inside[None, :]
        at = r.to(tl.int64)[:, None] * channels + c[None, :]
        g = tl.load(upstream + at, valid, 0.0).to(tl.float32)
        if POOL:
            w = _window(r, half_width, width)
            x0, a0 = _activated(y, w, c, valid, channels, scale, shift)
            x1, a1 = _activated(y, w + 1, c, valid, channels, scale, shift)
            x2, a2 = _activated(y, w + width, c, valid, channels, scale, shift)
            x3, a3 = _activated(y, w + width + 1, c, valid, channels, scale, shift)
            g0, g1, g2, g3 = _shares(a0, a1, a2, a3, g, y.dtype.element_ty)
            total += g0 + g1 + g2 + g3
            weighted += g0 * (x0 - mean[None, :]) + g1 * (x1 - mean[None, :])
            weighted += g2 * (x2 - mean[None, :]) + g3 * (x3 - mean[None, :])
        else:
            x = tl.load(y + at, valid, 0.0).to(tl.float32)
            if ADD:
                if RELU:
                    g = tl.where(tl.load(out + at, valid, 0.0) > 0, g, 0.0)
                tl.store(passed + at, g.to(passed.dtype.element_ty), valid)
            elif RELU:
                g = tl.where(x * scale[None, :] + shift[None, :] > 0, g, 0.0)
            total += g
            weighted += g * (x - mean[None, :])
    tl.store(sum_g + block * channels + c, tl.sum(total, 0), inside)
    tl.store(sum_gx + block * channels + c, tl.sum(weighted, 0) * deviation, inside)


@triton.jit
def coefficients(
    sum_g, sum_gx, saved, factors, d_weight, d_bias, rows, channels, real, blocks,
    B: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """Blocks to the whole: the gradients of weight and bias, and dy = f0 * g + f1 * y + f2."""
    c = tl.program_id(0) * C + tl.arange(0, C)
    inside = c < channels
    b = tl.arange(0, B)
    valid = (b < blocks)[:, None] & inside[None, :]
    g = tl.sum(tl.load(sum_g + b[:, None] * channels + c[None, :], valid, 0.0), 0)
    gx = tl.sum(tl.load(sum_gx + b[:, None] * channels + c[None, :], valid, 0.0), 0)
    tl.store(d_bias + c, g, c < real)
    tl.store(d_weight + c, gx, c < real)
    mean = tl.load(saved + c, inside, 0.0)
    deviation = tl.load(saved + channels + c, inside, 0.0)
    scale = tl.load(saved + 2 * channels + c, inside, 0.0)
    of_y = -scale * deviation * gx / rows
    tl.store(factors + c, scale, inside)
    tl.store(factors + channels + c, of_y, inside)
    tl.store(factors + 2 * channels + c, -scale * g / rows - of_y * mean, inside)


@triton.jit
def _send(gradient, r, c, valid, channels, x, g, f0, f1, f2):
    at = gradient + r.to(tl.int64)[:, None] * channels + c[None, :]
    d = f0[None, :] * g + f1[None, :] * x + f2[None, :]
    tl.store(at, d.to(gradient.dtype.element_ty), valid)


@triton.jit
def pass_back(
    upstream, y, passed, gradient, saved, factors, rows, channels, half_width, width,
    RELU: tl.constexpr, ADD: tl.constexpr, POOL: tl.constexpr, M: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """The gradient of y; ``rows`` are those of the upstream gradient."""
    r = tl.program_id(0) * M + tl.arange(0, M)
    c = tl.program_id(1) * C + tl.arange(0, C)
    inside = c < channels
    valid = (r < rows)[:, None] & inside[None, :]
    f0 = tl.load(factors + c, inside, 0.0)
    f1 = tl.load(factors + channels + c, inside, 0.0)
    f2 = tl.load(factors + 2 * channels + c, inside, 0.0)
    scale = tl.load(saved + 2 * channels + c, inside, 0.0)
    shift = tl.load(saved + 3 * channels + c, inside, 0.0)
    at = r.to(tl.int64)[:, None] * channels + c[None, :]
    if POOL:
        g = tl.load(upstream + at, valid, 0.0).to(tl.float32)
        w = _window(r, half_width, width)
        x0, a0 = _activated(y, w, c, valid, channels, scale, shift)
        x1, a1 = _activated(y, w + 1, c, valid, channels, scale, shift)
        x2, a2 = _activated(y, w + width, c, valid, channels, scale, shift)
        x3, a3 = _activated(y, w + width + 1, c, valid, channels, scale, shift)
        g0, g1, g2, g3 = _shares(a0, a1, a2, a3, g, y.dtype.element_ty)
        _send(gradient, w, c, valid, channels, x0, g0, f0, f1, f2)
        _send(gradient, w + 1, c, valid, channels, x1, g1, f0, f1, f2)
        _send(gradient, w + width, c, valid, channels, x2, g2, f0, f1, f2)
        _send(gradient, w + width + 1, c, valid, channels, x3, g3, f0, f1, f2)
    else:
        x = tl.load(y + at, valid, 0.0).to(tl.float32)
        if ADD:
            g = tl.load(passed + at, valid, 0.0).to(tl.float32)
        else:
            g = tl.load(upstream + at, valid, 0.0).to(tl.float32)
            if RELU:
                g = tl.where(x * scale[None, :] + shift[None, :] > 0, g, 0.0)
        _send(gradient, r, c, valid, channels, x, g, f0, f1, f2)
