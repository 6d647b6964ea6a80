"""The algebra of losses as immutable values: what a loss computes, apart from how it is called.

An expression computes three things for a batch of predictions. Everything else (soft labels, label
smoothing, class weights, reductions, the noisy risk) is arithmetic on them.

==================  ============  =======================================
``at_label(p)``     [N, ...]      L(f(x), y), the loss at the label
``per_class(p)``    [N, K, ...]   L(f(x), j), the loss for each label j
``class_sum(p)``    [N, ...]      sum over j of L(f(x), j); a float where it is constant
==================  ============  =======================================
"""

from __future__ import annotations

import abc
import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, expm1

from .._errors import UsageError
from ..syntax import number
from ._prediction import Prediction

Kind = Literal["active", "passive", "undetermined"]
V = TypeVar("V")


class Expression(abc.ABC):
    """A loss as a value: hashable, comparable, and printed as the text that parses to it."""

    @abc.abstractmethod
    def per_class(self, p: Prediction) -> Tensor: ...

    def at_label(self, p: Prediction) -> Tensor:
        return p.gather_label(self.per_class(p))

    def class_sum(self, p: Prediction) -> Tensor | float:
        return self.per_class(p).sum(1)

    @property
    @abc.abstractmethod
    def kind(self) -> Kind:
        """Active or passive by the paper's Definitions 1 and 2, or undetermined."""

    def functions(self) -> tuple[Callable[[Tensor], Tensor], ...]:
        """The user's functions and modules that it contains."""
        return ()

    @property
    def label_from_reductions(self) -> bool:
        """Whether ``at_label`` uses only log p_y and the sum of log p over classes."""
        return False

    @property
    def sum_from_reductions(self) -> bool:
        """Whether ``class_sum`` uses only log p_y and the sum of log p over classes."""
        return False

    @abc.abstractmethod
    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Atom(Expression):
    """One declared loss with its hyper-parameters.

    L(f, y) = - logarithm * log p_y + complement * (1 - p_y) + target(p_y) + sum_{k != y} other(p_k)

    The first two parts are constant factors, separate because their sums over classes are cheap:
    the sum of log p is computed once for all losses, and that of 1 - p is K - 1. Since 1 - p_y is
    also the sum of all other p_k, a linear ``other`` is declared as a complement, where no digits
    cancel as p_y goes to 1.
    """

    loss: Any  # a subclass of SeparableLoss, which declares the parts
    hyper: tuple[tuple[str, float], ...] = ()

    def _part(self, function: Callable[..., V], num_classes: int, *log_p: Tensor) -> V:
        hyper = dict(self.hyper)
        if self.loss.takes_num_classes:
            hyper["K"] = num_classes
        return function(*log_p, **hyper)

    def label_parts(self, p: Prediction, log_p: Tensor) -> list[Tensor]:
        """The parts that depend only on the probability of the label, elementwise at ``log_p``."""
        parts = []
        if self.loss.logarithm is not None:
            parts.append(log_p * -self._part(self.loss.logarithm, p.num_classes))
        if self.loss.complement is not None:
            parts.append(expm1(log_p) * -self._part(self.loss.complement, p.num_classes))
        if self.loss.target is not None:
            parts.append(self._part(self.loss.target, p.num_classes, log_p))
        return parts

    def at_label(self, p: Prediction) -> Tensor:
        parts = self.label_parts(p, p.label_log_p)
        if self.loss.other is not None:
            parts.append(p.sum_of_others(self._part(self.loss.other, p.num_classes, p.log_p)))
        return add_up(parts)

    def per_class(self, p: Prediction) -> Tensor:
        parts = self.label_parts(p, p.log_p)
        if self.loss.other is not None:
            other = self._part(self.loss.other, p.num_classes, p.log_p)
            parts.append(other.sum(1, keepdim=True) - other)
        return add_up(parts)

    def class_sum(self, p: Prediction) -> Tensor | float:
        num_classes = p.num_classes
        parts: list[Tensor | float] = []
        if self.loss.logarithm is not None:
            parts.append(p.sum_log_p * -self._part(self.loss.logarithm, num_classes))
        if self.loss.complement is not None:
            parts.append(self._part(self.loss.complement, num_classes) * (num_classes - 1))
        if self.loss.target is not None:
            parts.append(self._part(self.loss.target, num_classes, p.log_p).sum(1))
        if self.loss.other is not None:
            other = self._part(self.loss.other, num_classes, p.log_p)
            parts.append(other.sum(1) * (num_classes - 1))
        return add_up(parts)

    def summand(self, p: Tensor, q: Tensor, num_classes: int) -> Tensor:
        """The term of one class as the paper writes it, at probability p and one-hot label q."""
        term: Tensor = self._part(functools.partial(self.loss.summand, p, q), num_classes)
        return term

    @property
    def label_from_reductions(self) -> bool:
        return self.loss.other is None

    @property
    def sum_from_reductions(self) -> bool:
        return self.loss.other is None and self.loss.target is None

    @property
    def kind(self) -> Kind:
        return _kind_of_summand(self)

    def __str__(self) -> str:
        return with_hyper(self.loss, self.hyper)


@dataclass(frozen=True)
class MatrixAtom(Expression):
    """One declared loss that is not a sum over classes; it declares the matrix L(f, j)."""

    loss: Any  # a subclass of MatrixLoss
    hyper: tuple[tuple[str, float], ...] = ()

    def per_class(self, p: Prediction) -> Tensor:
        matrix: Tensor = self.loss.matrix(p.upcast_logits, **dict(self.hyper))
        return matrix

    @property
    def kind(self) -> Kind:
        return "undetermined"

    def __str__(self) -> str:
        return with_hyper(self.loss, self.hyper)


def with_hyper(loss: Any, hyper: tuple[tuple[str, float], ...]) -> str:
    """``fl(gamma=2)``: the name of a loss, with the hyper-parameters that differ from defaults."""
    declared = loss.declared_hyper
    given = [f"{n}={number(v)}" for n, v in hyper if v != declared[n].default]
    return f"{loss.name}({', '.join(given)})" if given else str(loss.name)


@functools.cache
def _kind_of_summand(atom: Atom) -> Kind:
    """Active if the paper's summand is zero for every class other than the label."""
    p = torch.linspace(0.01, 0.99, 99, dtype=torch.float64)
    other_classes = atom.summand(p, torch.zeros_like(p), 10)
    return "passive" if bool((other_classes != 0).any()) else "active"


@dataclass(frozen=True, eq=False)
class Sum(Expression):
    """A weighted sum. Build it with :func:`combine`, which flattens and collects terms."""

    terms: tuple[tuple[float, Expression], ...]

    def at_label(self, p: Prediction) -> Tensor:
        return add_up([_scaled(factor, term.at_label(p)) for factor, term in self.terms])

    def per_class(self, p: Prediction) -> Tensor:
        return add_up([_scaled(factor, term.per_class(p)) for factor, term in self.terms])

    def class_sum(self, p: Prediction) -> Tensor | float:
        return add_up([_scaled(factor, term.class_sum(p)) for factor, term in self.terms])

    def functions(self) -> tuple[Callable[[Tensor], Tensor], ...]:
        return tuple(f for _, term in self.terms for f in term.functions())

    @property
    def kind(self) -> Kind:
        kinds = {term.kind for coefficient, term in self.terms if coefficient != 0}
        if "passive" in kinds:
            return "passive"
        return "active" if kinds == {"active"} else "undetermined"

    @property
    def label_from_reductions(self) -> bool:
        return all(term.label_from_reductions for _, term in self.terms)

    @property
    def sum_from_reductions(self) -> bool:
        return all(term.sum_from_reductions for _, term in self.terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sum) and set(self.terms) == set(other.terms)

    def __hash__(self) -> int:
        return hash(frozenset(self.terms))

    def __str__(self) -> str:
        text = ""
        for coefficient, term in self.terms:
            size = abs(coefficient)
            scaled = str(term) if size == 1 else f"{number(size)}*{term}"
            if text:
                text += f" - {scaled}" if coefficient < 0 else f" + {scaled}"
            else:
                text = f"-{scaled}" if coefficient < 0 else scaled
        return text


def _scaled(factor: float, value: V) -> V:
    return value if factor == 1 else operator.mul(factor, value)  # saves an operator in most sums


def add_up(values: Sequence[V]) -> V:
    return functools.reduce(operator.add, values)


def combine(*parts: tuple[float, Expression]) -> Expression:
    """The weighted sum of expressions: nested sums are flattened, equal terms collected."""
    collected: dict[Expression, float] = {}
    for coefficient, part in parts:
        terms = part.terms if isinstance(part, Sum) else ((1.0, part),)
        for factor, term in terms:
            collected[term] = collected.get(term, 0.0) + coefficient * factor
            if not math.isfinite(collected[term]):
                raise UsageError(f"the factor of {term} is not finite")
    merged = tuple((coefficient, term) for term, coefficient in collected.items())
    if len(merged) == 1 and merged[0][0] == 1:
        return merged[0][1]
    return Sum(merged)


@dataclass(frozen=True)
class Custom(Expression):
    """A function of the user, from logits [N, K] to the matrix L(f(x), j), [N, K]."""

    function: Callable[[Tensor], Tensor]
    name: str

    def per_class(self, p: Prediction) -> Tensor:
        rows = p.upcast_logits.movedim(1, -1)
        flat = rows.reshape(-1, p.num_classes)
        matrix = self.function(flat)
        if not isinstance(matrix, Tensor) or matrix.shape != flat.shape:
            shape = list(matrix.shape) if isinstance(matrix, Tensor) else type(matrix).__name__
            raise UsageError(
                f"{self.name} must give the loss of every class, one number for each logit: "
                f"for logits {list(flat.shape)} it gave {shape}"
            )
        return matrix.to(rows.dtype).reshape(rows.shape).movedim(-1, 1)

    def functions(self) -> tuple[Callable[[Tensor], Tensor], ...]:
        return (self.function,)

    def __hash__(self) -> int:
        return hash(self.name)  # a callable object need not be hashable

    @property
    def kind(self) -> Kind:
        return "undetermined"

    def __str__(self) -> str:
        return self.name
