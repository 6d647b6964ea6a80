"""Losses for labels that may be wrong: declared once, and everything else derived.

The names here are the public ones; the files beside this one are private.
"""

from ._expression import Expression, Kind
from ._hyper import Hyper, hyper
from ._module import Loss, NormalizedLoss, SeparableLoss
from ._normalize import from_function, normalize, register
from ._paper import (
    CrossEntropy,
    FocalLoss,
    GeneralizedCrossEntropy,
    MeanAbsoluteError,
    NormalizedCrossEntropy,
    NormalizedFocalLoss,
    NormalizedGeneralizedCrossEntropy,
    NormalizedMeanAbsoluteError,
    NormalizedReverseCrossEntropy,
    ReverseCrossEntropy,
    SymmetricCrossEntropy,
)
from ._parse import parse
from ._registry import Entry, class_sum_range, registry, terms

__all__ = [
    "CrossEntropy",
    "Entry",
    "Expression",
    "FocalLoss",
    "GeneralizedCrossEntropy",
    "Hyper",
    "Kind",
    "Loss",
    "MeanAbsoluteError",
    "NormalizedCrossEntropy",
    "NormalizedFocalLoss",
    "NormalizedGeneralizedCrossEntropy",
    "NormalizedLoss",
    "NormalizedMeanAbsoluteError",
    "NormalizedReverseCrossEntropy",
    "ReverseCrossEntropy",
    "SeparableLoss",
    "SymmetricCrossEntropy",
    "class_sum_range",
    "from_function",
    "hyper",
    "normalize",
    "parse",
    "register",
    "registry",
    "terms",
]
