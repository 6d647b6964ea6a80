"""Training: a run as a value, and `fit`, which trains it.

>>> from noiseproof import train
>>> result = train.fit(train.Run(dataset="digits", rate=0.6, loss="nce", epochs=2, device="cpu"))
"""

from typing import TYPE_CHECKING, Any

from .._errors import DivergedError, LostRankError
from ..runs import ResolvedRun, Run

if TYPE_CHECKING:
    from .._imports import ChangedSourceWarning
    from ..models import WeightsWarning
    from ._fit import Progress, fit, fit_many
    from ._job import Result, UnpredictedClassWarning
    from ._load import load
    from ._model import Model

__all__ = [
    "ChangedSourceWarning",
    "DivergedError",
    "LostRankError",
    "Model",
    "Progress",
    "ResolvedRun",
    "Result",
    "Run",
    "UnpredictedClassWarning",
    "WeightsWarning",
    "fit",
    "fit_many",
    "load",
]


def __getattr__(name: str) -> Any:  # a run can be described without waiting for torch
    if name in __all__:
        from .. import _imports, models
        from . import _fit, _job, _load, _model

        homes = {
            "ChangedSourceWarning": _imports, "Model": _model, "UnpredictedClassWarning": _job,
            "WeightsWarning": models, "load": _load,
        }  # fmt: skip
        return getattr(homes.get(name, _fit), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
