"""Which class is mistaken for which in each data set, and transition matrices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from .._errors import UsageError, UsageTypeError
from .._hints import nearest
from ..catalogue import DATASETS
from ._checks import check_variant
from ._stream import Floats, Integers

CLASSES = {name: entry.num_classes for name, entry in DATASETS.items() if entry.confusions}
"""The number of classes of each data set for which asymmetric noise is known."""


def circular(groups: Iterable[Sequence[int]]) -> dict[int, int]:
    """The mapping from each class to the next of its group, and from the last to the first.

    >>> circular([(0, 1, 2), (5, 7)])
    {0: 1, 1: 2, 2: 0, 5: 7, 7: 5}
    """
    cycles = [list(group) for group in groups]
    for group in cycles:
        if len(set(group)) < 2 or len(set(group)) < len(group):
            raise UsageError(f"a group must be two classes or more, each once; it was {group}")
    mapping = {a: b for group in cycles for a, b in zip(group, group[1:] + group[:1], strict=True)}
    if len(mapping) < sum(map(len, cycles)):
        raise UsageError("a class must be in one group only")
    return mapping


def mapping_of(dataset: str, variant: str = "paper") -> dict[int, int]:
    """The class that each class is mistaken for under asymmetric noise.

    Args:
        dataset: ``mnist`` (and ``digits``, by the same map), ``cifar10`` or ``cifar100``.
        variant: on CIFAR-100 ``paper`` means the next class of the same superclass, and ``authors``
            the next of five consecutive fine labels, which is what the authors' code does.

    >>> mapping_of("cifar10")
    {9: 1, 2: 0, 3: 5, 5: 3, 4: 7}
    >>> mapping_of("cifar100")[4], mapping_of("cifar100", "authors")[4]  # beaver
    (30, 0)
    """
    check_variant(variant)
    if dataset not in CLASSES:
        hint = nearest(str(dataset), CLASSES)
        raise UsageError(
            f"no asymmetric noise is known for dataset {dataset!r}{hint}; there is "
            f"{', '.join(CLASSES)}: for another, give mapping={{class: class it is taken for}}"
        )
    return dict(DATASETS[dataset].confusions[variant])


def check_mapping(mapping: Mapping[int, int], num_classes: int) -> dict[int, int]:
    """Check a mapping of classes."""
    if not isinstance(mapping, Mapping):
        raise UsageTypeError(
            f"mapping must be a dict, {{class: class it is taken for}}; it was {mapping!r}"
        )
    checked: dict[int, int] = {}
    for pair in mapping.items():
        for label in pair:
            if not isinstance(label, int | np.integer) or isinstance(label, bool):
                raise UsageTypeError(
                    f"mapping must be from class to class, integers; it had {label!r}"
                )
            if not 0 <= label < num_classes:
                raise UsageError(
                    f"mapping has class {label}, and the {num_classes} classes are 0 to "
                    f"{num_classes - 1}"
                )
        if pair[0] == pair[1]:
            raise UsageError(f"mapping sends class {pair[0]} to itself: leave it out")
        checked[int(pair[0])] = int(pair[1])
    return checked


def mapping_matrix(mapping: Mapping[int, int], rate: float, num_classes: int) -> Floats:
    T = np.eye(num_classes)
    for source, target in mapping.items():
        T[source, source], T[source, target] = 1 - rate, rate
    return T


def symmetric_matrix(rate: float, num_classes: int) -> Floats:
    T = np.full((num_classes, num_classes), rate / (num_classes - 1))
    np.fill_diagonal(T, 1 - rate)
    return T


def next_class_mapping(num_classes: int) -> dict[int, int]:
    """The mapping of pair flipping: from every class to the next, from the last to the first."""
    return circular([range(num_classes)])


def mapping_array(mapping: Mapping[int, int], num_classes: int) -> Integers:
    """A mapping as an array, [K]; -1 for classes that are not in it."""
    array = np.full(num_classes, -1, dtype=np.int64)
    array[list(mapping)] = list(mapping.values())
    return array
