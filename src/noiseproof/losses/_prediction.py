"""A prediction, and what losses compute from: log p, log p_y, the sum of log p over classes.

At a label, most losses here are functions of two reductions alone: log p_y and the sum of log p
over classes. Plain autograd allocates several buffers as large as the logits for their gradient,
and on a CPU such a buffer costs more than the arithmetic on it. In closed form, with a and b the
gradients by the two reductions,

    dL/dz_j = a * [j = y] + b - p_j * (a + K * b)

so for large batches on a CPU a custom backward pass saves no tensor of that size, and computes the
gradient in the buffer of p.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import Tensor


class Prediction:
    """The logits of a batch, and what losses compute from them.

    Each property is computed when it is first used, and shared by all terms of a sum.

    Args:
        logits: [N, K, ...].
        label: the class index of each sample, int64 [N, 1, ...], if there is one.
        needs_log_p: whether log p of every class will be used, or only log p_y and the sum over
            classes.
    """

    def __init__(
        self, logits: Tensor, label: Tensor | None = None, *, needs_log_p: bool = True
    ) -> None:
        self.logits = logits
        self.label = label
        self._log_p: Tensor | None = None
        self._label_log_p: Tensor | None = None
        self._sum_log_p: Tensor | None = None
        if label is not None and not needs_log_p and use_custom_backward(logits):
            reductions = LabelAndSum.apply(logits, label)  # type: ignore[no-untyped-call]
            self._label_log_p, self._sum_log_p = reductions

    @staticmethod
    def of_log_p(log_p: Tensor, label: Tensor | None = None) -> Prediction:
        """A prediction given by its log-probabilities, which are not normalized again."""
        prediction = Prediction(log_p, label)
        prediction._log_p = log_p
        return prediction

    @property
    def num_classes(self) -> int:
        return self.logits.shape[1]

    @property
    def upcast_logits(self) -> Tensor:
        """The logits in the dtype of the computation, float32 or float64."""
        return self.logits.to(compute_dtype(self.logits))

    @property
    def log_p(self) -> Tensor:
        """log p, [N, K, ...]."""
        if self._log_p is None:
            self._log_p = log_softmax(self.logits)
        return self._log_p

    @property
    def label_log_p(self) -> Tensor:
        """log p_y, [N, ...]."""
        if self._label_log_p is None:
            self._label_log_p = self.gather_label(self.log_p)
        return self._label_log_p

    @property
    def sum_log_p(self) -> Tensor:
        """The sum of log p over classes, [N, ...]."""
        if self._sum_log_p is None:
            self._sum_log_p = self.log_p.sum(1)
        return self._sum_log_p

    def gather_label(self, matrix: Tensor) -> Tensor:
        """The entry of the label in every row of a [N, K, ...] matrix, [N, ...]."""
        assert self.label is not None
        return matrix.gather(1, self.label).squeeze(1)

    def sum_of_others(self, matrix: Tensor) -> Tensor:
        """The sum of every row without the entry of the label, [N, ...].

        The label is masked, not subtracted, so that no digits cancel.
        """
        assert self.label is not None
        return matrix.scatter(1, self.label, 0.0).sum(1)


MIN_SIZE_CUSTOM_BACKWARD = 1 << 17
"""The number of logits from which the custom backward is faster than plain autograd."""


def use_custom_backward(logits: Tensor) -> bool:
    """Whether the batch is large, on a CPU, requires a gradient and is not compiled.

    ``torch.compile`` fuses the plain operators, and a GPU runs them 10 to 20 % faster (one H200,
    65536×100 to 8192×32000), though in three times the memory.
    """
    large = logits.numel() >= MIN_SIZE_CUSTOM_BACKWARD and logits.device.type == "cpu"
    return large and logits.requires_grad and not torch.compiler.is_compiling()


def compute_dtype(logits: Tensor) -> torch.dtype:
    """The dtype that losses are computed in: float32, or float64 for float64 logits."""
    return torch.float64 if logits.dtype == torch.float64 else torch.float32


def log_softmax(logits: Tensor) -> Tensor:
    return torch.log_softmax(logits, dim=1, dtype=compute_dtype(logits))


def is_largest(values: Tensor) -> Tensor:
    """A mask of the largest entry over the classes; of one alone where several are equal."""
    return torch.zeros_like(values, dtype=torch.bool).scatter(
        1, values.argmax(1, keepdim=True), True
    )


def softmax(logits: Tensor) -> Tensor:
    return torch.softmax(logits, dim=1, dtype=compute_dtype(logits))


class LabelAndSum(torch.autograd.Function):
    """Logits [N, K, ...] and label [N, 1, ...] to log p_y and sum_k log p_k, both [N, ...].

    The backward pass recomputes the softmax from the inputs, so second derivatives and vmap work.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(logits: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        return _label_and_sum(log_softmax(logits), label)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, ...]) -> None:
        ctx.set_materialize_grads(False)  # None for an output that the loss does not use
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, a: Tensor | None, b: Tensor | None) -> tuple[Tensor | None, None]:
        logits, label = ctx.saved_tensors
        a = None if a is None else a.unsqueeze(1)
        b = None if b is None else b.unsqueeze(1)
        grad = None
        if not torch.is_grad_enabled():  # otherwise this is to be differentiated itself
            # In-place operators raise if several gradients are computed at once (is_grads_batched).
            with contextlib.suppress(RuntimeError):
                grad = _logits_grad_(softmax(logits), label, a, b)
        if grad is None:
            grad = _logits_grad(softmax(logits), label, a, b)
        return grad if grad is None else grad.to(logits.dtype), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> tuple[Tensor, Tensor]:
        logits, label = ctx.saved_tensors
        return _label_and_sum(tangent - (softmax(logits) * tangent).sum(1, keepdim=True), label)


def _label_and_sum(matrix: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
    return matrix.gather(1, label).squeeze(1), matrix.sum(1)


def _logits_grad(p: Tensor, label: Tensor, a: Tensor | None, b: Tensor | None) -> Tensor | None:
    grad = None
    if b is not None:
        grad = b - p * (b * p.shape[1])
    if a is not None:
        label_grad = (-p * a).scatter_add(1, label, a)
        grad = label_grad if grad is None else grad + label_grad
    return grad


def _logits_grad_(p: Tensor, label: Tensor, a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """The same in place, in the buffer of p."""
    if a is None:
        return _logits_grad(p, label, a, b)
    if b is None:
        p.mul_(-a)
    else:
        p.mul_(-a - b * p.shape[1]).add_(b)  # torch.addcmul is four times slower on such shapes
    return p.scatter_add_(1, label, a)


def extremes(tensor: Tensor) -> tuple[float, float] | None:
    """The least and the greatest value of a CPU tensor in eager mode; NaN if there is one.

    None elsewhere: reading a GPU tensor would wait for the device, and under ``torch.compile``,
    ``torch.export`` or ``torch.func.vmap`` there are no values yet.
    """
    if torch.compiler.is_compiling() or tensor.device.type != "cpu" or tensor.numel() == 0:
        return None
    try:
        least, greatest = tensor.detach().aminmax()
        return least.item(), greatest.item()
    except RuntimeError:  # a tensor of a transform, or a fake tensor
        return None
