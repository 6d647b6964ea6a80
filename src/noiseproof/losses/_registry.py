"""The known losses as data, for the command line, the documentation and the tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..syntax import Hyper
from ._expression import Kind, Sum
from ._forms import probe_logits
from ._module import Loss, listed_losses
from ._wrappers import from_function


@dataclass(frozen=True)
class Entry:
    """One known loss."""

    name: str  # in text: "nce"
    loss: Any  # the class, or the function of a user who registered one
    summary: str
    formula: str
    reference: str
    hyperparameters: Mapping[str, Hyper]  # with .default and .range
    kind: Kind

    def make(self, **arguments: Any) -> Loss:
        """The loss, with its default hyper-parameters where none are given."""
        if isinstance(self.loss, type):
            loss: Loss = self.loss(**arguments)
            return loss
        return from_function(self.loss, name=self.name, **arguments)


def registry() -> dict[str, Entry]:
    """Every known loss by its name: the declared ones, then those that the user registered."""
    return {name: _entry(name, loss) for name, loss in listed_losses().items()}


def terms(loss: Loss) -> list[tuple[float, Loss]]:
    """The terms of a sum with their factors; a loss that is not a sum is its only term."""
    expression = loss.expression
    parts = expression.terms if isinstance(expression, Sum) else ((1.0, expression),)
    return [(factor, Loss.of(term)) for factor, term in parts]


def class_sum_range(loss: Loss, num_classes: int) -> tuple[float, float]:
    """The least and the greatest sum_j L(f, j) over extreme and random predictions.

    If they are equal the loss is symmetric, and so robust to symmetric noise (Lemma 1).
    """
    values = loss.per_class(probe_logits(num_classes).double())
    sums = values.sum(1)
    sums[sums.abs() <= 1e-12 * values.abs().sum(1)] = 0  # rounding, where values cancel
    return sums.min().item(), sums.max().item()


def _entry(name: str, loss: Any) -> Entry:
    summary = (loss.__doc__ or "").strip().split("\n")[0]
    if not isinstance(loss, type):
        return Entry(name, loss, summary, f"{name}(logits)", "", {}, "undetermined")
    declared: Any = loss
    return Entry(
        name,
        loss,
        summary,
        declared.formula,
        declared.reference,
        declared.declared_hyper,
        declared().kind,
    )
