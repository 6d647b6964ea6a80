"""The same noisy labels as the code of the paper's authors gives for a seed.

NumPy's legacy generator, ``RandomState``, and its distributions are frozen. The calls below are in
the order of the authors' code, and round as it does.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    """Draw every label from the row of its class, in order (MNIST, CIFAR-100)."""
    random = np.random.RandomState(seed)
    rows = list(T)  # one by one: how many random numbers a draw takes depends on its outcome
    drawn = [random.multinomial(1, rows[label]).argmax() for label in labels]
    return np.array(drawn, dtype=np.int64)
