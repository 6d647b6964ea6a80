"""Schedules of the learning rate, each stepped once an epoch.

To add one, add a function of (lr, lr_floor, epoch, epochs) to `SCHEDULES`; the first epoch is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Schedule = Callable[[float, float, int, int], float]


def _cosine(lr: float, lr_floor: float, epoch: int, epochs: int) -> float:
    return lr_floor + (lr - lr_floor) * (1 + math.cos(math.pi * epoch / epochs)) / 2


def _exponential(lr: float, lr_floor: float, epoch: int, epochs: int) -> float:
    return lr * 0.97**epoch


def _constant(lr: float, lr_floor: float, epoch: int, epochs: int) -> float:
    return lr


SCHEDULES: dict[str, Schedule] = {
    "cosine": _cosine,
    "exponential": _exponential,
    "constant": _constant,
}
