"""Noise by sample: what a sample looks like decides how often, and as what, it is mistaken."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._conditions import of_matrix, warn_outside
from ._intake import Labels, as_array, take_classes, take_labels, take_rate, take_seed
from ._noisy import NoisyLabels, made
from ._stream import Floats, Integers, normal, truncated_normal, uniform, words

DEVIATION = 0.1  # of the samples' rates around the one asked for
_BLOCK = 1 << 22  # numbers of features that are held in float64 at a time


def instance_dependent(
    features: Any,
    labels: Labels,
    rate: float,
    *,
    num_classes: int | None = None,
    seed: int = 0,
) -> NoisyLabels:
    """Flip labels by what the samples look like.

    Each sample has a rate of its own, normal around ``rate`` with deviation 0.1 within [0, 1], so
    the mean is above a rate near 0 and below one near 1 (0 itself flips nothing). Each class has a
    random normal matrix from features to classes; the softmax of a sample's projection by its
    class's matrix, its own class left out, is where it goes (Xia et al., Part-dependent Label
    Noise, NeurIPS 2020). ``asked`` is the mean over the samples of a class.

    The features are taken as they are: the larger their scale, the surer a sample's destination. As
    they are summed in floating point, two machines may differ in the last digit, and so in a label
    whose draw falls that near to an edge: one in 10^12, or none in any data set there is.

    Args:
        features: [N, ...], numbers: images, or what a network makes of them.
        labels: integers from 0, [N]: a NumPy array, a tensor, a list.
        rate: the rate around which those of the samples lie, 0 to 1.
        num_classes: the largest label and one, if not given.
        seed: the same seed gives the same labels.

    >>> import numpy as np
    >>> x = np.linspace(0, 1, 3000).reshape(1000, 3)
    >>> noisy = instance_dependent(x, np.arange(1000) % 4, 0.3)
    >>> 0.25 < noisy.rate < 0.35
    True
    """
    given = take_labels(labels)
    rate = take_rate(rate)
    K = take_classes(given, num_classes)
    seed = take_seed(seed)
    array = _take_features(features, len(given.values))
    N, D = array.shape

    rates = truncated_normal(words(seed, "rate", N), rate, DEVIATION) if rate else np.zeros(N)
    flips = uniform(words(seed, "which", N)) < rates
    where = uniform(words(seed, "where", N))
    noisy, asked = given.values.copy(), np.eye(K)
    for own in np.unique(given.values):
        members = np.flatnonzero(given.values == own)
        project = normal(words(seed, "project", D * K, part=int(own))).reshape(D, K)
        total = np.zeros(K)
        for block in np.array_split(members, -(-len(members) * D // _BLOCK) or 1):
            weights = _softmax_of_others(array[block].astype(np.float64) @ project, own)
            total += rates[block] @ weights
            flipped = np.flatnonzero(flips[block])
            chosen = block[flipped]
            noisy[chosen] = _draw_by_row(weights[flipped], where[chosen])
        asked[own] = total / len(members)
        asked[own, own] = 1 - rates[members].mean()
    warn_outside(of_matrix(asked))
    return made(given, noisy, K, asked.copy)


def _take_features(features: Any, count: int) -> NDArray[Any]:
    array = as_array(features)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"features must be numbers, [N, ...]; they were {array.dtype}")
    if array.ndim < 2 or len(array) != count:
        raise ValueError(
            f"features must be [N, ...] for the N = {count} labels; their shape was "
            f"{list(array.shape)}" + ("" if array.ndim != 1 else ": give features[:, None]")
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("features must be finite: some are NaN or infinite")
    return array.reshape(count, int(np.prod(array.shape[1:])))


def _softmax_of_others(scores: Floats, own: int) -> Floats:
    scores[:, own] = -np.inf
    scores -= scores.max(1, keepdims=True)
    weights: Floats = np.exp(scores)
    weights /= weights.sum(1, keepdims=True)
    return weights


def _draw_by_row(weights: Floats, u: Floats) -> Integers:
    """For each row the first class whose cumulated weight is above u times the row's total."""
    cumulated = weights.cumsum(1)
    total = cumulated[:, -1:]
    drawn = np.count_nonzero(cumulated <= u[:, None] * total, axis=1)
    last = np.count_nonzero(cumulated < total, axis=1)
    target: Integers = np.minimum(drawn, last)
    return target
