"""Losses of a transformed prediction or label.

A :class:`Mapped` form gives the inner loss another prediction: clipped, nearly one-hot, corrected.
The others mix the values of the inner loss for several labels.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .._errors import UsageError
from ..syntax import Hyper, declare_form
from ._expression import Kind
from ._forms import Form, Negative, Normalized, Symmetrized
from ._prediction import Prediction, extremes


@dataclass(frozen=True)
class Mapped(Form):
    """The inner loss of another prediction, which :meth:`map_prediction` computes."""

    @abc.abstractmethod
    def map_prediction(self, p: Prediction) -> Prediction: ...

    def at_label(self, p: Prediction) -> Tensor:
        return self.inner.at_label(self.map_prediction(p))

    def per_class(self, p: Prediction) -> Tensor:
        return self.inner.per_class(self.map_prediction(p))

    def class_sum(self, p: Prediction) -> Tensor | float:
        return self.inner.class_sum(self.map_prediction(p))

    @property
    def kind(self) -> Kind:
        return self.inner.kind


@dataclass(frozen=True)
class LogitClipped(Mapped):
    """The inner loss of logits whose norm is clipped to tau."""

    tau: float
    word = "logit_clip"
    hyper: ClassVar[Mapping[str, Hyper]] = {"tau": Hyper(1.0, above=0, name="tau")}

    def map_prediction(self, p: Prediction) -> Prediction:
        z = p.upcast_logits
        norm = torch.linalg.vector_norm(z, dim=1, keepdim=True)
        # Where nothing is clipped the factor is constant: at z = 0 the norm has no derivative.
        factor = torch.where(norm > self.tau, self.tau / norm.clamp(min=self.tau), 1.0)
        return Prediction(z * factor, p.label)


@dataclass(frozen=True)
class Softplus(Mapped):
    """The inner loss of softplus(z) divided by its mean over classes."""

    word = "softplus"

    def map_prediction(self, p: Prediction) -> Prediction:
        z = nn.functional.softplus(p.upcast_logits)
        return Prediction(z / z.mean(1, keepdim=True), p.label)


@dataclass(frozen=True)
class EpsilonSoftmax(Mapped):
    """The inner loss of p' = (p + m e_argmax) / (1 + m), with p' at least 1e-8."""

    m: float
    word = "epsilon_softmax"
    hyper: ClassVar[Mapping[str, Hyper]] = {"m": Hyper(1e5, at_least=0, name="m")}
    LOG_FLOOR: ClassVar[float] = math.log(1e-8)

    def map_prediction(self, p: Prediction) -> Prediction:
        log_p = p.log_p
        top = torch.zeros_like(log_p, dtype=torch.bool).scatter(
            1, log_p.argmax(1, keepdim=True), True
        )
        mixed = torch.where(
            top, torch.log1p(torch.expm1(log_p) / (1 + self.m)), log_p - math.log1p(self.m)
        )
        return Prediction.of_log_p(mixed.clamp(min=self.LOG_FLOOR), p.label)


@dataclass(frozen=True)
class Bootstrapped(Form):
    """beta L(f, y) + (1 - beta) times the loss with the prediction as label.

    That is the sum of p_k L(f, k), or, hard, the loss at the most probable class.
    """

    beta: float
    hard: float
    word = "bootstrap"
    hyper: ClassVar[Mapping[str, Hyper]] = {
        "beta": Hyper(0.95, at_least=0, at_most=1, name="beta"),
        "hard": Hyper(0.0, at_least=0, at_most=1, integer=True, name="hard"),
    }

    def per_class(self, p: Prediction) -> Tensor:
        matrix = self.inner.per_class(p)
        if self.hard:
            at_prediction = matrix.gather(1, p.logits.argmax(1, keepdim=True))
        else:
            at_prediction = (p.log_p.exp() * matrix).sum(1, keepdim=True)
        return self.beta * matrix + (1 - self.beta) * at_prediction

    @property
    def kind(self) -> Kind:
        known = self.inner.kind != "undetermined" and self.beta < 1
        return "passive" if known else self.inner.kind


class TransitionMatrix(nn.Module):
    """A transition matrix T; T[i, j] is the probability that true class i is labelled j."""

    T: Tensor

    def __init__(self, T: Any) -> None:
        super().__init__()
        matrix = torch.as_tensor(T)
        matrix = matrix if matrix.is_floating_point() else matrix.to(torch.get_default_dtype())
        if matrix.dim() != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 2:
            raise UsageError(f"T must be [K, K]; its shape was {list(matrix.shape)}")
        bounds = extremes(matrix)
        if bounds is not None:
            rows = matrix.sum(1)
            if not bounds[0] >= 0 or not torch.allclose(rows, torch.ones_like(rows), atol=1e-4):
                raise UsageError(
                    "T must have rows of probabilities, each with the sum 1: T[i, j] is the "
                    "probability that true class i is given as j"
                )
        self.register_buffer("T", matrix)

    def apply_over_classes(self, values: Tensor, matrix: Tensor) -> Tensor:
        """Values [N, K, ...] times a [K, K] matrix over the classes, without autocast."""
        if matrix.shape[0] != values.shape[1]:
            raise UsageError(
                f"T has {matrix.shape[0]} classes, and the logits have {values.shape[1]}"
            )
        with torch.autocast(values.device.type, enabled=False):
            return (values.movedim(1, -1) @ matrix.to(values.dtype)).movedim(-1, 1)

    def forward(self, values: Tensor) -> Tensor:
        return self.apply_over_classes(values, self.T)


@dataclass(frozen=True, eq=False)
class _Corrected(Form):
    transition: TransitionMatrix

    def functions(self) -> tuple[Callable[[Tensor], Tensor], ...]:
        return (*self.inner.functions(), self.transition)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)) or self.inner != other.inner:
            return False
        return torch.equal(self.transition.T, other.transition.T)

    def __hash__(self) -> int:
        return hash((self.word, self.inner))

    def _argument_text(self, name: str) -> str:
        return "T"


@dataclass(frozen=True, eq=False)
class ForwardCorrected(_Corrected, Mapped):
    """The inner loss of T'p, the probabilities of the noisy labels."""

    word = "forward_correction"

    def map_prediction(self, p: Prediction) -> Prediction:
        noisy_p = self.transition(p.log_p.exp())
        tiny = torch.finfo(noisy_p.dtype).tiny  # no gradient where a noisy label has probability 0
        return Prediction.of_log_p(noisy_p.clamp(min=tiny).log(), p.label)


@dataclass(frozen=True, eq=False)
class BackwardCorrected(_Corrected):
    """sum over k of (T^-1)[y, k] L(f, k), whose mean over noisy labels is the loss at the true."""

    word = "backward_correction"

    def per_class(self, p: Prediction) -> Tensor:
        matrix = self.inner.per_class(p)
        inverse = torch.linalg.inv(self.transition.T.to(matrix.dtype))
        return self.transition.apply_over_classes(matrix, inverse.T)

    @property
    def kind(self) -> Kind:
        return "undetermined" if self.inner.kind == "undetermined" else "passive"


FORMS: Mapping[str, type[Form]] = {
    form.word: form
    for form in (
        Normalized,
        Symmetrized,
        Negative,
        EpsilonSoftmax,
        LogitClipped,
        Softplus,
        Bootstrapped,
    )
}
"""The forms that can be written in texts, by their words."""

for _form in FORMS.values():
    declare_form(_form.word, _form.hyper)
