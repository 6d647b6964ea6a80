"""A prediction, and what losses read off it: log p, log p_y, the sum of log p over classes.

At a label, most losses here are functions of log p_y and of the sum of log p alone. Under plain
autograd their gradients meet in buffers as large as the logits, and on a CPU such a buffer costs
more than the arithmetic on it. In closed form, with a and b the gradients of the two,

    dL/dz_j = a * [j = y] + b - p_j * (a + K * b)

so for large batches on a CPU a backward pass of our own keeps nothing of that size between the
passes, and builds the gradient in place of p.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import Tensor


class Prediction:
    """What a network said of a batch: logits [N, K, ...] and, where there is one, the label.

    What is read off it is computed when first asked for, and then shared by all terms of a sum.
    ``whole`` says that log p of every class will be read, and not only log p_y and the sum.
    """

    def __init__(self, logits: Tensor, label: Tensor | None = None, *, whole: bool = True) -> None:
        self.logits = logits
        self.label = label  # [N, 1, ...], int64
        self._log_p: Tensor | None = None
        self._label_log_p: Tensor | None = None
        self._sum_log_p: Tensor | None = None
        if label is not None and not whole and worthwhile(logits):
            rows = LabelAndSum.apply(logits, label)  # type: ignore[no-untyped-call]
            self._label_log_p, self._sum_log_p = rows

    @staticmethod
    def of_log_p(log_p: Tensor, label: Tensor | None = None) -> Prediction:
        """A prediction given by its log-probabilities, which are taken as they are."""
        prediction = Prediction(log_p, label)
        prediction._log_p = log_p
        return prediction

    @property
    def num_classes(self) -> int:
        return self.logits.shape[1]

    @property
    def computed_logits(self) -> Tensor:
        """The logits in the precision of the computation."""
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
            self._label_log_p = self.pick(self.log_p)
        return self._label_log_p

    @property
    def sum_log_p(self) -> Tensor:
        """The sum of log p over classes, [N, ...]."""
        if self._sum_log_p is None:
            self._sum_log_p = self.log_p.sum(1)
        return self._sum_log_p

    def pick(self, matrix: Tensor) -> Tensor:
        """The entry of the label in every row of a [N, K, ...] matrix."""
        assert self.label is not None
        return matrix.gather(1, self.label).squeeze(1)

    def sum_of_others(self, matrix: Tensor) -> Tensor:
        """The sum of every row without the entry of the label: added up, not subtracted."""
        assert self.label is not None
        return matrix.scatter(1, self.label, 0.0).sum(1)


SMALLEST = 1 << 17
"""Elements from which this is faster than plain autograd, whose operators cost less to call."""


def worthwhile(logits: Tensor) -> bool:
    """Large, on a CPU, to be differentiated, and not compiled.

    A compiler fuses the plain operators, and a GPU, where memory costs nothing to touch, runs them
    10 to 20 % faster (one H200, 65536×100 to 8192×32000), though in three times the memory.
    """
    large = logits.numel() >= SMALLEST and logits.device.type == "cpu"
    return large and logits.requires_grad and not torch.compiler.is_compiling()


def compute_dtype(logits: Tensor) -> torch.dtype:
    """At least float32: half precision has too few digits for a sum over classes."""
    return torch.float64 if logits.dtype == torch.float64 else torch.float32


def log_softmax(logits: Tensor) -> Tensor:
    return torch.log_softmax(logits, dim=1, dtype=compute_dtype(logits))


def softmax(logits: Tensor) -> Tensor:
    return torch.softmax(logits, dim=1, dtype=compute_dtype(logits))


class LabelAndSum(torch.autograd.Function):
    """Logits [N, K, ...] and label [N, 1, ...] to log p_y and sum_k log p_k, both [N, ...].

    Both passes recompute from the inputs, so that second derivatives and vmap follow by themselves.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(logits: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        return _pick(log_softmax(logits), label)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, ...]) -> None:
        ctx.set_materialize_grads(False)  # None for what the loss did not use
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, a: Tensor | None, b: Tensor | None) -> tuple[Tensor | None, None]:
        logits, label = ctx.saved_tensors
        a = None if a is None else a.unsqueeze(1)
        b = None if b is None else b.unsqueeze(1)
        gradient = None
        if not torch.is_grad_enabled():  # else this will itself be differentiated
            # Many gradients at once (is_grads_batched) do not fit into one buffer.
            with contextlib.suppress(RuntimeError):
                gradient = _gradient_(softmax(logits), label, a, b)
        if gradient is None:
            gradient = _gradient(softmax(logits), label, a, b)
        return gradient if gradient is None else gradient.to(logits.dtype), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> tuple[Tensor, Tensor]:
        logits, label = ctx.saved_tensors
        return _pick(tangent - (softmax(logits) * tangent).sum(1, keepdim=True), label)


def _pick(matrix: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
    return matrix.gather(1, label).squeeze(1), matrix.sum(1)


def _gradient(p: Tensor, label: Tensor, a: Tensor | None, b: Tensor | None) -> Tensor | None:
    gradient = None
    if b is not None:
        gradient = b - p * (b * p.shape[1])
    if a is not None:
        of_label = (-p * a).scatter_add(1, label, a)
        gradient = of_label if gradient is None else gradient + of_label
    return gradient


def _gradient_(p: Tensor, label: Tensor, a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """The same in the buffer that holds p."""
    if a is None:
        return _gradient(p, label, a, b)
    if b is None:
        p.mul_(-a)
    else:
        p.mul_(-a - b * p.shape[1]).add_(b)  # torch.addcmul is four times slower on such shapes
    return p.scatter_add_(1, label, a)


def extremes(tensor: Tensor) -> tuple[float, float] | None:
    """The least and the greatest value, NaN if there is one, where a look costs nothing; else None.

    It costs nothing for a CPU tensor in eager mode. On a GPU it would wait for the device; under
    ``torch.compile``, ``torch.export`` or ``torch.func.vmap`` there are no values yet.
    """
    if torch.compiler.is_compiling() or tensor.device.type != "cpu" or tensor.numel() == 0:
        return None
    try:
        least, greatest = tensor.detach().aminmax()
        return least.item(), greatest.item()
    except RuntimeError:  # a transform or a fake tensor holds the values back
        return None
