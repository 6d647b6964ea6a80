"""How likely each given label is wrong, and how labels are mistaken, from probabilities alone.

Probabilities are those of the true class, by a network that did not see the sample's label. Labels
are counted against them by confident learning (Northcutt et al., Confident Learning: Estimating
Uncertainty in Dataset Labels, JAIR 2021): a sample counts as of class k where its probability is
what samples given as k have on average, or more. From the counts follow the noise rate and the
transition matrix T, and from T by Bayes' rule what a label is worth:
P(true = k | x, given = j) is proportional to p_k(x) T[k, j].
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Probabilities = NDArray[np.float32]
Labels = NDArray[np.int64]
_PRIOR = 10.0  # labels of each class, spread over all, that are added to what was counted
_BLOCK = 1 << 24  # numbers that are computed on at a time
_TIE = 1e-6  # of float32


def joint_of(probabilities: Probabilities, labels: Labels) -> Floats:
    """The share of samples of each true class (row) and given class (column), [K, K]."""
    num_classes = probabilities.shape[1]
    given = np.bincount(labels, minlength=num_classes)
    believed = probabilities[np.arange(len(labels)), labels]
    sums = np.bincount(labels, weights=believed, minlength=num_classes)
    thresholds = np.where(given > 0, sums / np.maximum(given, 1) - _TIE, np.inf)
    counts = np.zeros(num_classes**2)
    for part in _blocks(probabilities):
        p = probabilities[part]
        above = p >= thresholds
        said, counted = np.where(above, p, -1).argmax(1), above.any(1)
        pairs = said[counted] * num_classes + labels[part][counted]
        counts += np.bincount(pairs, minlength=num_classes**2)
    shares = counts.reshape(num_classes, num_classes)
    empty = np.flatnonzero(shares.sum(0) == 0)
    shares[empty, empty] = 1  # nothing speaks against these labels
    joint: Floats = shares / shares.sum(0) * (given / given.sum())
    return joint


def transition_of(joint: Floats) -> Floats:
    """Of each true class the share that is given as each, [K, K]; every row sums to 1."""
    sums = joint.sum(1, keepdims=True)
    found: Floats = np.where(sums > 0, joint / np.maximum(sums, 1e-300), np.eye(len(joint)))
    return found


def judge(probabilities: Probabilities, labels: Labels, joint: Floats) -> tuple[Floats, Labels]:
    """Of each sample how likely its label is wrong, and the most likely class beside that label."""
    smooth = joint * len(labels) + _PRIOR / len(joint)
    weights = smooth / smooth.sum(1, keepdims=True)
    scores, suggested = np.empty(len(labels)), np.empty(len(labels), np.int64)
    for part in _blocks(probabilities):
        given = labels[part]
        every = np.arange(len(given))
        posterior = probabilities[part] * weights[:, given].T
        kept = posterior[every, given].copy()
        scores[part] = 1 - kept / posterior.sum(1)
        posterior[every, given] = -1
        suggested[part] = posterior.argmax(1)
    return scores, suggested


def _blocks(probabilities: Probabilities) -> Iterator[slice]:
    rows = max(1, _BLOCK // probabilities.shape[1])
    return (slice(i, i + rows) for i in range(0, len(probabilities), rows))
