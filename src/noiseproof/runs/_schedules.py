"""Schedules of the learning rate.

To add one, add a function of (lr, lr_floor, epoch, epochs) to `SCHEDULES`. The first epoch is 0;
by step, an epoch is a fraction. Both numbers count from the end of the warm-up.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Schedule = Callable[[float, float, float, float], float]


def _cosine(lr: float, lr_floor: float, epoch: float, epochs: float) -> float:
    return lr_floor + (lr - lr_floor) * (1 + math.cos(math.pi * epoch / epochs)) / 2


def _exponential(lr: float, lr_floor: float, epoch: float, epochs: float) -> float:
    return float(lr * 0.97**epoch)


def _constant(lr: float, lr_floor: float, epoch: float, epochs: float) -> float:
    return lr


SCHEDULES: dict[str, Schedule] = {
    "cosine": _cosine,
    "exponential": _exponential,
    "constant": _constant,
}
