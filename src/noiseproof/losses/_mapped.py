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
from ._prediction import Prediction, extremes, is_largest


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
        # The squared norm, in units of tau: the norm itself has no derivative at z = 0.
        square = (z / self.tau).square().sum(1, keepdim=True)
        return Prediction(z * square.clamp(min=1).rsqrt(), p.label)


@dataclass(frozen=True)
class Softplus(Mapped):
    """The inner loss of softplus(z) divided by its mean over classes."""

    word = "softplus"
    EXPONENTIAL_BELOW: ClassVar[float] = -37.0  # there softplus(z) is exp(z) to float64's digits

    def map_prediction(self, p: Prediction) -> Prediction:
        z = p.upcast_logits
        # Where all logits are very negative, softplus underflows. A common factor, exp(-largest),
        # keeps the largest near 1, and the mean takes it out again.
        largest = z.amax(1, keepdim=True).detach().clamp(max=0)
        floor = self.EXPONENTIAL_BELOW
        small = z < floor
        scaled = torch.where(
            small,
            torch.exp(torch.where(small, z - largest, 0.0)),  # elsewhere it could overflow
            nn.functional.softplus(torch.where(small, 0.0, z), threshold=40)
            * torch.exp(-largest.clamp(min=floor)),
        )
        return Prediction(scaled / scaled.mean(1, keepdim=True), p.label)


@dataclass(frozen=True)
class EpsilonSoftmax(Mapped):
    """The inner loss of p' = (p + m e_argmax) / (1 + m), with p' at least 1e-8."""

    m: float
    word = "epsilon_softmax"
    hyper: ClassVar[Mapping[str, Hyper]] = {"m": Hyper(1e5, at_least=0, name="m")}
    LOG_FLOOR: ClassVar[float] = math.log(1e-8)

    def map_prediction(self, p: Prediction) -> Prediction:
        log_p = p.log_p
        top = is_largest(log_p)
        # For m near 0 the first formula is infinite at a class of probability 0, and so would be
        # its part of the gradient, though the class takes the second.
        top_log_p = log_p.where(top, 0.0)
        mixed = torch.where(
            top, torch.log1p(torch.expm1(top_log_p) / (1 + self.m)), log_p - math.log1p(self.m)
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

    def check_fits(self, num_classes: int) -> None:
        if len(self.T) != num_classes:
            raise UsageError(f"T has {len(self.T)} classes, and the logits have {num_classes}")

    def apply_over_classes(self, values: Tensor, matrix: Tensor) -> Tensor:
        """Values [N, K, ...] times a [K, K] matrix over the classes, without autocast."""
        self.check_fits(values.shape[1])
        with torch.autocast(values.device.type, enabled=False):
            return (values.movedim(1, -1) @ matrix.to(values.dtype)).movedim(-1, 1)

    def forward(self, logits: Tensor, log_p: Tensor) -> Tensor:
        """The log-probabilities of the noisy labels, log(T'p), as a log-sum-exp.

        A label that T never gives has the least positive probability, and no gradient. Beside the
        log p of the class that most of a label's probability comes from, only differences of logits
        are used: those of very negative log p have fewer digits.
        """
        self.check_fits(logits.shape[1])
        T = self.T.to(log_p.dtype)
        never = (T == 0).all(0)
        log_T = T.log().masked_fill(never, math.log(torch.finfo(T.dtype).tiny))
        z = logits.movedim(1, -1)
        main = (z.unsqueeze(-1) + log_T).argmax(-2)  # for each label, [N, ..., K]
        differences = z.unsqueeze(-1) - z.gather(-1, main).unsqueeze(-2)
        main_log_p = log_p.movedim(1, -1).gather(-1, main)
        return (main_log_p + torch.logsumexp(differences + log_T, -2)).movedim(-1, 1)


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
        bounds = extremes(self.transition.T)
        if bounds is not None and bounds[0] > 1e-30:  # then T'p does not underflow
            noisy_p = self.transition.apply_over_classes(p.log_p.exp(), self.transition.T)
            return Prediction.of_log_p(noisy_p.log(), p.label)
        return Prediction.of_log_p(self.transition(p.upcast_logits, p.log_p), p.label)


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
