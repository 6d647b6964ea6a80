"""Label noise: the generators of the papers, and which labels were flipped.

>>> from noiseproof import noise
>>> noisy = noise.symmetric([0, 1, 2, 3, 4] * 100, 0.4, seed=0)
>>> noisy
NoisyLabels(500 labels of 5 classes, 40.00% wrong)

A NumPy array gives a NumPy array, a torch tensor a tensor. The names here are the public ones; the
files beside this one are private. torch is never imported.
"""

from ._conditions import Conditions, NoiseWarning, check
from ._generators import asymmetric, from_matrix, pairflip, symmetric
from ._instance import instance_dependent
from ._make import NAMES, make, matrix
from ._maps import circular, mapping_of
from ._noisy import NoisyLabels, class_rates, from_labels, transition_matrix

__all__ = [
    "NAMES",
    "Conditions",
    "NoiseWarning",
    "NoisyLabels",
    "asymmetric",
    "check",
    "circular",
    "class_rates",
    "from_labels",
    "from_matrix",
    "instance_dependent",
    "make",
    "mapping_of",
    "matrix",
    "pairflip",
    "symmetric",
    "transition_matrix",
]
