"""What noise a robust loss tolerates: the conditions of the paper's Lemmas 1 and 2."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._intake import take_matrix
from ._noisy import NoisyLabels
from ._stream import Floats

_TIE = 1e-9  # a difference of probabilities that is a rounding error


class NoiseWarning(UserWarning):
    """The noise asked for is more than the paper's robust losses are shown to tolerate."""


@dataclass(frozen=True)
class Conditions:
    """Whether noise is within the paper's conditions; true in an ``if`` where it is."""

    symmetric: bool
    """Every class is wrong as often, and goes to all others as often: Lemma 1."""
    rate: float
    """The largest rate of a class."""
    limit: float
    """What the rate must be below if the noise is symmetric: (K - 1) / K."""
    outside: tuple[tuple[int, int], ...]
    """Each class that is given as some other no less often than as itself, and that other."""

    def __bool__(self) -> bool:
        return not self.outside

    def __str__(self) -> str:
        if not self.outside:
            return "within the paper's conditions: every class is given as itself most often"
        if self.symmetric:
            return (
                f"outside the paper's conditions: the symmetric rate {self.rate:g} is not below "
                f"(K - 1) / K = {self.limit:g}, so the labels do not favour the true class"
            )
        true, given = self.outside[0]
        more = f" (and {len(self.outside) - 1} classes more)" if len(self.outside) > 1 else ""
        return (
            f"outside the paper's conditions: class {true} is given as {given} no less often "
            f"than as {true}{more}, so the labels do not favour the true class"
        )


def check(noise: NoisyLabels | Any) -> Conditions:
    """Whether noise is such as the paper's robust losses tolerate.

    Symmetric noise must have a rate below (K - 1) / K (Lemma 1), other noise must give every class
    as itself more often than as any other, T[j, k] < T[j, j] (Lemma 2). The first is the second for
    a symmetric matrix. The generators warn (:class:`NoiseWarning`) where this is not so.

    Args:
        noise: a transition matrix, [K, K], or the labels that a generator returned, by the matrix
            that was asked for, or else the one they have.

    >>> T = [[0.6, 0.4, 0.0], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]
    >>> bool(check(T)), check(T).outside
    (False, ((2, 0),))
    """
    if isinstance(noise, NoisyLabels):
        return of_matrix(noise.matrix if noise.asked is None else noise.asked)
    return of_matrix(take_matrix(noise))


def of_matrix(T: Floats) -> Conditions:
    K = len(T)
    kept = T.diagonal()
    others = T.copy()
    np.fill_diagonal(others, -1.0)
    worst = others.argmax(1)
    lost = np.flatnonzero(kept - others.max(1) <= _TIE)
    np.fill_diagonal(others, T[0, 1])
    even = np.ptp(others) <= _TIE and np.ptp(kept) <= _TIE
    outside = tuple((int(j), int(worst[j])) for j in lost)
    return Conditions(bool(even), float(1 - kept.min()), (K - 1) / K, outside)


def of_symmetric(rate: float, K: int) -> Conditions:
    """:func:`of_matrix` of symmetric noise, without the matrix."""
    lost = 1 - rate - rate / (K - 1) <= _TIE
    outside = tuple((j, int(j == 0)) for j in range(K)) if lost else ()
    return Conditions(True, rate, (K - 1) / K, outside)


def of_mapping(mapping: dict[int, int], rate: float, K: int) -> Conditions:
    """:func:`of_matrix` of noise that sends a class to one other, without the matrix."""
    outside = tuple(sorted(mapping.items())) if 1 - 2 * rate <= _TIE else ()
    symmetric = rate == 0 or not mapping or (K == 2 and len(mapping) == 2)
    return Conditions(symmetric, rate if mapping else 0.0, (K - 1) / K, outside)


def warn_outside(conditions: Conditions) -> None:
    """Warn, at the line of the user's that asked for such noise."""
    if conditions:
        return
    level, frame = 2, sys._getframe(1)  # 1 is this function, 2 who called it
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("noiseproof."):
        level, frame = level + 1, frame.f_back
    warnings.warn(str(conditions), NoiseWarning, stacklevel=level)
