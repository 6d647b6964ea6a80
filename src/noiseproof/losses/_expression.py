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
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, expm1

from ._rows import LogProbabilities, worthwhile

Kind = Literal["active", "passive", "undetermined"]
V = TypeVar("V")


class Prediction:
    """What a network said of a batch: logits [N, K, ...] and, where there is one, the label.

    The log-probabilities and what is read off them are computed when first asked for, and then
    shared by all terms of a sum.
    """

    def __init__(self, logits: Tensor, label: Tensor | None = None) -> None:
        self.logits = logits
        self.label = label  # [N, 1, ...], int64
        self._log_p: Tensor | None = None
        self._label_log_p: Tensor | None = None
        self._sum_log_p: Tensor | None = None

    @property
    def num_classes(self) -> int:
        return self.logits.shape[1]

    @property
    def log_p(self) -> Tensor:
        """log p, [N, K, ...]."""
        if self._log_p is None:
            if self.label is not None and worthwhile(self.logits):
                together = LogProbabilities.apply(self.logits, self.label)  # type: ignore[no-untyped-call]
                self._log_p, self._label_log_p, self._sum_log_p = together
            else:
                self._log_p = torch.log_softmax(self.logits, dim=1)
        return self._log_p

    @property
    def label_log_p(self) -> Tensor:
        """log p_y, [N, ...]."""
        log_p = self.log_p
        if self._label_log_p is None:
            self._label_log_p = self.pick(log_p)
        return self._label_log_p

    @property
    def sum_log_p(self) -> Tensor:
        """The sum of log p over classes, [N, ...]."""
        log_p = self.log_p
        if self._sum_log_p is None:
            self._sum_log_p = log_p.sum(1)
        return self._sum_log_p

    def pick(self, matrix: Tensor) -> Tensor:
        """The entry of the label in every row of a [N, K, ...] matrix."""
        assert self.label is not None
        return matrix.gather(1, self.label).squeeze(1)

    def sum_of_others(self, matrix: Tensor) -> Tensor:
        """The sum of every row without the entry of the label: added up, not subtracted."""
        assert self.label is not None
        return matrix.scatter(1, self.label, 0.0).sum(1)


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

    @property
    def only_matrix(self) -> bool:
        """Whether the whole matrix has to be computed to know the loss at one label."""
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

    def _part(self, name: str, *log_p: Tensor) -> Any:
        """A part of the declaration at these hyper-parameters; None where it has no such part."""
        function = getattr(self.loss, name)
        return None if function is None else function(*log_p, **dict(self.hyper))

    def _own(self, log_p: Tensor) -> Tensor | float:
        """Everything that depends on the label's own probability alone, elementwise."""
        value: Tensor | float = 0.0
        if (logarithm := self._part("logarithm")) is not None:
            value = value - logarithm * log_p
        if (complement := self._part("complement")) is not None:
            value = value - complement * expm1(log_p)
        if (target := self._part("target", log_p)) is not None:
            value = value + target
        return value

    def at_label(self, p: Prediction) -> Tensor:
        value = self._own(p.label_log_p)
        if (other := self._part("other", p.log_p)) is not None:
            value = value + p.sum_of_others(other)
        assert isinstance(value, Tensor), f"{self.loss.name} declares no part"
        return value

    def per_class(self, p: Prediction) -> Tensor:
        value = self._own(p.log_p)
        if (other := self._part("other", p.log_p)) is not None:
            value = value + (other.sum(1, keepdim=True) - other)
        assert isinstance(value, Tensor), f"{self.loss.name} declares no part"
        return value

    def class_sum(self, p: Prediction) -> Tensor | float:
        total: Tensor | float = 0.0
        if (logarithm := self._part("logarithm")) is not None:
            total = total - logarithm * p.sum_log_p
        if (complement := self._part("complement")) is not None:
            total = total + complement * (p.num_classes - 1)
        if (target := self._part("target", p.log_p)) is not None:
            total = total + target.sum(1)
        if (other := self._part("other", p.log_p)) is not None:
            total = total + other.sum(1) * (p.num_classes - 1)
        return total

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
        if self.inner.only_matrix:
            return p.pick(self.per_class(p))
        return self.inner.at_label(p) / self.inner.class_sum(p)

    def per_class(self, p: Prediction) -> Tensor:
        matrix = self.inner.per_class(p)
        if self.inner.only_matrix:
            check_can_normalize(matrix, str(self.inner))
            return matrix / matrix.sum(1, keepdim=True)
        total = self.inner.class_sum(p)
        return matrix / (total.unsqueeze(1) if isinstance(total, Tensor) else total)

    def class_sum(self, p: Prediction) -> Tensor | float:
        return 1.0

    @property
    def kind(self) -> Kind:
        return self.inner.kind

    @property
    def only_matrix(self) -> bool:
        return self.inner.only_matrix

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
        return _add(factor * term.at_label(p) for factor, term in self.terms)

    def per_class(self, p: Prediction) -> Tensor:
        return _add(factor * term.per_class(p) for factor, term in self.terms)

    def class_sum(self, p: Prediction) -> Tensor | float:
        return _add(factor * term.class_sum(p) for factor, term in self.terms)

    @property
    def kind(self) -> Kind:
        kinds = {term.kind for coefficient, term in self.terms if coefficient != 0}
        if "passive" in kinds:
            return "passive"
        return "active" if kinds == {"active"} else "undetermined"

    @property
    def only_matrix(self) -> bool:
        return any(term.only_matrix for _, term in self.terms)

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


def _add(values: Iterable[V]) -> V:
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
        rows = p.logits.movedim(1, -1)
        flat = rows.reshape(-1, p.num_classes)
        matrix = self.function(flat)
        if not isinstance(matrix, Tensor) or matrix.shape != flat.shape:
            shape = list(matrix.shape) if isinstance(matrix, Tensor) else type(matrix).__name__
            raise ValueError(
                f"{self.name} must give the loss of every class, one number for each logit: "
                f"for logits {list(flat.shape)} it gave {shape}"
            )
        return matrix.to(p.logits.dtype).reshape(rows.shape).movedim(-1, 1)

    @property
    def kind(self) -> Kind:
        return "undetermined"

    @property
    def only_matrix(self) -> bool:
        return True

    def __str__(self) -> str:
        return self.name


def check_can_normalize(matrix: Tensor, name: str) -> None:
    """Refuse a matrix of losses that division by its row sums would not make robust."""
    values = known_values(matrix.detach())
    if values is None:
        return
    rounding = 1e-6 * max(1.0, values.abs().max().item())
    if bool((values < -rounding).any()):
        raise ValueError(
            f"{name} cannot be normalized: it can be negative (seen: {values.min().item():.4g}), "
            f"so its share of the sum over classes is no loss; add a constant that keeps it above 0"
        )
    if bool((values.sum(1) == 0).any()):
        raise ValueError(
            f"{name} cannot be normalized: its sum over classes can be 0 (all {values.shape[1]} "
            f"classes had loss 0 for one sample); add a small constant to the loss"
        )


def known_values(tensor: Tensor) -> Tensor | None:
    """The tensor if its values can be looked at for nothing, else None.

    That is a CPU tensor in eager mode. On a GPU a look would wait for the device; under
    ``torch.compile``, ``torch.export`` or ``torch.func.vmap`` there are no values yet.
    """
    if torch.compiler.is_compiling() or tensor.device.type != "cpu" or tensor.numel() == 0:
        return None
    try:
        bool(tensor.reshape(-1)[0] == 0)
    except RuntimeError:  # a transform or a fake tensor holds the values back
        return None
    return tensor


def number(value: float) -> str:
    """The shortest text that reads back as the same float: ``10``, ``0.1``, ``1e-07``."""
    return repr(value).removesuffix(".0")
