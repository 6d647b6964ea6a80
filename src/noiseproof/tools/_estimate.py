"""How likely each given label is wrong, and how labels are mistaken, from probabilities alone.

Probabilities are those of the true class, by a network that did not see the sample's label. Labels
are counted against them by confident learning (Northcutt et al., Confident Learning: Estimating
Uncertainty in Dataset Labels, JAIR 2021): a sample counts as of class k where its probability
exceeds what samples given as k have on average. From the counts follow the noise rate and the
transition matrix T, and from T by Bayes' rule what a label is worth:
P(true = k | x, given = j) is proportional to p_k(x) T[k, j].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_PRIOR = 10.0  # labels of each class, spread over all, that are added to what was counted


class Estimate(NamedTuple):
    """Of a set of labels."""

    joint: Floats
    """the share of samples of each true class (row) and given class (column), [K, K]"""
    transition: Floats
    """of each true class the share that is given as each, [K, K]"""
    posterior: Floats
    """of each sample the probability of each class, its given label counted in, [N, K]"""

    @property
    def rate(self) -> float:
        """The share of labels that are wrong."""
        return float(1 - np.trace(self.joint))


def estimate(probabilities: Floats, labels: NDArray[np.int64]) -> Estimate:
    """From probabilities [N, K] and labels [N]."""
    counts = np.bincount(labels, minlength=probabilities.shape[1]).astype(np.float64)
    joint = confident_joint(probabilities, labels) * counts
    joint /= joint.sum()
    smooth = joint * len(labels) + _PRIOR / len(counts)
    weights = smooth / smooth.sum(1, keepdims=True)
    posterior = probabilities * weights[:, labels].T
    posterior /= posterior.sum(1, keepdims=True)
    return Estimate(joint, _rows_to_one(joint), posterior)


def confident_joint(probabilities: Floats, labels: NDArray[np.int64]) -> Floats:
    """Of each given class (column) the share that is truly of each class (row), [K, K]."""
    num_classes = probabilities.shape[1]
    given = np.bincount(labels, minlength=num_classes)
    believed = probabilities[np.arange(len(labels)), labels]
    sums = np.bincount(labels, weights=believed, minlength=num_classes)
    thresholds = np.where(given > 0, sums / np.maximum(given, 1), np.inf)
    above = probabilities >= thresholds - 1e-9  # of float16 that are all equal, too
    said = np.where(above, probabilities, -1).argmax(1)
    counted = above.any(1)
    pairs = said[counted] * num_classes + labels[counted]
    counts = np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)
    counts = counts.astype(np.float64)
    empty = np.flatnonzero(counts.sum(0) == 0)
    counts[empty, empty] = 1  # nothing speaks against these labels
    shares: Floats = counts / counts.sum(0)
    return shares


def _rows_to_one(joint: Floats) -> Floats:
    sums = joint.sum(1, keepdims=True)
    found: Floats = np.where(sums > 0, joint / np.maximum(sums, 1e-300), np.eye(len(joint)))
    return found
