"""Losses for labels that may be wrong: declared once, and everything else derived.

The names here are the public ones; the files beside this one are private.
"""

from ..syntax import Hyper, hyper
from ._build import parse
from ._expression import Expression, Kind
from ._module import Loss, MatrixLoss, NegativeLoss, NormalizedLoss, SeparableLoss, SymmetrizedLoss
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
from ._recipes import Recipe, recipe
from ._registry import Entry, class_sum_range, registry, terms
from ._successors import (
    AsymmetricExponential,
    AsymmetricGeneralizedCrossEntropy,
    AsymmetricMeanSquaredError,
    AsymmetricUnhinged,
    JensenShannon,
    NormalizedNegativeCrossEntropy,
    NormalizedNegativeFocalLoss,
    PartiallyHuberisedCrossEntropy,
    TaylorCrossEntropy,
    TruncatedGeneralizedCrossEntropy,
    Unhinged,
)
from ._unseparable import BiTempered, LabelDistributionallyRobust
from ._views import GeneralizedJensenShannon
from ._weights import class_weights
from ._wrappers import (
    backward_correction,
    bootstrap,
    epsilon_softmax,
    forward_correction,
    from_function,
    logit_clip,
    negative,
    normalize,
    register,
    symmetrize,
)

__all__ = [
    "AsymmetricExponential",
    "AsymmetricGeneralizedCrossEntropy",
    "AsymmetricMeanSquaredError",
    "AsymmetricUnhinged",
    "BiTempered",
    "CrossEntropy",
    "Entry",
    "Expression",
    "FocalLoss",
    "GeneralizedCrossEntropy",
    "GeneralizedJensenShannon",
    "Hyper",
    "JensenShannon",
    "Kind",
    "LabelDistributionallyRobust",
    "Loss",
    "MatrixLoss",
    "MeanAbsoluteError",
    "NegativeLoss",
    "NormalizedCrossEntropy",
    "NormalizedFocalLoss",
    "NormalizedGeneralizedCrossEntropy",
    "NormalizedLoss",
    "NormalizedMeanAbsoluteError",
    "NormalizedNegativeCrossEntropy",
    "NormalizedNegativeFocalLoss",
    "NormalizedReverseCrossEntropy",
    "PartiallyHuberisedCrossEntropy",
    "Recipe",
    "ReverseCrossEntropy",
    "SeparableLoss",
    "SymmetricCrossEntropy",
    "SymmetrizedLoss",
    "TaylorCrossEntropy",
    "TruncatedGeneralizedCrossEntropy",
    "Unhinged",
    "backward_correction",
    "bootstrap",
    "class_sum_range",
    "class_weights",
    "epsilon_softmax",
    "forward_correction",
    "from_function",
    "hyper",
    "logit_clip",
    "negative",
    "normalize",
    "parse",
    "recipe",
    "register",
    "registry",
    "symmetrize",
    "terms",
]
