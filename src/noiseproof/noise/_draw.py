"""The two steps of every generator: choose the samples to flip, and draw their new classes.

Each sample has a random number of its own in each step. Which samples are flipped does not depend
on the kind of noise: two kinds with the same seed and rate flip the same samples of a class, and a
higher rate flips those of a lower rate and more, up to the rounding of the class's count.
"""

from __future__ import annotations

import math

import numpy as np

from .._errors import UsageError
from ._stream import Floats, Integers, Words, integers_below, uniform, words

_FRACTION_BITS = 24  # of remainders, so that rounding errors do not tell them apart


def choose_flipped(labels: Integers, rates: Floats, seed: int, *, exact: bool) -> Integers:
    """The indices of the samples to flip, ``rates[j]`` of class j; sorted by class if exact."""
    scores = words(seed, "which", len(labels))
    if not exact:
        return np.flatnonzero(uniform(scores) < rates[labels])
    counts = np.bincount(labels, minlength=len(rates))
    flips = apportion(rates * counts, words(seed, "round", len(rates)))
    order = _sorted_within_classes(labels, scores, len(rates))
    rank = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    return order[rank < np.repeat(flips, counts)]


def apportion(quotas: Floats, ties: Words) -> Integers:
    """Round quotas down or up, so that their sum is rounded to the nearest integer.

    Those with the largest remainders are rounded up. Ties are broken by the random numbers
    ``ties``: a fixed order would favour the same classes under every seed.
    """
    whole = np.floor(quotas)
    remainder = np.rint((quotas - whole) * 2**_FRACTION_BITS)
    total = math.floor(math.fsum(quotas) + 0.5)  # fsum: the same in any order
    left = total - int(whole.sum())
    first = np.lexsort((ties, -remainder))
    whole[first[: min(left, np.count_nonzero(remainder))]] += 1
    return whole.astype(np.int64)


def _sorted_within_classes(labels: Integers, scores: Words, num_classes: int) -> Integers:
    """The indices sorted by class, and within a class by score.

    Class, score and index are packed into one 64-bit number, because a plain sort is several times
    faster than an argsort. No two are equal, so every sorting algorithm gives the same result.
    """
    index_bits = max(len(labels) - 1, 1).bit_length()
    class_bits = (num_classes - 1).bit_length()
    score_bits = 64 - index_bits - class_bits
    if score_bits < 16:
        raise UsageError(
            f"{len(labels)} labels of {num_classes} classes are too many for exact counts: "
            f"give exact=False"
        )
    keys = scores >> np.uint64(64 - score_bits) << np.uint64(index_bits)
    keys |= labels.astype(np.uint64) << np.uint64(64 - class_bits)
    keys |= np.arange(len(labels), dtype=np.uint64)
    keys.sort()
    keys &= np.uint64((1 << index_bits) - 1)
    return keys.view(np.int64)


def draw_other_class(labels: Integers, flipped: Integers, num_classes: int, seed: int) -> Integers:
    """A new class for each flipped sample, each of the others with the same probability."""
    drawn = words(seed, "where", len(labels))[flipped]
    target = integers_below(drawn, num_classes - 1)
    target += target >= labels[flipped]
    return target


def targets_by_quota(labels: Integers, flipped: Integers, weights: Floats, seed: int) -> Integers:
    """New classes for the flipped samples, with counts proportional to the rows of weights.

    Counts are rounded by largest remainder. ``flipped`` is sorted by class and in random order
    within each class (see :func:`choose_flipped`), so the targets of a class can be assigned in
    blocks. ``weights[j, j]`` is 0; the scale of a row does not matter.
    """
    K = len(weights)
    flips = np.bincount(labels[flipped], minlength=K)
    rows = np.flatnonzero(flips)
    chosen = weights[rows]
    quotas = chosen * (flips[rows] / chosen.cumsum(1)[:, -1])[:, None]
    whole = np.floor(quotas)
    left = flips[rows] - whole.sum(1).astype(np.int64)

    # The columns of each row in the order in which they are rounded up: by remainder, ties by
    # random numbers. Both are packed with the column into one 64-bit number; no two are equal.
    column_bits = np.uint64((K - 1).bit_length())
    ties = words(seed, "spread", K * K).reshape(K, K)[rows]
    remainder = np.rint((quotas - whole) * 2**_FRACTION_BITS).astype(np.uint64)
    keys = ties >> np.uint64(_FRACTION_BITS + 1) >> column_bits << column_bits
    keys |= np.arange(K, dtype=np.uint64)
    keys |= (np.uint64(2**_FRACTION_BITS) - remainder) << np.uint64(63 - _FRACTION_BITS)
    keys.sort(axis=1)
    keys &= (np.uint64(1) << column_bits) - np.uint64(1)
    more = np.arange(K) < left[:, None]
    whole[np.nonzero(more)[0], keys[more].view(np.int64)] += 1
    return np.repeat(np.tile(np.arange(K), len(rows)), whole.astype(np.int64).ravel())


def targets_by_weight(labels: Integers, flipped: Integers, weights: Floats, seed: int) -> Integers:
    """A new class for each flipped sample, drawn in proportion to its row of weights."""
    u = uniform(words(seed, "where", len(labels)))[flipped]
    old = labels[flipped]
    target = np.empty(len(flipped), dtype=np.int64)
    order = np.argsort(old, kind="stable")
    edges = np.searchsorted(old[order], np.arange(len(weights) + 1))
    for row, start, end in zip(weights, edges[:-1], edges[1:], strict=True):
        if start < end:
            members = order[start:end]
            target[members] = _first_above(row.cumsum(), u[members])
    return target


def _first_above(cumulated: Floats, u: Floats) -> Integers:
    """The first class whose cumulated weight exceeds u times the total; never one of weight 0."""
    drawn = np.searchsorted(cumulated, u * cumulated[-1], side="right")
    last = np.searchsorted(cumulated, cumulated[-1])  # the last that has a weight
    target: Integers = np.minimum(drawn, last)
    return target
