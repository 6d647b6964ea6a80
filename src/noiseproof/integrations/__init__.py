"""noiseproof inside other libraries: one module for each, of the library's name."""

import importlib
import pkgutil
from types import ModuleType


def __getattr__(name: str) -> ModuleType:  # imported when used: each needs its library
    if name in __dir__():
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    names = (module.name for module in pkgutil.iter_modules(__path__))
    return [name for name in names if not name.startswith("_")]
