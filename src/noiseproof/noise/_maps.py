"""Which class is mistaken for which: the maps of the data sets, and matrices by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from .._hints import nearest
from ._intake import take_variant
from ._stream import Floats, Integers

# 7 -> 1, 2 -> 7, 5 <-> 6, 3 -> 8
_DIGITS = {7: 1, 2: 7, 5: 6, 6: 5, 3: 8}

# truck -> automobile, bird -> airplane, deer -> horse, cat <-> dog, in the authors' order
_CIFAR10 = {9: 1, 2: 0, 3: 5, 5: 3, 4: 7}

# Fine labels of each superclass of CIFAR-100, in the order of the coarse labels.
_SUPERCLASSES = {
    "aquatic mammals": (4, 30, 55, 72, 95),
    "fish": (1, 32, 67, 73, 91),
    "flowers": (54, 62, 70, 82, 92),
    "food containers": (9, 10, 16, 28, 61),
    "fruit and vegetables": (0, 51, 53, 57, 83),
    "household electrical devices": (22, 39, 40, 86, 87),
    "household furniture": (5, 20, 25, 84, 94),
    "insects": (6, 7, 14, 18, 24),
    "large carnivores": (3, 42, 43, 88, 97),
    "large man-made outdoor things": (12, 17, 37, 68, 76),
    "large natural outdoor scenes": (23, 33, 49, 60, 71),
    "large omnivores and herbivores": (15, 19, 21, 31, 38),
    "medium-sized mammals": (34, 63, 64, 66, 75),
    "non-insect invertebrates": (26, 45, 77, 79, 99),
    "people": (2, 11, 35, 46, 98),
    "reptiles": (27, 29, 44, 78, 93),
    "small mammals": (36, 50, 65, 74, 80),
    "trees": (47, 52, 56, 59, 96),
    "vehicles 1": (8, 13, 48, 58, 90),
    "vehicles 2": (41, 69, 81, 85, 89),
}

CLASSES = {"digits": 10, "mnist": 10, "cifar10": 10, "cifar100": 100}


def circular(groups: Iterable[Sequence[int]]) -> dict[int, int]:
    """The mapping that sends each class to the next of its group, and the last to the first.

    >>> circular([(0, 1, 2), (5, 7)])
    {0: 1, 1: 2, 2: 0, 5: 7, 7: 5}
    """
    rings = [list(group) for group in groups]
    for group in rings:
        if len(set(group)) < 2 or len(set(group)) < len(group):
            raise ValueError(f"a group must be two classes or more, each once; it was {group}")
    sent = {a: b for group in rings for a, b in zip(group, group[1:] + group[:1], strict=True)}
    if len(sent) < sum(map(len, rings)):
        raise ValueError("a class must be in one group only")
    return sent


def mapping_of(dataset: str, variant: str = "paper") -> dict[int, int]:
    """Where the classes of a data set go under asymmetric noise.

    Args:
        dataset: ``mnist`` (and ``digits``, by the same map), ``cifar10`` or ``cifar100``.
        variant: on CIFAR-100 ``paper`` means the next class of the same superclass, and ``authors``
            the next of five consecutive fine labels, which is what the authors' code does.

    >>> mapping_of("cifar10")
    {9: 1, 2: 0, 3: 5, 5: 3, 4: 7}
    >>> mapping_of("cifar100")[4], mapping_of("cifar100", "authors")[4]  # beaver
    (30, 0)
    """
    take_variant(variant)
    if dataset not in CLASSES:
        hint = nearest(str(dataset), CLASSES)
        raise ValueError(
            f"no asymmetric noise is known for dataset {dataset!r}{hint}; there is "
            f"{', '.join(CLASSES)}: for another, give mapping={{class: class it is taken for}}"
        )
    if dataset == "cifar100":
        consecutive = (range(first, first + 5) for first in range(0, 100, 5))
        return circular(consecutive if variant == "authors" else _SUPERCLASSES.values())
    return dict(_CIFAR10 if dataset == "cifar10" else _DIGITS)


def take_mapping(mapping: Mapping[int, int], num_classes: int) -> dict[int, int]:
    """A mapping of the user's, checked."""
    if not isinstance(mapping, Mapping):
        raise TypeError(
            f"mapping must be a dict, {{class: class it is taken for}}; it was {mapping!r}"
        )
    sent: dict[int, int] = {}
    for pair in mapping.items():
        for label in pair:
            if not isinstance(label, int | np.integer) or isinstance(label, bool):
                raise TypeError(f"mapping must be from class to class, integers; it had {label!r}")
            if not 0 <= label < num_classes:
                raise ValueError(
                    f"mapping has class {label}, and the {num_classes} classes are 0 to "
                    f"{num_classes - 1}"
                )
        if pair[0] == pair[1]:
            raise ValueError(f"mapping sends class {pair[0]} to itself: leave it out")
        sent[int(pair[0])] = int(pair[1])
    return sent


def mapping_matrix(mapping: Mapping[int, int], rate: float, num_classes: int) -> Floats:
    T = np.eye(num_classes)
    for source, target in mapping.items():
        T[source, source], T[source, target] = 1 - rate, rate
    return T


def symmetric_matrix(rate: float, num_classes: int) -> Floats:
    T = np.full((num_classes, num_classes), rate / (num_classes - 1))
    np.fill_diagonal(T, 1 - rate)
    return T


def next_class(num_classes: int) -> dict[int, int]:
    """The mapping of pair flipping: every class to the next, the last to the first."""
    return circular([range(num_classes)])


def as_table(mapping: Mapping[int, int], num_classes: int) -> Integers:
    """Where each class goes, as an array; -1 where it stays."""
    table = np.full(num_classes, -1, dtype=np.int64)
    table[list(mapping)] = list(mapping.values())
    return table
