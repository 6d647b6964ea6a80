"""The two questions of every generator: which samples are flipped, and where do they go.

Each sample has a word of its own in each stream. Which are flipped does not depend on the kind of
noise: two kinds of one seed and rate flip the same samples of a class, and a higher rate flips
those of a lower one and more, up to the rounding of the class's count.
"""

from __future__ import annotations

import math

import numpy as np

from ._stream import Floats, Integers, Words, below, uniform, words

_FRACTION_BITS = 24  # of remainders: those that differ by rounding errors are equal


def which(labels: Integers, rates: Floats, seed: int, *, exact: bool) -> Integers:
    """The indices of the samples to flip, ``rates[j]`` of class j; exact ones sorted by class."""
    scores = words(seed, "which", len(labels))
    if not exact:
        return np.flatnonzero(uniform(scores) < rates[labels])
    counts = np.bincount(labels, minlength=len(rates))
    flips = apportion(rates * counts, words(seed, "round", len(rates)))
    order = _sorted_within_classes(labels, scores, len(rates))
    rank = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    return order[rank < np.repeat(flips, counts)]


def apportion(quotas: Floats, ties: Words) -> Integers:
    """Whole numbers in place of quotas: each rounded down or up, their sum to the nearest.

    Up go those with the largest remainders; equal ones in the order of the words given, since any
    fixed order would favour some classes under every seed.
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

    Class, score and index share one 64-bit number, so that a plain sort, several times faster than
    any that returns an order, does it; no two are equal, so every algorithm gives the same.
    """
    index_bits = max(len(labels) - 1, 1).bit_length()
    class_bits = (num_classes - 1).bit_length()
    score_bits = 64 - index_bits - class_bits
    if score_bits < 16:
        raise ValueError(
            f"{len(labels)} labels of {num_classes} classes are too many for exact counts: "
            f"give exact=False"
        )
    keys = scores >> np.uint64(64 - score_bits) << np.uint64(index_bits)
    keys |= labels.astype(np.uint64) << np.uint64(64 - class_bits)
    keys |= np.arange(len(labels), dtype=np.uint64)
    keys.sort()
    keys &= np.uint64((1 << index_bits) - 1)
    return keys.view(np.int64)


def to_any_other(labels: Integers, flipped: Integers, num_classes: int, seed: int) -> Integers:
    """A new class for each flipped sample, any but its own with the same probability."""
    drawn = words(seed, "where", len(labels))[flipped]
    target = below(drawn, num_classes - 1)
    target += target >= labels[flipped]
    return target


def by_quotas(labels: Integers, flipped: Integers, weights: Floats, seed: int) -> Integers:
    """New classes whose counts are as the rows of weights say, as nearly as counts can be.

    ``flipped`` is sorted by class and in random order within it (see :func:`which`), so the targets
    can be laid along it in blocks. ``weights[j, j]`` is 0; a row's scale does not matter.
    """
    K = len(weights)
    flips = np.bincount(labels[flipped], minlength=K)
    rows = np.flatnonzero(flips)
    chosen = weights[rows]
    quotas = chosen * (flips[rows] / chosen.cumsum(1)[:, -1])[:, None]
    whole = np.floor(quotas)
    left = flips[rows] - whole.sum(1).astype(np.int64)

    # The columns of each row in the order in which they get one more: remainder, then chance. One
    # 64-bit number holds both and the column, and no two are equal.
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


def by_weights(labels: Integers, flipped: Integers, weights: Floats, seed: int) -> Integers:
    """A new class for each flipped sample, drawn by the weights of its row."""
    u = uniform(words(seed, "where", len(labels)))[flipped]
    own = labels[flipped]
    target = np.empty(len(flipped), dtype=np.int64)
    order = np.argsort(own, kind="stable")
    edges = np.searchsorted(own[order], np.arange(len(weights) + 1))
    for row, start, end in zip(weights, edges[:-1], edges[1:], strict=True):
        if start < end:
            members = order[start:end]
            target[members] = _first_above(row.cumsum(), u[members])
    return target


def _first_above(cumulated: Floats, u: Floats) -> Integers:
    """The first class whose cumulated weight is above u times the total; never one of weight 0."""
    drawn = np.searchsorted(cumulated, u * cumulated[-1], side="right")
    last = np.searchsorted(cumulated, cumulated[-1])  # the last that has a weight
    target: Integers = np.minimum(drawn, last)
    return target
