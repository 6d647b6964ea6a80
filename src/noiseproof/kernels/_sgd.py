"""Gradient clipping and SGD on flat buffers, in two kernels."""

from __future__ import annotations

from torch import Tensor

from ._update import launch


def sgd(
    weights: Tensor, momentum_buffer: Tensor, compute_grad: Tensor, grad: Tensor, lr: Tensor,
    compute_weights: Tensor, momentum: float, nesterov: bool, weight_decay: float, clip: float,
    l1: float, num_decayed: int | None = None, shrink: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """``clip_grad_norm_`` and a step of ``torch.optim.SGD``, in place; returns the gradient's norm.

    The first M of all P weights have a copy in the compute dtype, such as bfloat16, which the
    network multiplies with; their gradients come in that dtype too. M is 0 where there is none.

    Args:
        weights: float32 [P], all weights; updated.
        momentum_buffer: float32 [P]; updated.
        compute_grad: compute dtype [M], the gradient of the first M weights.
        grad: float32 [P - M], the gradient of the others.
        lr: the learning rate, a float32 tensor of one element.
        compute_weights: compute dtype [M], the copy of the first M weights; updated.
        momentum: as in ``torch.optim.SGD``.
        nesterov: as in ``torch.optim.SGD``.
        weight_decay: as in ``torch.optim.SGD``.
        clip: the largest norm of the gradient; 0 for no clipping.
        l1: the factor of the L1 penalty, whose gradient is clipped with the rest.
        num_decayed: how many weights decay, the first ones; None for all.
        shrink: what every weight is brought closer to zero by after the update, and to zero where
            it is no larger; a float32 tensor of one element, or None for nothing.

    Returns:
        The norm of the gradient before clipping, a float32 tensor of one element.
    """
    from ._sgd_kernels import update

    return launch(
        update, weights, compute_grad, grad, lr, compute_weights, clip, l1, num_decayed, shrink,
        momentum_buffer=momentum_buffer, momentum=momentum, weight_decay=weight_decay,
        NESTEROV=nesterov, DECAY_ALL=num_decayed is None,
    )  # fmt: skip
