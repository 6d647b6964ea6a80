"""The second kernel of :func:`noiseproof.kernels.adamw`.

P is the number of weights, M that of the weights with a copy in the compute dtype, which come
first.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ._update_kernels import clipped_grad, store_weights


@triton.jit
def _bias_correction(step, log_beta):
    """1 - beta ** step, in float64 so that the difference keeps its digits."""
    return (1.0 - tl.exp(step.to(tl.float64) * log_beta)).to(tl.float32)


@triton.jit
def update(
    compute_grad, grad, weights, exp_avg, exp_avg_sq, step, compute_weights, lr, partials, norm,
    num_compute, size, num_partials, rest1, log_beta1, beta2, rest2, log_beta2, eps, weight_decay,
    clip, l1, num_decayed, shrink,
    CLIP: tl.constexpr, L1: tl.constexpr, COPY: tl.constexpr, SHRINK: tl.constexpr,
    PARTIALS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Clip, decay, means and step for a block of the weights; program 0 stores the norm.

    Args:
        compute_grad: [M], compute dtype.
        grad: [P - M], float32.
        weights: [P], float32: updated.
        exp_avg: [P], float32: updated.
        exp_avg_sq: [P], float32: updated.
        step: [1], float32, the number of this step, the first being 1.
        compute_weights: [M], compute dtype: written.
        lr: [1], float32, the learning rate.
        partials: [num_partials], float32, from ``partial_squared_norms``.
        norm: [1], float32: written, the norm of the gradient before clipping.
        num_compute: M.
        size: P.
        num_partials: the number of programs of ``partial_squared_norms``.
        rest1: 1 - beta1.
        log_beta1: log(beta1).
        beta2: as in ``torch.optim.AdamW``.
        rest2: 1 - beta2.
        log_beta2: log(beta2).
        eps: as in ``torch.optim.AdamW``.
        weight_decay: as in ``torch.optim.AdamW``.
        clip: the largest norm.
        l1: the factor of the L1 penalty.
        num_decayed: the number of weights that decay, which come first.
        shrink: [1], float32, what weights are brought closer to zero by; not read without SHRINK.
        CLIP: whether the gradient is clipped.
        L1: whether there is an L1 penalty.
        COPY: whether there are weights in the compute dtype, M > 0.
        SHRINK: whether weights are shrunk.
        PARTIALS: the power of 2 from ``num_partials`` on.
        BLOCK: weights for each program.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    g = clipped_grad(
        compute_grad, grad, weights, at, partials, norm, num_compute, size, num_partials, clip, l1,
        CLIP, L1, PARTIALS,
    )  # fmt: skip
    count, rate = tl.load(step), tl.load(lr)
    w = tl.load(weights + at, inside, 0.0)
    w = tl.where(at < num_decayed, w * (1.0 - rate * weight_decay), w)
    m = tl.load(exp_avg + at, inside, 0.0)
    m += rest1 * (g - m)
    tl.store(exp_avg + at, m, inside)
    v = beta2 * tl.load(exp_avg_sq + at, inside, 0.0) + rest2 * g * g
    tl.store(exp_avg_sq + at, v, inside)
    root = tl.sqrt(v) / tl.sqrt(_bias_correction(count, log_beta2)) + eps
    w -= rate / _bias_correction(count, log_beta1) * (m / root)
    store_weights(w, weights, compute_weights, at, inside, num_compute, shrink, COPY, SHRINK)
