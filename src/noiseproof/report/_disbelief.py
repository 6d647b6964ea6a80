"""What each loss did with the labels that it did not believe."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from ..results import Cell, Record
from ._curves import column, final_mean
from ._entries import Entry
from ._study import Study

MAX_PAIRS = 5  # of a loss
_MAX_TABLES = 12
_MAX_LETTERS = 24  # of the name of a class
_DISBELIEVED = "disbelieved"


class Pair(NamedTuple):
    """A class as given, the class that networks say in its place, and how often."""

    given: str
    said: str
    num: int

    def __str__(self) -> str:
        return f"given {_short(self.given)}, says {_short(self.said)}: {self.num:,}"


@dataclass(frozen=True)
class DisbeliefRow:
    """The labels that the networks of one loss do not agree with. Numbers are percentages."""

    label: str
    disbelieved: float | None
    """of all labels that were trained on, those that the networks say another class of"""
    really_wrong: float | None
    """of these, those that are wrong; None where nobody knows"""
    seen_through: float | None
    """of all wrong labels, those of which the networks say the true class"""
    memorised: float | None
    """of all wrong labels, those that the networks say themselves"""
    pairs: list[Pair]
    """the most frequent, summed over the seeds"""


@dataclass(frozen=True)
class DisbeliefTable:
    """The losses of one data set."""

    title: str
    rows: list[DisbeliefRow]
    num_seeds: int
    """the most that a loss has"""

    @property
    def knows_truth(self) -> bool:
        return any(row.memorised is not None for row in self.rows)


def find_disbelief(study: Study) -> list[DisbeliefTable]:
    """A table for each data set whose runs kept which labels their networks did not believe."""
    tables = []
    for condition in study.conditions:
        entries = [e for e in study.at(condition) if any(map(_has_pairs, e.cell.records))]
        if entries:
            rows = [_make_row(e) for e in entries]
            num_seeds = max(len(e.cell.seeds) for e in entries)
            tables.append(DisbeliefTable(study.name(condition), rows, num_seeds))
    return tables[:_MAX_TABLES]


def _has_pairs(record: Record) -> bool:
    return _DISBELIEVED in record.about


def _make_row(entry: Entry) -> DisbeliefRow:
    cell = entry.cell
    counts: Counter[tuple[str, str]] = Counter()
    for record in cell.records:
        for given, said, count in record.about.get(_DISBELIEVED, []):
            counts[given, said] += count
    pairs = [Pair(*names, count) for names, count in counts.most_common(MAX_PAIRS)]
    agreed = final_mean(cell, column("train_accuracy"))
    return DisbeliefRow(
        entry.label,
        disbelieved=None if agreed is None else 100 - agreed,
        really_wrong=_really_wrong(cell),
        seen_through=final_mean(cell, column("wrong_accuracy")),
        memorised=final_mean(cell, column("memorised")),
        pairs=pairs,
    )


def _really_wrong(cell: Cell) -> float | None:
    """Of the labels that were not believed, the wrong ones: those that were not memorised.

    The counts of all seeds are divided, so that a seed that believes nearly all hardly counts.
    """
    disbelieved, wrong = 0.0, 0.0
    for record in cell.records:
        rate = record.about.get("noise_rate") or 0.0
        agreed, memorised = (_at_end(record, name) for name in ("train_accuracy", "memorised"))
        if math.isfinite(agreed + memorised + rate):
            disbelieved += 1 - agreed
            wrong += rate * (1 - memorised)
    # A few labels in a million are what rounding makes of none.
    return min(100 * wrong / disbelieved, 100.0) if disbelieved > 1e-6 else None


def _at_end(record: Record, name: str) -> float:
    return record.column(name)[-1] if record.history else math.nan


def _short(name: str) -> str:
    """The name of a class, cut where it is long.

    >>> _short("cat"), _short("an animal that looks like a cat")
    ('cat', 'an animal that looks lik…')
    """
    return name if len(name) <= _MAX_LETTERS else f"{name[:_MAX_LETTERS].rstrip()}…"
