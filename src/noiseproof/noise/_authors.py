"""The same noisy labels as the code of the paper's authors gives for a seed.

The numbers of NumPy's legacy generator, ``RandomState``, are frozen. The calls below are in the
order of the authors' code, and round as it does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from .._errors import UsageError
from ._stream import Floats, Integers


def symmetric(labels: Integers, rate: float, num_classes: int, seed: int) -> Integers:
    """Flip the same number of labels of every class, each to a random other class."""
    count = int(int(rate * len(labels)) / num_classes)
    sizes = np.bincount(labels, minlength=num_classes)
    if sizes.min() < count:
        raise UsageError(
            f"variant='authors' takes {count} labels from every class, and class {sizes.argmin()} "
            f"has {sizes.min()}: give variant='paper', which takes a share of each"
        )
    random = np.random.RandomState(seed)
    chosen = np.concatenate(
        [
            random.choice(np.flatnonzero(labels == j), count, replace=False)
            for j in range(num_classes)
        ]
    )
    # The authors call ``choice`` once for each label; one ``randint`` draws the same numbers.
    target = random.randint(0, num_classes - 1, size=len(chosen))
    noisy = labels.copy()
    noisy[chosen] = target + (target >= labels[chosen])
    return noisy


def one_class_after_another(
    labels: Integers, rate: float, mapping: Mapping[int, int], seed: int
) -> Integers:
    """Flip the classes one after another, labels that were flipped before included (CIFAR-10)."""
    random = np.random.RandomState(seed)
    noisy = labels.copy()
    for source, target in mapping.items():
        members = np.flatnonzero(noisy == source)
        noisy[random.choice(members, int(rate * len(members)), replace=False)] = target
    return noisy


def label_by_label(labels: Integers, T: Floats, seed: int) -> Integers:
    """Draw every label from the row of its class, in order (MNIST, CIFAR-100).

    The authors call ``RandomState.multinomial(1, row)`` for each. Since NumPy 2.5 that draws other
    numbers, so what it did before is done here: a class after another is taken with the
    probability that is left to it, each that has any costing one random number.
    """
    random = np.random.RandomState(seed)
    rows = [_chances(row) for row in T.tolist()]
    most = max(len(chances) for chances in rows)
    numbers = iter(random.random_sample(most * len(labels)).tolist())
    last = len(T) - 1
    drawn = [_take(rows[label], numbers, last) for label in labels.tolist()]
    return np.array(drawn, dtype=np.int64)


Chance = tuple[int, bool, float, float]  # class, likely or not, of the less likely: not, and yes


def _chances(row: list[float]) -> list[Chance]:
    """Of each class but the last that is possible, how likely it is if none before was taken."""
    chances, left = [], 1.0
    for k, p in enumerate(row[:-1]):
        if p == 0:
            continue
        taken = p / left
        likely = taken > 0.5
        less = 1 - taken if likely else taken
        no = math.exp(math.log(1 - less))
        chances.append((k, likely, no, less * no / (1 - less)))
        if taken >= 1:
            break
        left -= p
    return chances


def _take(chances: list[Chance], numbers: Iterator[float], last: int) -> int:
    """The first class that is taken; the last if no other is."""
    for k, likely, no, yes in chances:
        u = next(numbers)
        # Where rounding leaves a gap above the two, NumPy draws anew.
        while u > no and u - no > yes:
            u = next(numbers)
        if (u > no) != likely:
            return k
    return last
