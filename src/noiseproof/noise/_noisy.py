"""Noisy labels together with the clean ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import UsageError
from ._checks import CheckedLabels, Labels, check_classes, check_labels
from ._stream import Floats, Integers


@dataclass(frozen=True, eq=False, repr=False)
class NoisyLabels:
    """The result of every generator.

    Labels and masks have the type of the labels that were given (NumPy or torch, dtype and device);
    matrices are NumPy arrays in float64, and T[i, j] is the probability that true class i is
    labelled j.
    """

    labels: Labels
    """The labels to train on."""
    clean: Labels
    """A copy of the labels that were given."""
    flipped: Any
    """A mask of where the two differ."""
    num_classes: int
    _make_requested: Callable[[], Floats] | None = field(default=None)

    def __repr__(self) -> str:
        return (
            f"NoisyLabels({len(self)} labels of {self.num_classes} classes, {self.rate:.2%} wrong)"
        )

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def rate(self) -> float:
        """The share of labels that are wrong; 0 if there are no labels."""
        return int(self.flipped.sum()) / max(len(self), 1)

    @cached_property
    def matrix(self) -> Floats:
        """The transition matrix of these labels; see :func:`transition_matrix`."""
        return transition_matrix(self.clean, self.labels, self.num_classes)

    @cached_property
    def requested_matrix(self) -> Floats | None:
        """The transition matrix that the generator aimed at; None for :func:`from_labels`."""
        return None if self._make_requested is None else self._make_requested()

    @cached_property
    def class_rates(self) -> Floats:
        """The share of each true class that is wrong; see :func:`class_rates`."""
        return class_rates(self.clean, self.labels, self.num_classes)


def noisy_labels(
    clean: CheckedLabels,
    noisy: Integers,
    num_classes: int,
    make_requested: Callable[[], Floats] | None,
) -> NoisyLabels:
    """The result of a generator, in the type of the labels that were given."""
    mask: NDArray[np.bool_] = noisy != clean.values
    return NoisyLabels(
        clean.like_input(noisy),
        clean.like_input(clean.values),
        clean.mask_like_input(mask),
        num_classes,
        make_requested,
    )


def from_labels(clean: Labels, noisy: Labels, num_classes: int | None = None) -> NoisyLabels:
    """Existing noise, such as human labels, from noisy and clean labels.

    Args:
        clean: the true labels, [N].
        noisy: the labels to train on, [N]; the result has the type of the clean ones.
        num_classes: the number of classes. Default: the largest label of both and one.

    >>> from_labels([0, 1, 2, 2], [0, 1, 1, 2])
    NoisyLabels(4 labels of 3 classes, 25.00% wrong)
    """
    true, given, count = _check_pair(clean, noisy, num_classes)
    return noisy_labels(true, given, count, None)


def transition_matrix(clean: Labels, noisy: Labels, num_classes: int | None = None) -> Floats:
    """The share of each true class (row) that is labelled as each class (column).

    A class without samples counts as never wrong, so that every row sums to 1.

    >>> transition_matrix([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1])
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """
    true, given, count = _check_pair(clean, noisy, num_classes)
    counts = np.bincount(true.values * count + given, minlength=count**2).reshape(count, count)
    empty = np.flatnonzero(counts.sum(1) == 0)
    counts[empty, empty] = 1
    shares: Floats = counts / counts.sum(1, keepdims=True)
    return shares


def class_rates(clean: Labels, noisy: Labels, num_classes: int | None = None) -> Floats:
    """The share of each true class that is wrong; 0 for a class without samples.

    >>> class_rates([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1])
    array([0.25, 0.  ])
    """
    true, given, count = _check_pair(clean, noisy, num_classes)
    flips = np.bincount(true.values[true.values != given], minlength=count)
    rates: Floats = flips / np.maximum(np.bincount(true.values, minlength=count), 1)
    return rates


def _check_pair(
    clean: Labels, noisy: Labels, num_classes: int | None
) -> tuple[CheckedLabels, Integers, int]:
    """The clean labels, the noisy ones and the number of classes, checked."""
    true, given = check_labels(clean, "clean"), check_labels(noisy, "noisy")
    if len(true.values) != len(given.values):
        raise UsageError(
            f"clean and noisy must be the same samples; they were {len(true.values)} and "
            f"{len(given.values)} labels"
        )
    if num_classes is None:
        largest = max((int(v.max()) for v in (true.values, given.values) if v.size), default=0)
        num_classes = largest + 1 if largest else None
    check_classes(given, num_classes)
    return true, given.values, check_classes(true, num_classes)
