"""What the tests of the noise run over: every generator by one signature, and labels to give it."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from noiseproof import noise


def features_of(labels):
    """Fixed features: a few waves of the sample's index."""
    grid = np.arange(len(labels))[:, None] * np.array([[0.1, 0.37, 1.3]])
    return np.round(np.sin(grid), 3)


def _instance(labels, rate, *, num_classes, seed):
    return noise.instance_dependent(
        features_of(labels), labels, rate, num_classes=num_classes, seed=seed
    )


def _by_matrix(labels, rate, *, num_classes, seed, **keywords):
    return noise.from_matrix(labels, uneven(rate, num_classes), seed=seed, **keywords)


def _mapped(labels, rate, *, num_classes, seed, **keywords):
    mapping = {0: 1} if num_classes == 2 else {1: 0, 2: 1}
    return noise.asymmetric(
        labels, rate, mapping=mapping, num_classes=num_classes, seed=seed, **keywords
    )


def uneven(rate, num_classes):
    """A matrix whose classes lose ``rate``, half to the next and the rest by a falling share."""
    T = np.zeros((num_classes, num_classes))
    for j in range(num_classes):
        others = [(j + step) % num_classes for step in range(1, num_classes)]
        shares = 0.5 ** np.arange(1, num_classes)
        T[j, others] = rate * shares / shares.sum()
        T[j, j] = 1 - rate
    return T


def independent(generator):
    return lambda *args, **keywords: generator(*args, exact=False, **keywords)


EXACT = {
    "symmetric": noise.symmetric,
    "pairflip": noise.pairflip,
    "asymmetric": _mapped,
    "from_matrix": _by_matrix,
}
ALL = {
    **EXACT,
    **{f"{name}, independent": independent(generator) for name, generator in EXACT.items()},
    "instance": _instance,
}


@st.composite
def labelled(draw, most=200):
    """Labels and their number of classes; classes of any size, some empty."""
    num_classes = draw(st.integers(2, 12))
    sizes = draw(st.lists(st.integers(0, most // 4), min_size=num_classes, max_size=num_classes))
    labels = np.repeat(np.arange(num_classes), sizes)
    order = draw(st.integers(0, 2**32 - 1))
    return np.random.RandomState(order).permutation(labels), num_classes


rates = st.floats(0, 1) | st.sampled_from([0.0, 0.1, 0.2, 0.29, 0.4, 0.8, 1.0])
seeds = st.integers(0, 2**64 - 1)
