"""Curves over the epochs: the mean of a cell's seeds, at no more epochs than a plot can show."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from ..results import Cell, Record

POINTS = 60  # of one line


@dataclass(frozen=True)
class Curve:
    """A line of a plot: its label, and where it goes. Percent, rounded to what can be seen."""

    label: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    deviation: tuple[float | None, ...]

    @property
    def last(self) -> float | None:
        return self.y[-1] if self.y else None

    @property
    def drop(self) -> float:
        """How far the last point is below the highest."""
        known = [y for y in self.y if y is not None]
        return max(known) - known[-1] if known else 0.0


def sampled(length: int, points: int = POINTS) -> list[int]:
    """Indices spread evenly over a length, the first and the last among them.

    >>> sampled(5), sampled(10, 4)
    ([0, 1, 2, 3, 4], [0, 3, 6, 9])
    """
    if length <= points:
        return list(range(length))
    return [round(i * (length - 1) / (points - 1)) for i in range(points)]


def fitted(record: Record) -> list[float]:
    """Of the samples whose label is right, how many the training pass predicts as labelled."""
    rate = record.about.get("noise_rate") or 0.0
    wrong = [0.0 if math.isnan(m) else m for m in record.column("memorised")]
    right = max(1.0 - rate, 1e-9)
    return [(a - rate * m) / right
            for a, m in zip(record.column("train_accuracy"), wrong, strict=True)]  # fmt: skip


def column(name: str) -> Callable[[Record], list[float]]:
    return lambda record: record.column(name)


def curve(cell: Cell, label: str, measure: Callable[[Record], list[float]]) -> Curve | None:
    """One measure of a cell by epoch, or None where no epoch has it."""
    columns = [measure(record) for record in cell.records]
    length = min(map(len, columns), default=0)
    at = sampled(length)
    epochs = cell.records[0].column("epoch") if length else []
    values = [[100 * c[i] for c in columns if math.isfinite(c[i])] for i in at]
    if not any(values):
        return None
    return Curve(
        label,
        tuple(_short(epochs[i]) for i in at),
        tuple(_short(statistics.fmean(v)) if v else None for v in values),
        tuple(_short(statistics.stdev(v)) if len(v) > 1 else None for v in values),
    )


def final(cell: Cell, measure: Callable[[Record], list[float]]) -> float | None:
    """The mean of a measure after the last epoch, in percent."""
    columns = [measure(record) for record in cell.records]
    last = [100 * c[-1] for c in columns if c and math.isfinite(c[-1])]
    return _short(statistics.fmean(last)) if last else None


def _short(value: float) -> float:
    short = round(value, 2)
    return int(short) if short == int(short) else short
