"""Noise by class: symmetric, asymmetric, to the next class, and by any matrix."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from . import _authors
from ._conditions import of_mapping, of_matrix, of_symmetric, warn_outside
from ._draw import by_quotas, by_weights, to_any_other, which
from ._intake import (
    Given,
    Labels,
    take_classes,
    take_labels,
    take_matrix,
    take_rate,
    take_seed,
    take_variant,
)
from ._maps import (
    CLASSES,
    as_table,
    mapping_matrix,
    mapping_of,
    next_class,
    symmetric_matrix,
    take_mapping,
)
from ._noisy import NoisyLabels, made


def symmetric(
    labels: Labels,
    rate: float,
    *,
    num_classes: int | None = None,
    seed: int = 0,
    exact: bool = True,
    variant: str = "paper",
) -> NoisyLabels:
    """Flip a share of each class to the other classes, each as likely, never to its own.

    Args:
        labels: integers from 0, [N]: a NumPy array, a tensor, a list.
        rate: the share of labels to flip, 0 to 1.
        num_classes: the largest label and one, if not given.
        seed: the same seed gives the same labels everywhere.
        exact: flip rate * N labels in all, and of each class its share rounded down or up (by
            largest remainder); else each label by a coin of its own. Targets are drawn either way.
        variant: ``paper``, or ``authors`` for the labels that the paper's code makes of this seed:
            the same count from every class, however large.

    >>> noisy = symmetric([0, 1, 2, 3, 4] * 20, 0.4)
    >>> noisy
    NoisyLabels(100 labels of 5 classes, 40.00% wrong)
    >>> noisy.class_rates
    array([0.4, 0.4, 0.4, 0.4, 0.4])
    """
    given = take_labels(labels)
    rate = take_rate(rate)
    K = take_classes(given, num_classes)
    authors = take_variant(variant, exact)
    seed = take_seed(seed, 32 if authors else 64)
    warn_outside(of_symmetric(rate, K))
    if authors:
        noisy = _authors.symmetric(given.values, rate, K, seed)
    else:
        flipped = which(given.values, np.full(K, rate), seed, exact=exact)
        noisy = given.values.copy()
        noisy[flipped] = to_any_other(given.values, flipped, K, seed)
    return made(given, noisy, K, partial(symmetric_matrix, rate, K))


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
        rate: the share of each class of the mapping to flip; the other classes stay.
        dataset: ``mnist``, ``digits``, ``cifar10`` or ``cifar100``: the mapping of the paper (see
            :func:`mapping_of`).
        mapping: one of your own instead, {class: class it is taken for}.
        num_classes: the data set's, or the largest label and one, if not given.
        seed: the same seed gives the same labels everywhere.
        exact: of each class its share rounded down or up, so that the sum is right (by largest
            remainder); else each label by a coin of its own.
        variant: ``paper``, or ``authors`` for the labels that the paper's code makes of this seed.
            There cats of CIFAR-10 that became dogs may become cats again, so that their rate is
            rate * (1 - rate); MNIST and CIFAR-100 are drawn label by label; and CIFAR-100 goes
            round five consecutive fine labels in place of the superclass.

    >>> asymmetric([0, 1, 2, 2, 2, 2], 0.25, mapping={2: 0}).matrix
    array([[1.  , 0.  , 0.  ],
           [0.  , 1.  , 0.  ],
           [0.25, 0.  , 0.75]])
    """
    if (dataset is None) == (mapping is None):
        given_both = "both were" if mapping is not None else "neither was"
        raise ValueError(
            f"one of dataset ({', '.join(CLASSES)}) and mapping ({{class: class}}) must be given; "
            f"{given_both}"
        )
    given = take_labels(labels)
    rate = take_rate(rate)
    authors = take_variant(variant, exact)
    seed = take_seed(seed, 32 if authors else 64)
    if dataset is not None:
        sent = mapping_of(dataset, variant)
        K = take_classes(given, CLASSES[dataset], source=f"{dataset}'s number of classes")
        if num_classes not in (None, K):
            raise ValueError(f"num_classes = {num_classes}, and {dataset} has {K}: leave it out")
    else:
        K = take_classes(given, num_classes)
        sent = take_mapping(mapping, K)  # type: ignore[arg-type]  # one of the two is given
        if authors:
            raise ValueError("variant='authors' is for the authors' data sets: give dataset=")
    if authors:
        warn_outside(of_mapping(sent, rate, K))
        ask = partial(mapping_matrix, sent, rate, K)
        if dataset == "cifar10":
            noisy = _authors.one_class_after_another(given.values, rate, sent, seed)
        else:
            noisy = _authors.label_by_label(given.values, ask(), seed)
        return made(given, noisy, K, ask)
    return _mapped(given, rate, sent, K, seed, exact)


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
    given = take_labels(labels)
    K = take_classes(given, num_classes)
    return _mapped(given, take_rate(rate), next_class(K), K, take_seed(seed), exact)


def _mapped(
    given: Given, rate: float, sent: dict[int, int], K: int, seed: int, exact: bool
) -> NoisyLabels:
    warn_outside(of_mapping(sent, rate, K))
    table = as_table(sent, K)
    flipped = which(given.values, np.where(table >= 0, rate, 0.0), seed, exact=exact)
    noisy = given.values.copy()
    noisy[flipped] = table[given.values[flipped]]
    return made(given, noisy, K, partial(mapping_matrix, sent, rate, K))


def from_matrix(labels: Labels, T: Any, *, seed: int = 0, exact: bool = True) -> NoisyLabels:
    """Flip labels by a transition matrix.

    Args:
        labels: integers from 0, [N]: a NumPy array, a tensor, a list.
        T: [K, K], an array, a tensor or nested lists: T[i, j] is the probability that true class i
            is given as j, and each row sums to 1.
        seed: the same seed gives the same labels everywhere.
        exact: of each class the share that leaves it is rounded down or up so that the sum is
            right, and is spread over the others as T says, each count rounded down or up (both by
            largest remainder, so that the matrix achieved is T as nearly as counts can be); else
            each label is drawn by itself.

    >>> T = [[0.7, 0.3, 0.0], [0.0, 0.9, 0.1], [0.2, 0.2, 0.6]]
    >>> from_matrix([0] * 10 + [1] * 10 + [2] * 10, T).matrix
    array([[0.7, 0.3, 0. ],
           [0. , 0.9, 0.1],
           [0.2, 0.2, 0.6]])
    """
    given = take_labels(labels)
    asked = take_matrix(T)
    K = take_classes(given, len(asked), source="the size of T")
    seed = take_seed(seed)
    warn_outside(of_matrix(asked))
    others = asked.copy()
    np.fill_diagonal(others, 0.0)
    leaving = np.minimum(others.cumsum(1)[:, -1], 1.0)
    flipped = which(given.values, leaving, seed, exact=exact)
    spread = by_quotas if exact else by_weights
    noisy = given.values.copy()
    noisy[flipped] = spread(given.values, flipped, others, seed)
    return made(given, noisy, K, asked.copy)
