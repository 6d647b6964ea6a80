"""Losses made from other losses by arithmetic over classes: normalized, symmetrized, negative.

A form is one class, and one word in the text. Those that hand the inner loss another prediction or
another label are in ``_mapped.py``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ._expression import Atom, Expression, Kind, Sum, add_up, number, with_hyper
from ._hyper import Hyper
from ._prediction import Prediction, extremes


@dataclass(frozen=True)
class Form(Expression):
    """A loss made from another. ``word`` is its name in the text: ``normalize(fl(gamma=2))``."""

    inner: Expression
    word: ClassVar[str]
    hyper: ClassVar[Mapping[str, Hyper]] = {}

    @classmethod
    def make(cls, inner: Expression, **hyper: float) -> Expression:
        """The form of a loss, in its simplest terms, or the reason why it has none."""
        return cls(inner, **hyper)

    def functions(self) -> tuple[Callable[[Tensor], Tensor], ...]:
        return self.inner.functions()

    @property
    def named(self) -> Any:
        """The declared class that has this form for its own, such as NormalizedFocalLoss."""
        return self.inner.loss.forms.get(type(self)) if isinstance(self.inner, Atom) else None

    def __str__(self) -> str:
        if self.named is not None:
            assert isinstance(self.inner, Atom)
            return with_hyper(self.named, self.inner.hyper)
        own = [f.name for f in dataclasses.fields(self) if f.name != "inner"]
        return f"{self.word}({', '.join([str(self.inner), *(self._argument(n) for n in own)])})"

    def _argument(self, name: str) -> str:
        return f"{name}={number(getattr(self, name))}"


@dataclass(frozen=True)
class Levelled(Form):
    """A form made of the inner loss and its sum over labels, whose own sum is constant."""

    @property
    def label_from_rows(self) -> bool:
        return self.inner.label_from_rows and self.inner.sum_from_rows

    @property
    def sum_from_rows(self) -> bool:
        return True


@dataclass(frozen=True)
class Normalized(Levelled):
    """L(f(x), y) / sum over j of L(f(x), j), for a loss that is not negative."""

    word = "normalize"

    @classmethod
    def make(cls, inner: Expression, **hyper: float) -> Expression:
        """The normalized form, refused with the reason where there is none."""
        if isinstance(inner, Normalized):
            return inner  # its sum is 1 already
        if isinstance(inner, Sum) and len(inner.terms) == 1 and inner.terms[0][0] > 0:
            return cls.make(inner.terms[0][1])  # a factor cancels
        for logits in map(probes, (2, 3, 10)):
            try:
                matrix = inner.per_class(Prediction(logits))
            except ValueError:
                raise
            except Exception:  # a function made for one K: it will be looked at when it is called
                continue
            check_can_normalize(matrix, inner)
        return cls(inner)

    def at_label(self, p: Prediction) -> Tensor:
        if self.inner.label_from_rows:
            return self.inner.at_label(p) / self.inner.class_sum(p)
        return p.pick(self.per_class(p))

    def per_class(self, p: Prediction) -> Tensor:
        matrix = self.inner.per_class(p)
        if self.inner.sum_from_rows:
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
class Symmetrized(Levelled):
    """L(f(x), y) - mean over j of L(f(x), j): symmetric, whatever the loss."""

    word = "symmetrize"

    def at_label(self, p: Prediction) -> Tensor:
        if self.inner.label_from_rows:
            return self.inner.at_label(p) - self.inner.class_sum(p) / p.num_classes
        return p.pick(self.per_class(p))

    def per_class(self, p: Prediction) -> Tensor:
        matrix = self.inner.per_class(p)
        if self.inner.sum_from_rows:
            return matrix - _as_column(self.inner.class_sum(p)) / p.num_classes
        return matrix - matrix.mean(1, keepdim=True)

    def class_sum(self, p: Prediction) -> Tensor | float:
        return 0.0

    @property
    def kind(self) -> Kind:
        # The mean puts a part of every class's own function into the summand of that class.
        return "undetermined" if self.inner.kind == "undetermined" else "passive"


@dataclass(frozen=True)
class Negative(Form):
    """1 - (A - L(p_y)) / sum over k of (A - L(p_k)), for an active loss L and A = L(p_min).

    Turned upside down at its value for the least probability, an active loss grows with p; its
    normalized form says how much of all probability, so measured, is at the label, and 1 less that
    how much is elsewhere. It is the normalized negative loss of active negative losses (ANL).
    """

    word = "negative"
    LOG_P_MIN: ClassVar[float] = math.log(1e-7)

    def _turned(self, log_p: Tensor) -> Tensor:
        assert isinstance(self.inner, Atom)
        bounded = log_p.clamp(min=self.LOG_P_MIN)
        least = torch.full_like(bounded[:1, :1], self.LOG_P_MIN)
        most, values = (add_up(self.inner.own(Prediction(log_p), x)) for x in (least, bounded))
        return most - values

    @classmethod
    def make(cls, inner: Expression, **hyper: float) -> Expression:
        if not isinstance(inner, Atom) or inner.kind != "active":
            raise ValueError(f"negative takes one active loss, such as ce, fl or gce; not {inner}")
        return cls(inner)

    def at_label(self, p: Prediction) -> Tensor:
        return p.pick(self.per_class(p))

    def per_class(self, p: Prediction) -> Tensor:
        turned = self._turned(p.log_p)
        return 1 - turned / turned.sum(1, keepdim=True)

    def class_sum(self, p: Prediction) -> Tensor | float:
        return float(p.num_classes - 1)

    @property
    def kind(self) -> Kind:
        return "passive"  # 1 - n_y is the sum of n_k over all other classes

    @property
    def sum_from_rows(self) -> bool:
        return True


def _as_column(total: Tensor | float) -> Tensor | float:
    return total.unsqueeze(1) if isinstance(total, Tensor) else total


def check_can_normalize(matrix: Tensor, name: object) -> None:
    """Refuse a matrix of losses that division by its row sums would not make robust."""
    seen = extremes(matrix)
    if seen is None:
        return
    least, greatest = seen
    if least < -1e-6 * max(1.0, -least, greatest):  # more than rounding
        raise ValueError(
            f"{name} cannot be normalized: it can be negative (seen: {least:.4g}), so its share of "
            f"the sum over classes is no loss; add a constant that keeps it above 0"
        )
    if not bool((matrix.detach() != 0).any(1).all()):
        raise ValueError(
            f"{name} cannot be normalized: its sum over classes can be 0 (all {matrix.shape[1]} "
            f"classes had loss 0 for one sample); add a small constant to the loss"
        )


def probes(num_classes: int) -> Tensor:
    """Predictions at which losses go wrong: saturated, uniform, tied, far from 0, random."""
    one_hot = torch.eye(num_classes)
    tied = one_hot + one_hot.roll(1, 0)
    level = torch.ones(1, num_classes)
    random = torch.randn(256, num_classes, generator=torch.Generator().manual_seed(0))
    return torch.cat(
        [scale * rows for rows in (one_hot, -one_hot, tied) for scale in (1.0, 10.0, 100.0, 1e4)]
        + [scale * random for scale in (0.1, 1.0, 10.0, 100.0)]
        + [scale * level for scale in (0.0, 1.0, -1.0, 100.0, -100.0)]
    )
