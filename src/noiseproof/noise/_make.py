"""Noise by name."""

from __future__ import annotations

import importlib
import inspect
from functools import partial
from typing import Any

import numpy as np

from .._errors import UsageError
from ..catalogue import CLEAN, NOISES
from ._checks import Labels, check_classes, check_labels, check_rate, check_variant
from ._maps import CLASSES, mapping_matrix, mapping_of, next_class_mapping, symmetric_matrix
from ._noisy import NoisyLabels, noisy_labels
from ._stream import Floats

NAMES = tuple(n for n, entry in NOISES.items() if entry.group in ("clean", "drawn"))
"""The names that :func:`make` takes; ``clean`` is another name for ``none``."""


def make(
    name: str,
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
    """Noisy labels of a named kind of noise.

    Args:
        name: ``none``, ``symmetric``, ``asymmetric``, ``pairflip`` or ``instance``; the other
            arguments are those of the function of that name.
        labels: integers from 0, [N].
        rate: the share of labels to flip; 0 for ``none``.
        num_classes: the number of classes. Default: that of the data set, or the largest label
            and one.
        dataset: needed for ``asymmetric``.
        variant: ``paper``, or ``authors`` for symmetric and asymmetric noise.
        seed: the same seed gives the same labels on every machine.
        exact: whether counts are exact, or each label is flipped independently, as ``instance``
            always does.
        features: needed for ``instance``.

    >>> make("symmetric", [0, 1, 2, 3] * 5, 0.4)
    NoisyLabels(20 labels of 4 classes, 40.00% wrong)
    """
    name = _check_name(name)
    check_variant(variant, exact)
    if num_classes is None and dataset in CLASSES:
        num_classes = CLASSES[dataset]
    if name == CLEAN:
        return _no_noise(labels, rate, num_classes)
    if variant not in NOISES[name].variants:
        raise UsageError(f"the authors have no {name} noise: give variant='paper'")
    function = getattr(importlib.import_module(__package__), NOISES[name].function)
    given = {
        "labels": labels, "rate": rate, "num_classes": num_classes, "dataset": dataset,
        "variant": variant, "seed": seed, "exact": exact, "features": features,
    }  # fmt: skip
    wanted = inspect.signature(function).parameters
    if "dataset" in wanted:
        _require_dataset(dataset)
    if "features" in wanted and features is None:
        raise UsageError(f"{name} noise looks at the samples: give features=, [N, ...]")
    noisy: NoisyLabels = function(**{k: v for k, v in given.items() if k in wanted})
    return noisy


def matrix(
    name: str,
    rate: float = 0.0,
    *,
    num_classes: int | None = None,
    dataset: str | None = None,
    variant: str = "paper",
) -> Floats:
    """The transition matrix of a named kind of noise.

    The arguments are those of :func:`make`; ``instance`` has no single matrix.

    >>> matrix("pairflip", 0.25, num_classes=3)
    array([[0.75, 0.25, 0.  ],
           [0.  , 0.75, 0.25],
           [0.25, 0.  , 0.75]])
    """
    name, rate = _check_name(name), check_rate(rate)
    check_variant(variant)
    if name == "instance":
        raise UsageError(
            "instance noise has no one matrix: make it, and look at its `requested_matrix`"
        )
    if name == "asymmetric":
        class_map = mapping_of(_require_dataset(dataset), variant)
    known = CLASSES.get(dataset or "")
    K = check_classes(check_labels([]), known if num_classes is None else num_classes)
    if name == "asymmetric":
        if known != K:
            raise UsageError(f"num_classes = {K}, and {dataset} has {known}: leave it out")
        return mapping_matrix(class_map, rate, K)
    if name == "pairflip":
        return mapping_matrix(next_class_mapping(K), rate, K)
    if name == "none" and rate:
        raise UsageError(
            f"noise 'none' has rate 0; it was {rate:g}: give a kind of {_listed_names()}"
        )
    if name not in ("none", "symmetric"):
        raise UsageError(f"no matrix is known for {name} noise; make it, and look at its `matrix`")
    return symmetric_matrix(rate, K)


def _no_noise(labels: Labels, rate: float, num_classes: int | None) -> NoisyLabels:
    if check_rate(rate):
        raise UsageError(
            f"noise 'none' has rate 0; it was {rate:g}: give a kind of {_listed_names()}"
        )
    checked = check_labels(labels)
    K = check_classes(checked, num_classes)
    return noisy_labels(checked, checked.values, K, partial(np.eye, K))


def _check_name(name: str) -> str:
    name = "none" if name == "clean" else name
    if name not in NAMES:
        raise UsageError(f"no noise is called {name!r}; there is {_listed_names()}")
    return name


def _listed_names() -> str:
    return ", ".join(NAMES)


def _require_dataset(dataset: str | None) -> str:
    if dataset is None:
        raise UsageError(
            f"asymmetric noise depends on what the classes are: give dataset= "
            f"({', '.join(CLASSES)}), or call noise.asymmetric with mapping="
        )
    return dataset
