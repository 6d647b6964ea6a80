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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, expm1

from ._prediction import Prediction, compute_dtype, extremes

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

    def _part(self, function: Callable[..., V], *log_p: Tensor) -> V:
        return function(*log_p, **dict(self.hyper))

    def _own(self, log_p: Tensor) -> Iterator[Tensor]:
        """The parts that depend on the label's own probability alone, elementwise."""
        if self.loss.logarithm is not None:
            yield log_p * -self._part(self.loss.logarithm)
        if self.loss.complement is not None:
            yield expm1(log_p) * -self._part(self.loss.complement)
        if self.loss.target is not None:
            yield self._part(self.loss.target, log_p)

    def at_label(self, p: Prediction) -> Tensor:
        parts = list(self._own(p.label_log_p))
        if self.loss.other is not None:
            parts.append(p.sum_of_others(self._part(self.loss.other, p.log_p)))
        return _add(parts)

    def per_class(self, p: Prediction) -> Tensor:
        parts = list(self._own(p.log_p))
        if self.loss.other is not None:
            other = self._part(self.loss.other, p.log_p)
            parts.append(other.sum(1, keepdim=True) - other)
        return _add(parts)

    def class_sum(self, p: Prediction) -> Tensor | float:
        parts: list[Tensor | float] = []
        if self.loss.logarithm is not None:
            parts.append(p.sum_log_p * -self._part(self.loss.logarithm))
        if self.loss.complement is not None:
            parts.append(self._part(self.loss.complement) * (p.num_classes - 1))
        if self.loss.target is not None:
            parts.append(self._part(self.loss.target, p.log_p).sum(1))
        if self.loss.other is not None:
            parts.append(self._part(self.loss.other, p.log_p).sum(1) * (p.num_classes - 1))
        return _add(parts)

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
        declared = self.loss.declared_hyper
        given = [f"{n}={number(v)}" for n, v in self.hyper if v != declared[n].default]
        return f"{self.loss.name}({', '.join(given)})" if given else str(self.loss.name)


@functools.cache
def _kind_of_summand(atom: Atom) -> Kind:
    """Active if the summand of the paper vanishes for every class other than the label."""
    p = torch.linspace(0.01, 0.99, 99, dtype=torch.float64)
    elsewhere = atom.loss.summand(p, torch.zeros_like(p), **dict(atom.hyper))
    return "passive" if bool((elsewhere != 0).any()) else "active"


@dataclass(frozen=True)
class Normalized(Expression):
    """L(f(x), y) / sum over j of L(f(x), j), for a loss that is not negative."""

    inner: Expression

    def at_label(self, p: Prediction) -> Tensor:
        if self.inner.label_from_rows:
            return self.inner.at_label(p) / self.inner.class_sum(p)
        return p.pick(self.per_class(p))

    def per_class(self, p: Prediction) -> Tensor:
        matrix = self.inner.per_class(p)
        if self.inner.sum_from_rows:
            total = self.inner.class_sum(p)
            return matrix / (total.unsqueeze(1) if isinstance(total, Tensor) else total)
        if self.inner.functions():
            check_can_normalize(matrix, self.inner)
        return matrix / matrix.sum(1, keepdim=True)

    def class_sum(self, p: Prediction) -> Tensor | float:
        return 1.0

    def functions(self) -> tuple[Callable[[Tensor], Tensor], ...]:
        return self.inner.functions()

    @property
    def kind(self) -> Kind:
        return self.inner.kind

    @property
    def label_from_rows(self) -> bool:
        return self.inner.label_from_rows and self.inner.sum_from_rows

    @property
    def sum_from_rows(self) -> bool:
        return True

    def __str__(self) -> str:
        if isinstance(self.inner, Atom) and self.inner.loss.normalized is not None:
            declared = self.inner.loss
            return str(self.inner).replace(declared.name, declared.normalized.name, 1)
        return f"normalize({self.inner})"


@dataclass(frozen=True, eq=False)
class Sum(Expression):
    """A weighted sum. Build it with :func:`combine`, which flattens and collects terms."""

    terms: tuple[tuple[float, Expression], ...]

    def at_label(self, p: Prediction) -> Tensor:
        return _add([_scaled(factor, term.at_label(p)) for factor, term in self.terms])

    def per_class(self, p: Prediction) -> Tensor:
        return _add([_scaled(factor, term.per_class(p)) for factor, term in self.terms])

    def class_sum(self, p: Prediction) -> Tensor | float:
        return _add([_scaled(factor, term.class_sum(p)) for factor, term in self.terms])

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


def _add(values: Sequence[V]) -> V:
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
        rows = p.logits.to(compute_dtype(p.logits)).movedim(1, -1)
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


def number(value: float) -> str:
    """The shortest text that reads back as the same float: ``10``, ``0.1``, ``1e-07``."""
    return repr(value).removesuffix(".0")
