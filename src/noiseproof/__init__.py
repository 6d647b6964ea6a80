"""Train accurate classifiers on labels that are partly wrong.

>>> import noiseproof
>>> loss = noiseproof.parse("nce + rce")  # where torch.nn.CrossEntropyLoss() stood

Nothing is imported before it is used, so that the command line answers at once.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import bench as bench
    from . import catalogue as catalogue
    from . import data as data
    from . import functional as functional
    from . import integrations as integrations
    from . import losses as losses
    from . import models as models
    from . import noise as noise
    from . import report as report
    from . import results as results
    from . import runs as runs
    from . import syntax as syntax
    from . import theory as theory
    from . import tools as tools
    from . import train as train
    from ._errors import MissingExtraError, UsageError
    from .losses import (
        AsymmetricExponential,
        AsymmetricGeneralizedCrossEntropy,
        AsymmetricMeanSquaredError,
        AsymmetricUnhinged,
        BiTempered,
        CrossEntropy,
        FocalLoss,
        GeneralizedCrossEntropy,
        GeneralizedJensenShannon,
        JensenShannon,
        LabelDistributionallyRobust,
        Loss,
        MeanAbsoluteError,
        NormalizedCrossEntropy,
        NormalizedFocalLoss,
        NormalizedGeneralizedCrossEntropy,
        NormalizedMeanAbsoluteError,
        NormalizedNegativeCrossEntropy,
        NormalizedNegativeFocalLoss,
        NormalizedReverseCrossEntropy,
        PartiallyHuberisedCrossEntropy,
        ReverseCrossEntropy,
        SymmetricCrossEntropy,
        TaylorCrossEntropy,
        TruncatedGeneralizedCrossEntropy,
        Unhinged,
        backward_correction,
        bootstrap,
        class_weights,
        epsilon_softmax,
        forward_correction,
        from_function,
        logit_clip,
        negative,
        normalize,
        parse,
        recipe,
        symmetrize,
    )
    from .tools import recommend

__all__ = [
    "AsymmetricExponential",
    "AsymmetricGeneralizedCrossEntropy",
    "AsymmetricMeanSquaredError",
    "AsymmetricUnhinged",
    "BiTempered",
    "CrossEntropy",
    "FocalLoss",
    "GeneralizedCrossEntropy",
    "GeneralizedJensenShannon",
    "JensenShannon",
    "LabelDistributionallyRobust",
    "Loss",
    "MeanAbsoluteError",
    "MissingExtraError",
    "NormalizedCrossEntropy",
    "NormalizedFocalLoss",
    "NormalizedGeneralizedCrossEntropy",
    "NormalizedMeanAbsoluteError",
    "NormalizedNegativeCrossEntropy",
    "NormalizedNegativeFocalLoss",
    "NormalizedReverseCrossEntropy",
    "PartiallyHuberisedCrossEntropy",
    "ReverseCrossEntropy",
    "SymmetricCrossEntropy",
    "TaylorCrossEntropy",
    "TruncatedGeneralizedCrossEntropy",
    "Unhinged",
    "UsageError",
    "backward_correction",
    "bench",
    "bootstrap",
    "catalogue",
    "class_weights",
    "data",
    "epsilon_softmax",
    "forward_correction",
    "from_function",
    "functional",
    "integrations",
    "logit_clip",
    "losses",
    "models",
    "negative",
    "noise",
    "normalize",
    "parse",
    "recipe",
    "recommend",
    "report",
    "results",
    "runs",
    "symmetrize",
    "syntax",
    "theory",
    "tools",
    "train",
]

_PACKAGES = (
    "bench", "catalogue", "data", "functional", "integrations", "losses", "models", "noise",
    "report", "results", "runs", "syntax", "theory", "tools", "train",
)  # fmt: skip

_HOMES = {"MissingExtraError": "._errors", "UsageError": "._errors", "recommend": ".tools"}


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f".{name}", __name__)
    if name in __all__:
        home = _HOMES.get(name, ".losses")
        value = getattr(importlib.import_module(home, __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
