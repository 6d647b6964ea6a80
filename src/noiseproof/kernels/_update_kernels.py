"""What the kernels of all optimizers share: how an update begins, and how it ends.

P is the number of weights, M that of the weights with a copy in the compute dtype, which come
first.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def load_grad(compute_grad, grad, weights, at, num_compute, size, l1, L1: tl.constexpr):
    """The gradient at the indices ``at``, in float32, with that of the L1 penalty.

    Args:
        compute_grad: [M], compute dtype.
        grad: [P - M], float32.
        weights: [P], float32.
        at: the indices, from 0 to P - 1 where they are valid.
        num_compute: M.
        size: P.
        l1: the factor of the L1 penalty.
        L1: whether there is one.
    """
    g = tl.load(compute_grad + at, at < num_compute, 0.0).to(tl.float32)
    g += tl.load(grad + at - num_compute, (at >= num_compute) & (at < size), 0.0)
    if L1:
        w = tl.load(weights + at, at < size, 0.0)
        g += l1 * ((w > 0).to(tl.float32) - (w < 0).to(tl.float32))
    return g


@triton.jit
def partial_squared_norms(
    compute_grad, grad, weights, partials, num_compute, size, l1,
    L1: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The sum of the squares of every program's share of the gradient.

    Args:
        compute_grad: [M], compute dtype.
        grad: [P - M], float32.
        weights: [P], float32.
        partials: [programs], float32: written, one sum for each program.
        num_compute: M.
        size: P.
        l1: the factor of the L1 penalty.
        L1: whether there is one.
        BLOCK: elements that a program reads at a time.
    """
    total = 0.0
    for start in range(tl.program_id(0) * BLOCK, size, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        g = load_grad(compute_grad, grad, weights, at, num_compute, size, l1, L1)
        total += tl.sum(g * g, 0)
    tl.store(partials + tl.program_id(0), total)


@triton.jit
def clipped_grad(
    compute_grad, grad, weights, at, partials, norm, num_compute, size, num_partials, clip, l1,
    CLIP: tl.constexpr, L1: tl.constexpr, PARTIALS: tl.constexpr,
):  # fmt: skip
    """The gradient at the indices ``at`` after clipping; program 0 stores the norm before it.

    Args:
        compute_grad: [M], compute dtype.
        grad: [P - M], float32.
        weights: [P], float32.
        at: the indices, from 0 to P - 1 where they are valid.
        partials: [num_partials], float32, from ``partial_squared_norms``.
        norm: [1], float32: written.
        num_compute: M.
        size: P.
        num_partials: the number of programs of ``partial_squared_norms``.
        clip: the largest norm.
        l1: the factor of the L1 penalty.
        CLIP: whether the gradient is clipped.
        L1: whether there is an L1 penalty.
        PARTIALS: the power of 2 from ``num_partials`` on.
    """
    i = tl.arange(0, PARTIALS)
    total_norm = tl.sqrt(tl.sum(tl.load(partials + i, i < num_partials, 0.0), 0))
    if tl.program_id(0) == 0:
        tl.store(norm, total_norm)
    g = load_grad(compute_grad, grad, weights, at, num_compute, size, l1, L1)
    if CLIP:
        g = g * tl.minimum(clip / (total_norm + 1e-6), 1.0)
    return g


@triton.jit
def store_weights(
    w, weights, compute_weights, at, inside, num_compute, shrink,
    COPY: tl.constexpr, SHRINK: tl.constexpr,
):  # fmt: skip
    """Shrink the new weights ``w`` at the indices ``at``, and store them and their copy.

    Args:
        w: the new weights, float32.
        weights: [P], float32: written.
        compute_weights: [M], compute dtype: written.
        at: the indices.
        inside: which of them are valid.
        num_compute: M.
        shrink: [1], float32, what weights are brought closer to zero by; not read without SHRINK.
        COPY: whether there are weights in the compute dtype, M > 0.
        SHRINK: whether weights are shrunk.
    """
    if SHRINK:
        s = tl.load(shrink)
        w -= tl.minimum(tl.maximum(w, -s), s)
    tl.store(weights + at, w, inside)
    if COPY:
        tl.store(compute_weights + at, w.to(compute_weights.dtype.element_ty), at < num_compute)
