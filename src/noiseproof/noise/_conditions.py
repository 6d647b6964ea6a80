"""The noise that robust losses tolerate: the conditions of the paper's Lemmas 1 and 2."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._errors import level_outside
from ._checks import check_matrix
from ._noisy import NoisyLabels
from ._stream import Floats

_TIE = 1e-9  # differences of probabilities up to this are rounding errors


class NoiseWarning(UserWarning):
    """The noise is outside the conditions under which the paper's losses are shown to be robust."""


@dataclass(frozen=True)
class Conditions:
    """Whether noise is within the paper's conditions; ``bool(conditions)`` is the answer."""

    symmetric: bool
    """Whether every class has the same rate, spread evenly over the other classes (Lemma 1)."""
    rate: float
    """The largest noise rate of a class."""
    limit: float
    """The bound of the rate of symmetric noise, (K - 1) / K."""
    violations: tuple[tuple[int, int], ...]
    """The pairs (i, j) of each true class i that is labelled j at least as often as i."""

    def __bool__(self) -> bool:
        return not self.violations

    def __str__(self) -> str:
        if not self.violations:
            return "within the paper's conditions: every class is given as itself most often"
        if self.symmetric:
            return (
                f"outside the paper's conditions: the symmetric rate {self.rate:g} is not below "
                f"(K - 1) / K = {self.limit:g}, so the labels do not favour the true class"
            )
        true, given = self.violations[0]
        more = f" (and {len(self.violations) - 1} classes more)" if len(self.violations) > 1 else ""
        return (
            f"outside the paper's conditions: class {true} is given as {given} no less often "
            f"than as {true}{more}, so the labels do not favour the true class"
        )


def check(noise: NoisyLabels | Any) -> Conditions:
    """Whether noise is within the conditions of the paper's Lemmas 1 and 2.

    Symmetric noise must have a rate below (K - 1) / K (Lemma 1); under other noise every class must
    be labelled as itself more often than as any other class, T[j, k] < T[j, j] (Lemma 2). For
    symmetric noise both are the same. The generators warn (:class:`NoiseWarning`) otherwise.

    Args:
        noise: a transition matrix, [K, K], or the labels that a generator returned. Of labels the
            matrix that was requested is checked, or their own where there was none.

    >>> T = [[0.6, 0.4, 0.0], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]
    >>> bool(check(T)), check(T).violations
    (False, ((2, 0),))
    """
    if isinstance(noise, NoisyLabels):
        return conditions_of_matrix(
            noise.matrix if noise.requested_matrix is None else noise.requested_matrix
        )
    return conditions_of_matrix(check_matrix(noise))


def conditions_of_matrix(T: Floats) -> Conditions:
    """The conditions of a transition matrix."""
    K = len(T)
    kept = T.diagonal()
    others = T.copy()
    np.fill_diagonal(others, -1.0)
    most_likely_error = others.argmax(1)
    violated = np.flatnonzero(kept - others.max(1) <= _TIE)
    np.fill_diagonal(others, T[0, 1])
    symmetric = np.ptp(others) <= _TIE and np.ptp(kept) <= _TIE
    violations = tuple((int(j), int(most_likely_error[j])) for j in violated)
    return Conditions(bool(symmetric), float(1 - kept.min()), (K - 1) / K, violations)


def conditions_of_symmetric(rate: float, K: int) -> Conditions:
    """:func:`conditions_of_matrix` for symmetric noise, without building the matrix."""
    violated = 1 - rate - rate / (K - 1) <= _TIE
    violations = tuple((j, int(j == 0)) for j in range(K)) if violated else ()
    return Conditions(True, rate, (K - 1) / K, violations)


def conditions_of_mapping(mapping: dict[int, int], rate: float, K: int) -> Conditions:
    """:func:`conditions_of_matrix` for a mapping of classes, without building the matrix."""
    violations = tuple(sorted(mapping.items())) if 1 - 2 * rate <= _TIE else ()
    symmetric = rate == 0 or not mapping or (K == 2 and len(mapping) == 2)
    return Conditions(symmetric, rate if mapping else 0.0, (K - 1) / K, violations)


def warn_if_violated(conditions: Conditions) -> None:
    """Warn at the line outside this package that requested such noise."""
    if conditions:
        return
    warnings.warn(str(conditions), NoiseWarning, stacklevel=level_outside())
