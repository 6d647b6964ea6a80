from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _gradient(low, rest, weights, at, wide, size, l1, L1: tl.constexpr):
    g = tl.load(low + at, at < wide, 0.0).to(tl.float32)
    g += tl.load(rest + at - wide, (at >= wide) & (at < size), 0.0)
    if L1:
        w = tl.load(weights + at, at < size, 0.0)
        g += l1 * ((w > 0).to(tl.float32) - (w < 0).to(tl.float32))
    return g


@triton.jit
def squares(low, rest, weights, partial, wide, size, l1, L1: tl.constexpr, BLOCK: tl.constexpr):
    """Of a share of the gradient, the sum of its squares."""
    total = 0.0
    for start in range(tl.program_id(0) * BLOCK, size, tl.num_programs(0) * BLOCK):
        g = _gradient(low, rest, weights, start + tl.arange(0, BLOCK), wide, size, l1, L1)
        total += tl.sum(g * g, 0)
    tl.store(partial + tl.program_id(0), total)


@triton.jit
def update(
    low, rest, weights, momenta, copy, rate, partial, norm, wide, size, shares,
    momentum, weight_decay, clip, l1,
    NESTEROV: tl.constexpr, CLIP: tl.constexpr, L1: tl.constexpr, COPY: tl.constexpr,
    SHARES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Clip, decay, momentum and step, for a block of the weights; the first notes the norm."""
    s = tl.arange(0, SHARES)
    length = tl.sqrt(tl.sum(tl.load(partial + s, s < shares, 0.0), 0))
    if tl.program_id(0) == 0:
        tl.store(norm, length)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    g = _gradient(low, rest, weights, at, wide, size, l1, L1)
    if CLIP:
        g = g * tl.minimum(clip / (length + 1e-6), 1.0)
    w = tl.load(weights + at, inside, 0.0)
    g += weight_decay * w
    m = momentum * tl.load(momenta + at, inside, 0.0) + g
    tl.store(momenta + at, m, inside)
    if NESTEROV:
        m = g + momentum * m
    w -= tl.load(rate) * m
    tl.store(weights + at, w, inside)
    if COPY:
        tl.store(copy + at, w.to(copy.dtype.element_ty), at < wide)
