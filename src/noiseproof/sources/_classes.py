"""Labels as they are written, and the classes that they name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import UsageError
from ._source import Source

_WHOLE = re.compile(r"(-?\d+)\.0+")
_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)


class Classes:
    """The classes that labels name: numbers in their order, else names in theirs."""

    def __init__(self, labels: Iterable[Any]) -> None:
        names = {class_name(label) for label in labels}
        self.names = tuple(sorted(names, key=_order))
        self._numbers = {name: i for i, name in enumerate(self.names)}

    def __call__(self, labels: Iterable[Any]) -> NDArray[np.int64]:
        return np.array([self._numbers[class_name(label)] for label in labels], np.int64)

    def __contains__(self, label: Any) -> bool:
        return class_name(label) in self._numbers


def class_name(label: Any) -> str:
    if isinstance(label, bytes):
        return label.decode(errors="replace")
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return str(int(label))  # a column with a gap somewhere is read as floats
    text = str(label).strip()
    whole = _WHOLE.fullmatch(text)  # and written as such
    return whole[1] if whole else text


def is_empty(label: Any) -> bool:
    return label is None or class_name(label) in ("", "nan", "NaN")


def _order(name: str) -> tuple[int, float, str]:
    return (0, float(name), name) if _NUMBER.fullmatch(name) else (1, 0, name)


def check_classes(source: Source, classes: Classes, column: str) -> None:
    if len(classes.names) < 2:
        raise UsageError(
            f"{source.path} has one class, {classes.names[0]!r}, in {column}; "
            "a classifier needs two"
        )


def check_truth(source: Source, labels: Iterable[Any], truth: Iterable[Any]) -> None:
    """Refuse what is taken for the true labels by mistake."""
    given, true = set(map(class_name, labels)), set(map(class_name, truth))
    if given.isdisjoint(true):
        raise UsageError(
            f"{source.truth!r} of {source.path} holds none of the classes of the labels, but such "
            f"as {min(true)!r}, where they hold {min(given)!r}; name the true labels with --truth"
        )
