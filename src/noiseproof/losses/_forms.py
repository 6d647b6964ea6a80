"""Losses made from other losses by arithmetic over classes: normalized, symmetrized, negative.

Each form is a class, and a word in texts such as ``normalize(ce)``. Those that give the inner loss
another prediction or another label are in ``_mapped.py``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from .._errors import UsageError
from ..syntax import Hyper, number
from ._expression import Atom, Expression, Kind, Sum, add_up, with_hyper
from ._prediction import Prediction, extremes, log_softmax


@dataclass(frozen=True)
class Form(Expression):
    """A loss made from another. ``word`` is its name in texts: ``normalize(fl(gamma=2))``."""

    inner: Expression
    word: ClassVar[str]
    hyper: ClassVar[Mapping[str, Hyper]] = {}

    @classmethod
    def make(cls, inner: Expression, **hyper: float) -> Expression:
        """The form of a loss, simplified.

        Raises:
            UsageError: the loss has no such form.
        """
        return cls(inner, **hyper)

    def functions(self) -> tuple[Callable[[Tensor], Tensor], ...]:
        return self.inner.functions()

    @property
    def declared_class(self) -> Any:
        """The declared class of this form, such as NormalizedFocalLoss; None if there is none."""
        return self.inner.loss.forms.get(type(self)) if isinstance(self.inner, Atom) else None

    def __str__(self) -> str:
        if self.declared_class is not None:
            assert isinstance(self.inner, Atom)
            return with_hyper(self.declared_class, self.inner.hyper)
        names = [f.name for f in dataclasses.fields(self) if f.name != "inner"]
        arguments = [str(self.inner), *(self._argument_text(name) for name in names)]
        return f"{self.word}({', '.join(arguments)})"

    def _argument_text(self, name: str) -> str:
        return f"{name}={number(getattr(self, name))}"


@dataclass(frozen=True)
class ConstantSum(Form):
    """A form whose sum over labels is constant, computed from the inner loss and its sum."""

    @property
    def label_from_reductions(self) -> bool:
        return self.inner.label_from_reductions and self.inner.sum_from_reductions

    @property
    def sum_from_reductions(self) -> bool:
        return True


@dataclass(frozen=True)
class Normalized(ConstantSum):
    """L(f(x), y) / sum over j of L(f(x), j), for a loss that is not negative."""

    word = "normalize"

    @classmethod
    def make(cls, inner: Expression, **hyper: float) -> Expression:
        """The normalized form.

        Raises:
            UsageError: the loss can be negative, or its sum over labels can be 0.
        """
        if isinstance(inner, Normalized):
            return inner  # its sum is already 1
        if isinstance(inner, Sum) and len(inner.terms) == 1 and inner.terms[0][0] > 0:
            return cls.make(inner.terms[0][1])  # a factor cancels
        for num_classes in (2, 3, 10):
            try:
                matrix = inner.per_class(Prediction(_logits_to_normalize(inner, num_classes)))
            except ValueError:
                raise
            except Exception:  # a function for one K only: it is checked when it is called
                continue
            check_can_normalize(matrix, inner)
        return cls(inner)

    def at_label(self, p: Prediction) -> Tensor:
        if self.inner.label_from_reductions:
            return self.inner.at_label(p) / self.inner.class_sum(p)
        return p.gather_label(self.per_class(p))

    def per_class(self, p: Prediction) -> Tensor:
        matrix = self.inner.per_class(p)
        if self.inner.sum_from_reductions:
            return matrix / _as_column(self.inner.class_sum(p))
        if self.inner.functions():
            check_can_normalize(matrix, self.inner)
        return matrix / matrix.sum(1, keepdim=True)

    def class_sum(self, p: Prediction) -> Tensor | float:
        return 1.0

    @property
    def kind(self) -> Kind:
        return self.inner.kind


@dataclass(frozen=True)
class Symmetrized(ConstantSum):
    """L(f(x), y) - mean over j of L(f(x), j): symmetric, whatever the loss."""

    word = "symmetrize"

    def at_label(self, p: Prediction) -> Tensor:
        if self.inner.label_from_reductions:
            return self.inner.at_label(p) - self.inner.class_sum(p) / p.num_classes
        return p.gather_label(self.per_class(p))

    def per_class(self, p: Prediction) -> Tensor:
        matrix = self.inner.per_class(p)
        if self.inner.sum_from_reductions:
            return matrix - _as_column(self.inner.class_sum(p)) / p.num_classes
        return matrix - matrix.mean(1, keepdim=True)

    def class_sum(self, p: Prediction) -> Tensor | float:
        return 0.0

    @property
    def kind(self) -> Kind:
        # The mean adds a function of p_k to the summand of every class k.
        return "undetermined" if self.inner.kind == "undetermined" else "passive"


@dataclass(frozen=True)
class Negative(Form):
    """1 - (A - L(p_y)) / sum over k of (A - L(p_k)), for an active loss L and A = L(p_min).

    It is the normalized negative loss of the active negative losses (ANL): the loss A - L increases
    with p, so its normalized form is a share of the label, and 1 minus it that of all others.
    """

    word = "negative"
    LOG_P_MIN: ClassVar[float] = math.log(1e-7)

    def _negated(self, log_p: Tensor) -> Tensor:
        """A - L(p), elementwise."""
        assert isinstance(self.inner, Atom)
        bounded = log_p.clamp(min=self.LOG_P_MIN)
        log_p_min = torch.full_like(bounded[:1, :1], self.LOG_P_MIN)
        prediction = Prediction(log_p)
        A = add_up(self.inner.label_parts(prediction, log_p_min))
        return A - add_up(self.inner.label_parts(prediction, bounded))

    @classmethod
    def make(cls, inner: Expression, **hyper: float) -> Expression:
        if not isinstance(inner, Atom) or inner.kind != "active":
            raise UsageError(f"negative takes one active loss, such as ce, fl or gce; not {inner}")
        form = cls(inner)
        for num_classes in (2, 3, 10):
            negated = form._negated(log_softmax(probe_logits(num_classes)))
            if not bool((negated != 0).any(1).all()):
                raise UsageError(
                    f"{inner} has no negative form: it can be as large for all {num_classes} "
                    f"classes as at p = 1e-7, and would be divided by 0; take a loss that falls "
                    f"with every p, such as gce"
                )
        return form

    def per_class(self, p: Prediction) -> Tensor:
        negated = self._negated(p.log_p)
        return 1 - negated / negated.sum(1, keepdim=True)

    def class_sum(self, p: Prediction) -> Tensor | float:
        return float(p.num_classes - 1)

    @property
    def kind(self) -> Kind:
        return "passive"  # 1 - share of y is the sum of the shares of all other classes

    @property
    def sum_from_reductions(self) -> bool:
        return True


def _as_column(total: Tensor | float) -> Tensor | float:
    return total.unsqueeze(1) if isinstance(total, Tensor) else total


def check_can_normalize(matrix: Tensor, inner: Expression) -> None:
    """Raise if the matrix L(f, j), [N, K], of a loss cannot be divided by its row sums."""
    if extremes(matrix) is None:
        return
    values = matrix.detach()
    negative = values < -_rounding(inner) * values.abs().nan_to_num().amax(1, True).clamp(min=1)
    if bool(negative.any()):
        raise UsageError(
            f"{inner} cannot be normalized: it can be negative (seen: {values[negative].min():.4g})"
            f", so its share of the sum over classes is no loss; add a constant that keeps it "
            f"above 0"
        )
    if not bool((values != 0).any(1).all()):
        raise UsageError(
            f"{inner} cannot be normalized: its sum over classes can be 0 (all {values.shape[1]} "
            f"classes had loss 0 for one sample); add a small constant to the loss"
        )


def _rounding(inner: Expression) -> float:
    """How far below 0 a loss may be by rounding, in relation to the largest of its sample.

    A function of the user may be computed in float32, whatever the type of its result.
    """
    return 1e-6 if inner.functions() else 1e-12


def _logits_to_normalize(inner: Expression, num_classes: int) -> Tensor:
    """Logits at which negative values are sought.

    For a declared loss, which is computed in float64 without overflow, they go further apart: the
    margin of ``ldr(c=1e6)`` is only exceeded there.
    """
    logits = probe_logits(num_classes)
    if inner.functions():
        return logits
    one_hot = torch.eye(num_classes, dtype=torch.float64)
    return torch.cat([logits.double(), *(10.0**power * one_hot for power in range(5, 16))])


def probe_logits(num_classes: int) -> Tensor:
    """Logits at which losses are likely to fail: saturated, uniform, tied, large and random.

    Of many classes only some are saturated, so that the logits grow as K and not as its square.
    """
    classes = torch.arange(0, num_classes, max(1, num_classes // 32))
    one_hot = torch.nn.functional.one_hot(classes, num_classes).float()
    tied = one_hot + one_hot.roll(1, 1)
    uniform = torch.ones(1, num_classes)
    random = torch.randn(256, num_classes, generator=torch.Generator().manual_seed(0))
    return torch.cat(
        [scale * rows for rows in (one_hot, -one_hot, tied) for scale in (1.0, 10.0, 100.0, 1e4)]
        + [scale * random for scale in (0.1, 1.0, 10.0, 100.0)]
        + [scale * uniform for scale in (0.0, 1.0, -1.0, 100.0, -100.0)]
    )
