"""Noise by its name, as text flags give it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ._generators import asymmetric, pairflip, symmetric
from ._instance import instance_dependent
from ._intake import Labels, take_classes, take_labels, take_rate, take_variant
from ._maps import CLASSES, mapping_matrix, mapping_of, next_class, symmetric_matrix
from ._noisy import NoisyLabels, made
from ._stream import Floats

KINDS = ("none", "symmetric", "asymmetric", "pairflip", "instance")
"""The names that :func:`make` knows; ``clean`` is another for ``none``."""


def make(
    kind: str,
    labels: Labels,
    rate: float = 0.0,
    *,
    num_classes: int | None = None,
    dataset: str | None = None,
    variant: str = "paper",
    seed: int = 0,
    exact: bool = True,
    features: Any = None,
) -> NoisyLabels:
    """Noise of a kind: one of ``none``, ``symmetric``, ``asymmetric``, ``pairflip``, ``instance``.

    Args:
        kind: the name; the rest is as in the function of that name.
        labels: integers from 0, [N].
        rate: the share of labels to flip; 0 for ``none``.
        num_classes: the data set's, if it is known, or the largest label and one, if not given.
        dataset: needed for ``asymmetric``.
        variant: ``paper``, or ``authors`` where the authors have such noise.
        seed: the same seed gives the same labels everywhere.
        exact: exact counts, or each label by a coin of its own; ``instance`` knows only the latter.
        features: needed for ``instance``.

    >>> make("symmetric", [0, 1, 2, 3] * 5, 0.4)
    NoisyLabels(20 labels of 4 classes, 40.00% wrong)
    """
    kind = _known(kind)
    authors = take_variant(variant, exact)
    if num_classes is None and dataset in CLASSES:
        num_classes = CLASSES[dataset]
    if kind == "none":
        return _none(labels, rate, num_classes)
    if kind == "symmetric":
        return symmetric(
            labels, rate, num_classes=num_classes, seed=seed, exact=exact, variant=variant
        )
    if kind == "asymmetric":
        return asymmetric(
            labels, rate, dataset=_needed(dataset), num_classes=num_classes,
            seed=seed, exact=exact, variant=variant,
        )  # fmt: skip
    if authors:
        raise ValueError(f"the authors have no {kind} noise: give variant='paper'")
    if kind == "pairflip":
        return pairflip(labels, rate, num_classes=num_classes, seed=seed, exact=exact)
    if features is None:
        raise ValueError("instance noise looks at the samples: give features=, [N, ...]")
    return instance_dependent(features, labels, rate, num_classes=num_classes, seed=seed)


def matrix(
    kind: str,
    rate: float = 0.0,
    *,
    num_classes: int | None = None,
    dataset: str | None = None,
    variant: str = "paper",
) -> Floats:
    """The transition matrix of a kind of noise, for a correction, a check, or a look.

    The arguments are those of :func:`make`; ``instance`` has no one matrix.

    >>> matrix("pairflip", 0.25, num_classes=3)
    array([[0.75, 0.25, 0.  ],
           [0.  , 0.75, 0.25],
           [0.25, 0.  , 0.75]])
    """
    kind, rate = _known(kind), take_rate(rate)
    take_variant(variant)
    if kind == "instance":
        raise ValueError("instance noise has no one matrix: make it, and look at its `asked`")
    if kind == "asymmetric":
        sent = mapping_of(_needed(dataset), variant)
    known = CLASSES.get(dataset or "")
    K = take_classes(take_labels([]), known if num_classes is None else num_classes)
    if kind == "asymmetric":
        if known != K:
            raise ValueError(f"num_classes = {K}, and {dataset} has {known}: leave it out")
        return mapping_matrix(sent, rate, K)
    if kind == "pairflip":
        return mapping_matrix(next_class(K), rate, K)
    if kind == "none" and rate:
        raise ValueError(f"noise 'none' has rate 0; it was {rate:g}: give a kind of {_names()}")
    return symmetric_matrix(rate, K)


def _none(labels: Labels, rate: float, num_classes: int | None) -> NoisyLabels:
    if take_rate(rate):
        raise ValueError(f"noise 'none' has rate 0; it was {rate:g}: give a kind of {_names()}")
    given = take_labels(labels)
    K = take_classes(given, num_classes)
    return made(given, given.values, K, partial(np.eye, K))


def _known(kind: str) -> str:
    kind = "none" if kind == "clean" else kind
    if kind not in KINDS:
        raise ValueError(f"no noise is called {kind!r}; there is {_names()}")
    return kind


def _names() -> str:
    return ", ".join(KINDS)


def _needed(dataset: str | None) -> str:
    if dataset is None:
        raise ValueError(
            f"asymmetric noise depends on what the classes are: give dataset= "
            f"({', '.join(CLASSES)}), or call noise.asymmetric with mapping="
        )
    return dataset
