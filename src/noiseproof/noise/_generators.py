"""Class-dependent noise: symmetric, asymmetric, to the next class, and by any matrix."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from .._errors import UsageError
from . import _authors
from ._checks import (
    CheckedLabels,
    Labels,
    check_classes,
    check_labels,
    check_matrix,
    check_rate,
    check_seed,
    check_variant,
)
from ._conditions import (
    conditions_of_mapping,
    conditions_of_matrix,
    conditions_of_symmetric,
    warn_if_violated,
)
from ._draw import choose_flipped, draw_other_class, targets_by_quota, targets_by_weight
from ._maps import (
    CLASSES,
    check_mapping,
    mapping_array,
    mapping_matrix,
    mapping_of,
    next_class_mapping,
    symmetric_matrix,
)
from ._noisy import NoisyLabels, noisy_labels


def symmetric(
    labels: Labels,
    rate: float,
    *,
    num_classes: int | None = None,
    seed: int = 0,
    exact: bool = True,
    variant: str = "paper",
) -> NoisyLabels:
    """Flip a share of each class to the other classes, all with the same probability.

    Args:
        labels: integers from 0, [N]: a NumPy array, a tensor, a list.
        rate: the share of labels to flip, 0 to 1.
        num_classes: the number of classes. Default: the largest label and one.
        seed: the same seed gives the same labels on every machine.
        exact: whether rate * N labels are flipped in all, and of each class its share, rounded by
            largest remainder; or each label independently with probability ``rate``. The new
            classes are random in both cases.
        variant: ``paper``, or ``authors`` for the labels that the code of the paper's authors gives
            for this seed: the same number of every class, whatever its size.

    >>> noisy = symmetric([0, 1, 2, 3, 4] * 20, 0.4)
    >>> noisy
    NoisyLabels(100 labels of 5 classes, 40.00% wrong)
    >>> noisy.class_rates
    array([0.4, 0.4, 0.4, 0.4, 0.4])
    """
    checked = check_labels(labels)
    rate = check_rate(rate)
    K = check_classes(checked, num_classes)
    authors = check_variant(variant, exact)
    seed = check_seed(seed, 32 if authors else 64)
    warn_if_violated(conditions_of_symmetric(rate, K))
    if authors:
        noisy = _authors.symmetric(checked.values, rate, K, seed)
    else:
        flipped = choose_flipped(checked.values, np.full(K, rate), seed, exact=exact)
        noisy = checked.values.copy()
        noisy[flipped] = draw_other_class(checked.values, flipped, K, seed)
    return noisy_labels(checked, noisy, K, partial(symmetric_matrix, rate, K))


def asymmetric(
    labels: Labels,
    rate: float,
    *,
    dataset: str | None = None,
    mapping: Mapping[int, int] | None = None,
    num_classes: int | None = None,
    seed: int = 0,
    exact: bool = True,
    variant: str = "paper",
) -> NoisyLabels:
    """Flip a share of some classes, each to the one class it is mistaken for.

    Args:
        labels: integers from 0, [N]: a NumPy array, a tensor, a list.
        rate: the share to flip of each class in the mapping, 0 to 1; other classes stay clean.
        dataset: ``mnist``, ``digits``, ``cifar10`` or ``cifar100``: the mapping of the paper (see
            :func:`mapping_of`).
        mapping: in place of ``dataset``, {class: class it is mistaken for}.
        num_classes: the number of classes. Default: that of the data set, or the largest label
            and one.
        seed: the same seed gives the same labels on every machine.
        exact: whether the share of each class is rounded by largest remainder; or each label is
            flipped independently with probability ``rate``.
        variant: ``paper``, or ``authors`` for the labels that the code of the paper's authors gives
            for this seed. There, cats of CIFAR-10 that became dogs may become cats again, so that
            their rate is rate * (1 - rate); the labels of MNIST and CIFAR-100 are drawn
            independently; and classes of CIFAR-100 go to the next of five consecutive fine labels,
            not of their superclass.

    >>> asymmetric([0, 1, 2, 2, 2, 2], 0.25, mapping={2: 0}).matrix
    array([[1.  , 0.  , 0.  ],
           [0.  , 1.  , 0.  ],
           [0.25, 0.  , 0.75]])
    """
    if (dataset is None) == (mapping is None):
        which_given = "both were" if mapping is not None else "neither was"
        raise UsageError(
            f"one of dataset ({', '.join(CLASSES)}) and mapping ({{class: class}}) must be given; "
            f"{which_given}"
        )
    checked = check_labels(labels)
    rate = check_rate(rate)
    authors = check_variant(variant, exact)
    seed = check_seed(seed, 32 if authors else 64)
    if dataset is not None:
        class_map = mapping_of(dataset, variant)
        K = check_classes(checked, CLASSES[dataset], source=f"{dataset}'s number of classes")
        if num_classes not in (None, K):
            raise UsageError(f"num_classes = {num_classes}, and {dataset} has {K}: leave it out")
    else:
        K = check_classes(checked, num_classes)
        class_map = check_mapping(mapping, K)  # type: ignore[arg-type]  # one of the two is given
        if authors:
            raise UsageError("variant='authors' is for the authors' data sets: give dataset=")
    if authors:
        warn_if_violated(conditions_of_mapping(class_map, rate, K))
        make_requested = partial(mapping_matrix, class_map, rate, K)
        if dataset == "cifar10":
            noisy = _authors.one_class_after_another(checked.values, rate, class_map, seed)
        else:
            noisy = _authors.label_by_label(checked.values, make_requested(), seed)
        return noisy_labels(checked, noisy, K, make_requested)
    return _flip_by_mapping(checked, rate, class_map, K, seed, exact)


def pairflip(
    labels: Labels,
    rate: float,
    *,
    num_classes: int | None = None,
    seed: int = 0,
    exact: bool = True,
) -> NoisyLabels:
    """Flip a share of each class to the next class, the last to the first.

    The arguments are those of :func:`symmetric`.

    >>> pairflip([0, 1, 2] * 4, 0.25).matrix
    array([[0.75, 0.25, 0.  ],
           [0.  , 0.75, 0.25],
           [0.25, 0.  , 0.75]])
    """
    checked = check_labels(labels)
    K = check_classes(checked, num_classes)
    rate, seed = check_rate(rate), check_seed(seed)
    return _flip_by_mapping(checked, rate, next_class_mapping(K), K, seed, exact)


def _flip_by_mapping(
    checked: CheckedLabels, rate: float, class_map: dict[int, int], K: int, seed: int, exact: bool
) -> NoisyLabels:
    warn_if_violated(conditions_of_mapping(class_map, rate, K))
    targets = mapping_array(class_map, K)
    flipped = choose_flipped(checked.values, np.where(targets >= 0, rate, 0.0), seed, exact=exact)
    noisy = checked.values.copy()
    noisy[flipped] = targets[checked.values[flipped]]
    return noisy_labels(checked, noisy, K, partial(mapping_matrix, class_map, rate, K))


def from_matrix(labels: Labels, T: Any, *, seed: int = 0, exact: bool = True) -> NoisyLabels:
    """Flip labels by a transition matrix.

    Args:
        labels: integers from 0, [N]: a NumPy array, a tensor, a list.
        T: [K, K], an array, a tensor or nested lists: T[i, j] is the probability that true class i
            is labelled j; each row sums to 1.
        seed: the same seed gives the same labels on every machine.
        exact: whether the counts of T are matched as closely as integers can: the number of flipped
            labels of each class, and that of each of its new classes, are rounded by largest
            remainder; or each label is drawn independently.

    >>> T = [[0.7, 0.3, 0.0], [0.0, 0.9, 0.1], [0.2, 0.2, 0.6]]
    >>> from_matrix([0] * 10 + [1] * 10 + [2] * 10, T).matrix
    array([[0.7, 0.3, 0. ],
           [0. , 0.9, 0.1],
           [0.2, 0.2, 0.6]])
    """
    checked = check_labels(labels)
    matrix = check_matrix(T)
    K = check_classes(checked, len(matrix), source="the size of T")
    seed = check_seed(seed)
    warn_if_violated(conditions_of_matrix(matrix))
    off_diagonal = matrix.copy()
    np.fill_diagonal(off_diagonal, 0.0)
    flip_rates = np.minimum(off_diagonal.cumsum(1)[:, -1], 1.0)
    flipped = choose_flipped(checked.values, flip_rates, seed, exact=exact)
    draw_targets = targets_by_quota if exact else targets_by_weight
    noisy = checked.values.copy()
    noisy[flipped] = draw_targets(checked.values, flipped, off_diagonal, seed)
    return noisy_labels(checked, noisy, K, matrix.copy)
