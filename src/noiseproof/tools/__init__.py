"""Which loss, when the noise rate is unknown, and which labels are wrong."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._choose import Choice as Choice
    from ._choose import Option as Option
    from ._choose import choose as choose
    from ._handful import HANDFUL as HANDFUL
    from ._handful import Candidate as Candidate
    from ._recommend import Recommendation as Recommendation
    from ._recommend import recommend as recommend
    from ._tune import SEARCHED as SEARCHED
    from ._tune import Trial as Trial
    from ._tune import TrialEvent as TrialEvent
    from ._tune import Tuning as Tuning
    from ._tune import tune as tune

_HOMES: dict[str, str] = {  # of each public name the module that has it
    "HANDFUL": "._handful",
    "Candidate": "._handful",
    "Choice": "._choose",
    "Option": "._choose",
    "Recommendation": "._recommend",
    "SEARCHED": "._tune",
    "Trial": "._tune",
    "TrialEvent": "._tune",
    "Tuning": "._tune",
    "choose": "._choose",
    "recommend": "._recommend",
    "tune": "._tune",
}

__all__: list[str] = sorted(_HOMES)


def __getattr__(name: str) -> Any:  # a command can be described without waiting for torch
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
