"""Which loss, when the noise rate is unknown, and which labels are wrong."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._audit import Audit as Audit
    from ._audit import Suspect as Suspect
    from ._audit import audit as audit
    from ._folds import OutOfSample as OutOfSample
    from ._folds import out_of_sample as out_of_sample
    from ._votes import Votes as Votes

_HOMES: dict[str, str] = {  # of each public name the module that has it
    "Audit": "._audit",
    "OutOfSample": "._folds",
    "Suspect": "._audit",
    "Votes": "._votes",
    "audit": "._audit",
    "out_of_sample": "._folds",
}

__all__: list[str] = sorted(_HOMES)


def __getattr__(name: str) -> Any:  # a command can be described without waiting for torch
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
