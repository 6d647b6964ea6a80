"""The very labels of the authors' code, drawn as it draws them.

NumPy's legacy generator, ``RandomState``, is frozen, its distributions included. The order of the
calls below is the order of the authors', and so is every rounding.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ._stream import Floats, Integers


def symmetric(labels: Integers, rate: float, num_classes: int, seed: int) -> Integers:
    """The same count from every class; then a new class for each, in the order of the choice."""
    count = int(int(rate * len(labels)) / num_classes)
    sizes = np.bincount(labels, minlength=num_classes)
    if sizes.min() < count:
        raise ValueError(
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
    # ``choice`` of one of a list is ``randint`` of its length, and many are as one by one.
    target = random.randint(0, num_classes - 1, size=len(chosen))
    noisy = labels.copy()
    noisy[chosen] = target + (target >= labels[chosen])
    return noisy


def one_class_after_another(
    labels: Integers, rate: float, mapping: Mapping[int, int], seed: int
) -> Integers:
    """Each class of the mapping in its order, as the labels stand by then (CIFAR-10)."""
    random = np.random.RandomState(seed)
    noisy = labels.copy()
    for source, target in mapping.items():
        members = np.flatnonzero(noisy == source)
        noisy[random.choice(members, int(rate * len(members)), replace=False)] = target
    return noisy


def label_by_label(labels: Integers, T: Floats, seed: int) -> Integers:
    """A draw of one from the label's row, for every label in order (MNIST, CIFAR-100)."""
    random = np.random.RandomState(seed)
    rows = list(T)  # how much of the stream a draw takes depends on it: no vector can do this
    drawn = [random.multinomial(1, rows[label]).argmax() for label in labels]
    return np.array(drawn, dtype=np.int64)
