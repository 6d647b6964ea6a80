"""The algebra of losses, as immutable values: what a loss *is*, apart from how it is called.

An expression answers three questions about a batch of predictions. Everything else (soft labels,
label smoothing, class weights, reductions, the noisy risk) is arithmetic on the answers.

==================  ============  =======================================
``at_label(p)``     [N, ...]      L(f(x), y), the loss at the label
``per_class(p)``    [N, K, ...]   L(f(x), j), were j the label
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

from ._prediction import Prediction

Kind = Literal["active", "passive", "undetermined"]
V = TypeVar("V")


class Expression(abc.ABC):
    """A loss as a value: hashable, comparable, and printed as the text that parses to it."""

    @abc.abstractmethod
    def per_class(self, p: Prediction) -> Tensor: ...

    def at_label(self, p: Prediction) -> Tensor:
        return p.pick(self.per_class(p))

    def class_sum(self, p: Prediction) -> Tensor | float:
        return self.per_class(p).sum(1)

    @property
    @abc.abstractmethod
    def kind(self) -> Kind:
        """Active or passive by the paper's Definitions 1 and 2; never guessed."""

    def functions(self) -> tuple[Callable[[Tensor], Tensor], ...]:
        """The functions of the user's that it is made of."""
        return ()

    @property
    def label_from_rows(self) -> bool:
        """Whether ``at_label`` reads no more than log p_y and the sum of log p."""
        return False

    @property
    def sum_from_rows(self) -> bool:
        """Whether ``class_sum`` reads no more than log p_y and the sum of log p."""
        return False

    @abc.abstractmethod
    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Atom(Expression):
    """One declared loss with its hyper-parameters.

    L(f, y) = - logarithm * log p_y + complement * (1 - p_y) + target(p_y) + sum_{k != y} other(p_k)

    The first two parts are numbers, kept apart because their sums over classes are known: that of
    log p is computed once for all losses, and that of 1 - p is K - 1. Since 1 - p_y is also the sum
    of all other p_k, the complement takes up the part of ``other`` that is linear, and with it the
    digits that would cancel as p_y goes to 1.
    """

    loss: Any  # a subclass of SeparableLoss, which declares the parts
    hyper: tuple[tuple[str, float], ...] = ()

    def _part(self, function: Callable[..., V], num_classes: int, *log_p: Tensor) -> V:
        hyper = dict(self.hyper)
        if self.loss.takes_num_classes:
            hyper["K"] = num_classes
        return function(*log_p, **hyper)

    def own(self, p: Prediction, log_p: Tensor) -> list[Tensor]:
        """The parts that depend on the label's own probability alone, elementwise."""
        parts = []
        if self.loss.logarithm is not None:
            parts.append(log_p * -self._part(self.loss.logarithm, p.num_classes))
        if self.loss.complement is not None:
            parts.append(expm1(log_p) * -self._part(self.loss.complement, p.num_classes))
        if self.loss.target is not None:
            parts.append(self._part(self.loss.target, p.num_classes, log_p))
        return parts

    def at_label(self, p: Prediction) -> Tensor:
        parts = self.own(p, p.label_log_p)
        if self.loss.other is not None:
            parts.append(p.sum_of_others(self._part(self.loss.other, p.num_classes, p.log_p)))
        return add_up(parts)

    def per_class(self, p: Prediction) -> Tensor:
        parts = self.own(p, p.log_p)
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
        """The term of one class as the paper writes it, at its probability and one-hot label."""
        term: Tensor = self._part(functools.partial(self.loss.summand, p, q), num_classes)
        return term

    @property
    def label_from_rows(self) -> bool:
        return self.loss.other is None

    @property
    def sum_from_rows(self) -> bool:
        return self.loss.other is None and self.loss.target is None

    @property
    def kind(self) -> Kind:
        return _kind_of_summand(self)

    def __str__(self) -> str:
        return with_hyper(self.loss, self.hyper)


@dataclass(frozen=True)
class MatrixAtom(Expression):
    """One declared loss that is no sum over classes, and gives its matrix alone."""

    loss: Any  # a subclass of MatrixLoss
    hyper: tuple[tuple[str, float], ...] = ()

    def per_class(self, p: Prediction) -> Tensor:
        matrix: Tensor = self.loss.matrix(p.computed_logits, **dict(self.hyper))
        return matrix

    @property
    def kind(self) -> Kind:
        return "undetermined"

    def __str__(self) -> str:
        return with_hyper(self.loss, self.hyper)


def with_hyper(loss: Any, hyper: tuple[tuple[str, float], ...]) -> str:
    """``fl(gamma=2)``: the name of a declaration, and its hyper-parameters that are no defaults."""
    declared = loss.declared_hyper
    given = [f"{n}={number(v)}" for n, v in hyper if v != declared[n].default]
    return f"{loss.name}({', '.join(given)})" if given else str(loss.name)


@functools.cache
def _kind_of_summand(atom: Atom) -> Kind:
    """Active if the summand of the paper vanishes for every class other than the label."""
    p = torch.linspace(0.01, 0.99, 99, dtype=torch.float64)
    elsewhere = atom.summand(p, torch.zeros_like(p), 10)
    return "passive" if bool((elsewhere != 0).any()) else "active"


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
    def label_from_rows(self) -> bool:
        return all(term.label_from_rows for _, term in self.terms)

    @property
    def sum_from_rows(self) -> bool:
        return all(term.sum_from_rows for _, term in self.terms)

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
    return value if factor == 1 else operator.mul(factor, value)  # an operator less in most sums


def add_up(values: Sequence[V]) -> V:
    return functools.reduce(operator.add, values)


def combine(*parts: tuple[float, Expression]) -> Expression:
    """The weighted sum of expressions: nested sums opened, equal terms collected."""
    collected: dict[Expression, float] = {}
    for coefficient, part in parts:
        inside = part.terms if isinstance(part, Sum) else ((1.0, part),)
        for inner, term in inside:
            collected[term] = collected.get(term, 0.0) + coefficient * inner
            if not math.isfinite(collected[term]):
                raise ValueError(f"the factor of {term} is not finite")
    terms = tuple((coefficient, term) for term, coefficient in collected.items())
    if len(terms) == 1 and terms[0][0] == 1:
        return terms[0][1]
    return Sum(terms)


@dataclass(frozen=True)
class Custom(Expression):
    """A function of the user's: logits [N, K] to the matrix L(f(x), j), [N, K]."""

    function: Callable[[Tensor], Tensor]
    name: str

    def per_class(self, p: Prediction) -> Tensor:
        rows = p.computed_logits.movedim(1, -1)
        flat = rows.reshape(-1, p.num_classes)
        matrix = self.function(flat)
        if not isinstance(matrix, Tensor) or matrix.shape != flat.shape:
            shape = list(matrix.shape) if isinstance(matrix, Tensor) else type(matrix).__name__
            raise ValueError(
                f"{self.name} must give the loss of every class, one number for each logit: "
                f"for logits {list(flat.shape)} it gave {shape}"
            )
        return matrix.to(rows.dtype).reshape(rows.shape).movedim(-1, 1)

    def functions(self) -> tuple[Callable[[Tensor], Tensor], ...]:
        return (self.function,)

    def __hash__(self) -> int:
        return hash(self.name)  # a callable object need not have one

    @property
    def kind(self) -> Kind:
        return "undetermined"

    def __str__(self) -> str:
        return self.name


def number(value: float) -> str:
    """The shortest text that reads back as the same float: ``10``, ``0.1``, ``1e-07``."""
    return repr(value).removesuffix(".0")
