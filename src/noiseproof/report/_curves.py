"""Curves over the epochs: the mean over the seeds of a cell, at no more than 60 epochs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..catalogue import GIVEN
from ..results import HELD_OUT_ACCURACY, TEST_ACCURACY, Cell, Record

MAX_POINTS = 60
Measure = Callable[[Record], list[float]]
"""one number for each epoch of a run, as a fraction"""


@dataclass(frozen=True)
class Curve:
    """A line of a plot, in percent."""

    label: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    deviation: tuple[float | None, ...]

    @property
    def last(self) -> float | None:
        return self.y[-1] if self.y else None


def sample_indices(length: int, num: int = MAX_POINTS) -> list[int]:
    """At most ``num`` indices, evenly spaced, with the first and the last among them.

    >>> sample_indices(5), sample_indices(10, 4)
    ([0, 1, 2, 3, 4], [0, 3, 6, 9])
    """
    if length <= num:
        return list(range(length))
    return [round(i * (length - 1) / (num - 1)) for i in range(num)]


def column(name: str) -> Measure:
    """A column of the history, as a measure."""
    return lambda record: record.column(name)


def judged_accuracy(record: Record) -> list[float]:
    """The accuracy of each epoch on the test set or, where there is none, on what was held out."""
    held_out = record.accuracy_column == HELD_OUT_ACCURACY
    return record.column(HELD_OUT_ACCURACY if held_out else TEST_ACCURACY)


def held_out_accuracy(record: Record) -> list[float]:
    """The accuracy on what was held out, of a run that has no test set."""
    judged = record.accuracy_column == HELD_OUT_ACCURACY
    return judged_accuracy(record) if judged else [math.nan] * len(record.history)


def agreement(record: Record) -> list[float]:
    """Of labels as given, those that the network agrees with while it trains."""
    given = record.run.noise == GIVEN
    return record.column("train_accuracy") if given else [math.nan] * len(record.history)


def clean_train_accuracy(record: Record) -> list[float]:
    """The accuracy on those training samples whose label is right.

    The history has the accuracy on all samples and on those with a wrong label; this is the rest.
    """
    rate = record.about.get("noise_rate") or 0.0
    wrong = [0.0 if math.isnan(m) else m for m in record.column("memorised")]
    right = max(1.0 - rate, 1e-9)
    return [(a - rate * m) / right
            for a, m in zip(record.column("train_accuracy"), wrong, strict=True)]  # fmt: skip


def mean_curve(cell: Cell, label: str, measure: Measure) -> Curve | None:
    """The mean of a measure over the seeds by epoch, or None where no epoch has it.

    What is no number in one seed is left out of the mean.
    """
    columns = [measure(record) for record in cell.records]
    indices = sample_indices(min(map(len, columns), default=0))
    values = [_percents(column[i] for column in columns) for i in indices]
    if not any(values):
        return None
    epochs = cell.records[0].column("epoch")
    return Curve(
        label,
        tuple(rounded(epochs[i]) if math.isfinite(epochs[i]) else i + 1 for i in indices),
        tuple(rounded(_mean(v)) if v else None for v in values),
        tuple(rounded(_deviation(v)) if len(v) > 1 else None for v in values),
    )


def final_mean(cell: Cell, measure: Measure) -> float | None:
    """The mean of a measure over the seeds after the last epoch, in percent."""
    columns = [measure(record) for record in cell.records]
    last = _percents(column[-1] for column in columns if column)
    return rounded(_mean(last)) if last else None


def drop_from_best(cell: Cell, measure: Measure) -> float:
    """By how many points the mean over the seeds is lower after the last epoch than at its best.

    Of all epochs: the best one may not be among those that a curve is drawn through.
    """
    by_epoch = zip(*map(measure, cell.records), strict=False)
    means = [_mean(values) for epoch in by_epoch if (values := _percents(epoch))]
    return max(means) - means[-1] if means else 0.0


def _percents(fractions: Iterable[float]) -> list[float]:
    """In percent, without what is none: NaN, infinity and numbers near it."""
    return [p for f in fractions if abs(p := 100 * f) < 1e9]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _deviation(values: Sequence[float]) -> float:
    """The sample deviation; ``statistics.stdev``, which is exact, takes fifty times as long."""
    mean = _mean(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def rounded(value: float) -> float:
    """Two decimals; whole numbers as int, which is shorter in JSON."""
    short = round(value, 2)
    return int(short) if math.isfinite(short) and short == int(short) else short
