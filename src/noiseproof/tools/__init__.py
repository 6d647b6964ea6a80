"""Which loss, when the noise rate is unknown, and which labels are wrong."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._audit import Audit as Audit
    from ._audit import Suspect as Suspect
    from ._audit import audit as audit
    from ._choose import Choice as Choice
    from ._choose import Option as Option
    from ._choose import choose as choose
    from ._folds import OutOfSample as OutOfSample
    from ._folds import out_of_sample as out_of_sample
    from ._handful import HANDFUL as HANDFUL
    from ._handful import Candidate as Candidate
    from ._recommend import Recommendation as Recommendation
    from ._recommend import recommend as recommend
    from ._space import SEARCHED as SEARCHED
    from ._space import Trial as Trial
    from ._tune import TrialEvent as TrialEvent
    from ._tune import Tuning as Tuning
    from ._tune import tune as tune
    from ._votes import Votes as Votes

_HOMES: dict[str, str] = {  # of each public name the module that has it
    "Audit": "._audit",
    "Candidate": "._handful",
    "Choice": "._choose",
    "HANDFUL": "._handful",
    "Option": "._choose",
    "OutOfSample": "._folds",
    "Recommendation": "._recommend",
    "SEARCHED": "._space",
    "Suspect": "._audit",
    "Trial": "._space",
    "TrialEvent": "._tune",
    "Tuning": "._tune",
    "Votes": "._votes",
    "audit": "._audit",
    "choose": "._choose",
    "out_of_sample": "._folds",
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
