"""A hyper-parameter of a loss: its default, its range, and the one place that checks it."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._errors import UsageError, UsageTypeError
from .._hints import nearest


@dataclass(frozen=True, eq=False)
class Hyper:
    """Declared in the body of a loss as ``gamma: float = hyper(default=0.5, at_least=0)``.

    On the class it is this object; on an instance it reads as the number, and cannot be
    assigned: a loss is a fixed function, so that its text and its compiled code stay true.
    """

    default: float
    above: float = -math.inf
    at_least: float = -math.inf
    below: float = math.inf
    at_most: float = math.inf
    integer: bool = False
    name: str = ""

    def __set_name__(self, owner: type, name: str) -> None:
        object.__setattr__(self, "name", name)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else instance.hyperparameters[self.name]

    def __set__(self, instance: Any, value: float) -> None:
        made = f"{type(instance).__name__}({self.name}={value})"
        raise AttributeError(f"a loss does not change once it is made: make a new one, {made}")

    @property
    def range(self) -> str:
        """The range as one reads it: ``0 < rho <= 1``."""
        low = f"{self.above:g} < " if self.above > -math.inf else ""
        low = f"{self.at_least:g} <= " if self.at_least > -math.inf else low
        high = f" < {self.below:g}" if self.below < math.inf else ""
        high = f" <= {self.at_most:g}" if self.at_most < math.inf else high
        if low and not high:  # "gamma >= 0" reads better than "0 <= gamma"
            bound, sign = low.split()
            return f"{self.name} {'>=' if sign == '<=' else '>'} {bound}"
        return f"{low}{self.name}{high}"

    def check(self, value: Any, loss: str) -> float:
        """``value`` as a float, or one line that says what was expected."""
        if not isinstance(value, numbers.Real) or isinstance(value, bool):
            given = f"{value!r} ({type(value).__name__})"
            raise UsageTypeError(
                f"{loss}: {self.name} must be a number, {self.range}; it was {given}"
            )
        number = float(value) + 0.0  # -0.0 is 0
        inside = self.above < number < self.below and self.at_least <= number <= self.at_most
        if not (inside and math.isfinite(number)):
            raise UsageError(f"{loss}: {self.name} = {number:g} is out of range, {self.range}")
        if self.integer and number != int(number):
            raise UsageError(f"{loss}: {self.name} = {number:g} must be a whole number")
        return number


def hyper(
    *,
    default: float,
    above: float = -math.inf,
    at_least: float = -math.inf,
    below: float = math.inf,
    at_most: float = math.inf,
    integer: bool = False,
) -> Any:  # Any: a type checker then takes the annotation beside it, ``gamma: float``
    """Declare a hyper-parameter with its default and the bounds of its range."""
    return Hyper(default, above, at_least, below, at_most, integer)


def check_all(
    declared: Mapping[str, Hyper], given: Mapping[str, Any], loss: str
) -> tuple[tuple[str, float], ...]:
    """Every declared hyper-parameter with its checked value, defaults filled in."""
    for name in given:
        if name not in declared:
            takes = ", ".join(declared) or "none"
            raise UsageTypeError(
                f"{loss} has no hyper-parameter {name!r}{nearest(name, declared)}; it takes {takes}"
            )
    return tuple((n, h.check(given.get(n, h.default), loss)) for n, h in declared.items())
