"""Training: one run as a value, and what brings it to its end.

>>> from noiseproof import train
>>> result = train.fit(train.Run(dataset="digits", rate=0.6, loss="nce", epochs=2, device="cpu"))
"""

from typing import TYPE_CHECKING, Any

from ._protocols import side_by_side
from ._run import Run

if TYPE_CHECKING:
    from ._fit import DivergedError, Progress, fit, fit_many
    from ._job import Result

__all__ = ["DivergedError", "Progress", "Result", "Run", "fit", "fit_many", "side_by_side"]


def __getattr__(name: str) -> Any:  # a run can be described without waiting for torch
    if name in __all__:
        from . import _fit

        return getattr(_fit, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
