"""The errors that are the user's to mend; everything else is a fault of this package."""

from __future__ import annotations

import importlib
import sys
from typing import Any


class UsageError(ValueError):
    """The package was used in a way that cannot work.

    The message is one line: what was given, what was expected, and what to do. The command line
    prints it and exits with status 2.
    """


class UsageTypeError(UsageError, TypeError):
    """A :class:`UsageError` about the type of a value, which is a ``TypeError`` as well."""


class DivergedError(ArithmeticError):
    """The loss or the gradient of a run became NaN or infinite."""


class LostRankError(RuntimeError):
    """Of several processes that train a run together, another one has ended."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message has the pip command."""


def level_outside() -> int:
    """The ``stacklevel`` at which the caller of this function warns at the user's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(
        ("noiseproof.", "torch.", "contextlib")  # whose decorators are on ours
    ):
        level, frame = level + 1, frame.f_back
    return level


def require(module: str, extra: str, purpose: str) -> Any:
    """Import an optional dependency.

    Args:
        module: the module to import, such as ``"jinja2"``.
        extra: the extra of this package that installs it, such as ``"report"``.
        purpose: what needs it, as the subject of a sentence: ``"a report"``.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.split(".")[0]
        raise MissingExtraError(
            f'{purpose} needs {package}: pip install "noiseproof[{extra}]"', name=package
        ) from None
