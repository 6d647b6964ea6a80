"""Log-probabilities, with a backward pass of our own for large batches on the eager path.

Every loss here is a function of log p, of log p_y and of the sum of log p over classes. Under plain
autograd the gradients of the three meet in buffers as large as the logits, and on a CPU such a
buffer costs more than the arithmetic on it. Together they are

    dL/dz_j = h_j - p_j * (sum over k of h_k),    h_j = dL/d(log p_j)

where h is one number a row, and another at the label, unless a loss touches the whole of log p. So
the gradient is built in one buffer: two in all with log p, where torch's cross entropy takes three.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

SMALLEST = 1 << 17
"""Elements from which this is faster than plain autograd, whose operators cost less to call."""


def worthwhile(logits: Tensor) -> bool:
    """Large, to be differentiated, and not compiled: a compiler fuses the plain operators."""
    return logits.numel() >= SMALLEST and logits.requires_grad and not torch.compiler.is_compiling()


class LogProbabilities(torch.autograd.Function):
    """Logits [N, K, ...] and label [N, 1, ...] to log p, log p_y and sum_k log p_k."""

    generate_vmap_rule = True

    @staticmethod
    def forward(logits: Tensor, label: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        log_p = torch.log_softmax(logits, dim=1)
        return log_p, log_p.gather(1, label).squeeze(1), log_p.sum(1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, ...]) -> None:
        ctx.set_materialize_grads(False)  # None for what the loss did not use
        ctx.save_for_backward(output[0], inputs[1])
        ctx.save_for_forward(output[0], inputs[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, None]:
        log_p, label = ctx.saved_tensors
        of_matrix, of_label, of_sum = gradients
        total: Tensor | float = 0.0  # sum over k of h_k
        if of_matrix is not None:
            total = total + of_matrix.sum(1)
        if of_label is not None:
            total = total + of_label
            of_label = of_label.unsqueeze(1)
        if of_sum is not None:
            total = total + of_sum * log_p.shape[1]
            of_sum = of_sum.unsqueeze(1)
        if not isinstance(total, Tensor):
            return None, None
        scale = -total.unsqueeze(1)
        if not torch.is_grad_enabled():  # else this will itself be differentiated
            try:
                return _gather_up_(log_p.exp(), scale, of_matrix, of_label, of_sum, label), None
            except (
                RuntimeError
            ):  # a batch of gradients at once (is_grads_batched) needs a new buffer
                pass
        gradient = log_p.exp() * scale
        for part in (of_matrix, of_sum):
            gradient = gradient if part is None else gradient + part
        if of_label is not None:
            gradient = gradient.scatter_add(1, label, of_label)
        return gradient, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> tuple[Tensor, Tensor, Tensor]:
        log_p, label = ctx.saved_tensors
        of_log_p = tangent - (log_p.exp() * tangent).sum(1, keepdim=True)
        return of_log_p, of_log_p.gather(1, label).squeeze(1), of_log_p.sum(1)


def _gather_up_(
    gradient: Tensor,
    scale: Tensor,
    of_matrix: Tensor | None,
    of_label: Tensor | None,
    of_sum: Tensor | None,
    label: Tensor,
) -> Tensor:
    """p * scale + h, in the buffer that holds p."""
    if of_sum is None:
        gradient.mul_(scale)
    else:
        torch.addcmul(of_sum, gradient, scale, out=gradient)
    if of_matrix is not None:
        gradient.add_(of_matrix)
    if of_label is not None:
        gradient.scatter_add_(1, label, of_label)
    return gradient
