"""Instance-dependent noise: the features of a sample decide its rate and its new class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import UsageError, UsageTypeError
from ._checks import Labels, as_array, check_classes, check_labels, check_rate, check_seed
from ._conditions import conditions_of_matrix, warn_if_violated
from ._noisy import NoisyLabels, noisy_labels
from ._stream import Floats, Integers, normal, truncated_normal, uniform, words

STD = 0.1  # of the rates of the samples
_BLOCK = 1 << 22  # numbers of features that are converted to float64 at a time


def instance_dependent(
    features: Any,
    labels: Labels,
    rate: float,
    *,
    num_classes: int | None = None,
    seed: int = 0,
) -> NoisyLabels:
    """Flip labels depending on the features of the samples.

    Each sample has its own rate, from a normal distribution around ``rate`` with standard deviation
    0.1, truncated to [0, 1]; so the mean is above a rate near 0 and below one near 1 (a rate of 0
    flips nothing). Each class has a random normal matrix from features to classes; the new class of
    a sample is drawn from the softmax of its projection by the matrix of its class, without that
    class (Xia et al., Part-dependent Label Noise, NeurIPS 2020). ``requested_matrix`` is the mean
    over the samples of a class.

    The features are not rescaled: the larger they are, the more certain is the new class of a
    sample. They are summed in floating point, so two machines may differ in the last digit, and
    thereby in about one label of 10^12.

    Args:
        features: [N, ...], numbers: images, or the features that a network computes.
        labels: integers from 0, [N]: a NumPy array, a tensor, a list.
        rate: the mean of the rates before truncation, 0 to 1.
        num_classes: the number of classes. Default: the largest label and one.
        seed: the same seed gives the same labels.

    >>> import numpy as np
    >>> x = np.linspace(0, 1, 3000).reshape(1000, 3)
    >>> noisy = instance_dependent(x, np.arange(1000) % 4, 0.3)
    >>> 0.25 < noisy.rate < 0.35
    True
    """
    checked = check_labels(labels)
    rate = check_rate(rate)
    K = check_classes(checked, num_classes)
    seed = check_seed(seed)
    array = _check_features(features, len(checked.values))
    N, D = array.shape

    rates = truncated_normal(words(seed, "rate", N), rate, STD) if rate else np.zeros(N)
    flips = uniform(words(seed, "which", N)) < rates
    where = uniform(words(seed, "where", N))
    noisy, requested = checked.values.copy(), np.eye(K)
    for label in np.unique(checked.values):
        members = np.flatnonzero(checked.values == label)
        project = normal(words(seed, "project", D * K, part=int(label))).reshape(D, K)
        total = np.zeros(K)
        for block in np.array_split(members, -(-len(members) * D // _BLOCK) or 1):
            weights = _softmax_of_others(array[block].astype(np.float64) @ project, label)
            total += rates[block] @ weights
            flipped = np.flatnonzero(flips[block])
            chosen = block[flipped]
            noisy[chosen] = _draw_by_row(weights[flipped], where[chosen])
        requested[label] = total / len(members)
        requested[label, label] = 1 - rates[members].mean()
    warn_if_violated(conditions_of_matrix(requested))
    return noisy_labels(checked, noisy, K, requested.copy)


def _check_features(features: Any, count: int) -> NDArray[Any]:
    array = as_array(features)
    if array.dtype.kind not in "fiub":
        raise UsageTypeError(f"features must be numbers, [N, ...]; they were {array.dtype}")
    if array.ndim < 2 or len(array) != count:
        raise UsageError(
            f"features must be [N, ...] for the N = {count} labels; their shape was "
            f"{list(array.shape)}" + ("" if array.ndim != 1 else ": give features[:, None]")
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise UsageError("features must be finite: some are NaN or infinite")
    return array.reshape(count, int(np.prod(array.shape[1:])))


def _softmax_of_others(scores: Floats, label: int) -> Floats:
    scores[:, label] = -np.inf
    scores -= scores.max(1, keepdims=True)
    weights: Floats = np.exp(scores)
    weights /= weights.sum(1, keepdims=True)
    return weights


def _draw_by_row(weights: Floats, u: Floats) -> Integers:
    """For each row the first class whose cumulated weight exceeds u times the row's total."""
    cumulated = weights.cumsum(1)
    total = cumulated[:, -1:]
    drawn = np.count_nonzero(cumulated <= u[:, None] * total, axis=1)
    last = np.count_nonzero(cumulated < total, axis=1)
    target: Integers = np.minimum(drawn, last)
    return target
