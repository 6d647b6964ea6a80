"""Which loss, when the noise rate is unknown, and which labels are wrong."""

import importlib
from typing import Any

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
