"""Labels that are partly wrong, with the right ones beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._intake import Given, Labels, take_classes, take_labels
from ._stream import Floats, Integers


@dataclass(frozen=True, eq=False, repr=False)
class NoisyLabels:
    """What every generator returns.

    Arrays are of the kind that the labels came in (NumPy or torch, type and device); matrices are
    NumPy's, in float64. Row i of a matrix is where true class i goes.
    """

    labels: Labels
    """The labels to train on."""
    clean: Labels
    """A copy of those that were given."""
    flipped: Any
    """Where the two differ, a mask."""
    num_classes: int
    _ask: Callable[[], Floats] | None = field(default=None)

    def __repr__(self) -> str:
        return (
            f"NoisyLabels({len(self)} labels of {self.num_classes} classes, {self.rate:.2%} wrong)"
        )

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def rate(self) -> float:
        """The share of labels that are wrong; 0 where there are none."""
        return int(self.flipped.sum()) / max(len(self), 1)

    @cached_property
    def matrix(self) -> Floats:
        """The transition matrix achieved; see :func:`transition_matrix`."""
        return transition_matrix(self.clean, self.labels, self.num_classes)

    @cached_property
    def asked(self) -> Floats | None:
        """The transition matrix asked for; None for labels that came as they are."""
        return None if self._ask is None else self._ask()

    @cached_property
    def class_rates(self) -> Floats:
        """The share of each true class that is wrong; see :func:`class_rates`."""
        return class_rates(self.clean, self.labels, self.num_classes)


def made(
    given: Given, noisy: Integers, num_classes: int, ask: Callable[[], Floats] | None
) -> NoisyLabels:
    mask: NDArray[np.bool_] = noisy != given.values
    back = given.back
    return NoisyLabels(back(noisy), back(given.values), given.back_mask(mask), num_classes, ask)


def from_labels(clean: Labels, noisy: Labels, num_classes: int | None = None) -> NoisyLabels:
    """Noise that is there already, such as people's mistakes, from the labels with and without it.

    Args:
        clean: the true labels, [N].
        noisy: the labels to train on, [N]; they come back in the kind of the clean ones.
        num_classes: the largest label of both and one, if not given.

    >>> from_labels([0, 1, 2, 2], [0, 1, 1, 2])
    NoisyLabels(4 labels of 3 classes, 25.00% wrong)
    """
    given, wrong, count = _both(clean, noisy, num_classes)
    return made(given, wrong, count, None)


def transition_matrix(clean: Labels, noisy: Labels, num_classes: int | None = None) -> Floats:
    """The share of each true class (row) that is given as each class (column).

    A class without samples counts as never wrong, so that every row sums to 1 and the matrix serves
    wherever one is asked for.

    >>> transition_matrix([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1])
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """
    given, wrong, count = _both(clean, noisy, num_classes)
    counts = np.bincount(given.values * count + wrong, minlength=count**2).reshape(count, count)
    empty = np.flatnonzero(counts.sum(1) == 0)
    counts[empty, empty] = 1
    shares: Floats = counts / counts.sum(1, keepdims=True)
    return shares


def class_rates(clean: Labels, noisy: Labels, num_classes: int | None = None) -> Floats:
    """The share of each true class that is wrong; 0 for a class without samples.

    >>> class_rates([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1])
    array([0.25, 0.  ])
    """
    given, wrong, count = _both(clean, noisy, num_classes)
    flips = np.bincount(given.values[given.values != wrong], minlength=count)
    rates: Floats = flips / np.maximum(np.bincount(given.values, minlength=count), 1)
    return rates


def _both(clean: Labels, noisy: Labels, num_classes: int | None) -> tuple[Given, Integers, int]:
    given, wrong = take_labels(clean, "clean"), take_labels(noisy, "noisy")
    if len(given.values) != len(wrong.values):
        raise ValueError(
            f"clean and noisy must be the same samples; they were {len(given.values)} and "
            f"{len(wrong.values)} labels"
        )
    if num_classes is None:
        largest = max((int(v.max()) for v in (given.values, wrong.values) if v.size), default=0)
        num_classes = largest + 1 if largest else None
    take_classes(wrong, num_classes)
    return given, wrong.values, take_classes(given, num_classes)
