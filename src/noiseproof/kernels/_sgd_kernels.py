"""The second kernel of :func:`noiseproof.kernels.sgd`.

P is the number of weights, M that of the weights with a copy in the compute dtype, which come
first.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ._update_kernels import clipped_grad, store_weights


@triton.jit
def update(
    compute_grad, grad, weights, momentum_buffer, compute_weights, lr, partials, norm,
    num_compute, size, num_partials, momentum, weight_decay, clip, l1, num_decayed,
    shrink,
    NESTEROV: tl.constexpr, CLIP: tl.constexpr, L1: tl.constexpr, COPY: tl.constexpr,
    DECAY_ALL: tl.constexpr, SHRINK: tl.constexpr, PARTIALS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Clip, decay, momentum and step for a block of the weights; program 0 stores the norm.

    Args:
        compute_grad: [M], compute dtype.
        grad: [P - M], float32.
        weights: [P], float32: updated.
        momentum_buffer: [P], float32: updated.
        compute_weights: [M], compute dtype: written.
        lr: [1], float32, the learning rate.
        partials: [num_partials], float32, from ``partial_squared_norms``.
        norm: [1], float32: written, the norm of the gradient before clipping.
        num_compute: M.
        size: P.
        num_partials: the number of programs of ``partial_squared_norms``.
        momentum: as in ``torch.optim.SGD``.
        weight_decay: as in ``torch.optim.SGD``.
        clip: the largest norm.
        l1: the factor of the L1 penalty.
        num_decayed: the number of weights that decay, which come first.
        shrink: [1], float32, what weights are brought closer to zero by; not read without SHRINK.
        NESTEROV: whether the momentum is Nesterov's.
        CLIP: whether the gradient is clipped.
        L1: whether there is an L1 penalty.
        COPY: whether there are weights in the compute dtype, M > 0.
        SHRINK: whether weights are shrunk.
        DECAY_ALL: whether all weights decay.
        PARTIALS: the power of 2 from ``num_partials`` on.
        BLOCK: weights for each program.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    g = clipped_grad(
        compute_grad, grad, weights, at, partials, norm, num_compute, size, num_partials, clip, l1,
        CLIP, L1, PARTIALS,
    )  # fmt: skip
    w = tl.load(weights + at, inside, 0.0)
    if DECAY_ALL:
        g += weight_decay * w
    else:
        g = tl.where(at < num_decayed, g + weight_decay * w, g)
    m = momentum * tl.load(momentum_buffer + at, inside, 0.0) + g
    tl.store(momentum_buffer + at, m, inside)
    if NESTEROV:
        m = g + momentum * m
    w -= tl.load(lr) * m
    store_weights(w, weights, compute_weights, at, inside, num_compute, shrink, COPY, SHRINK)
