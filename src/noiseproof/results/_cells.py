"""Cells of a table: runs that differ in their seeds alone, and what they come to together."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ._methods import method_of, rank_of
from ._records import Record

_DATASETS = ("digits", "mnist", "fashion-mnist", "cifar10", "cifar100", "webvision")
_NOISES = ("none", "symmetric", "asymmetric", "pairflip", "instance")


@dataclass(frozen=True, eq=False)
class Cell:
    """Runs of the same settings over several seeds. Accuracies are in percent, as papers print.

    Two cells may share dataset, noise, rate, method and protocol and differ in another setting,
    such as the epochs or a holdout: ``settings`` tells them apart.
    """

    dataset: str
    noise: str
    """as the run names it; none also for a drawn noise of rate 0"""
    rate: float
    """0 where there is no noise, and for people's"""
    method: str
    """as papers print it, such as NCE+RCE; a text of one's own as it stands"""
    protocol: str
    settings: dict[str, Any]
    """all settings but the seed"""
    records: list[Record] = field(repr=False)
    """the runs that ended well, by seed"""
    failed: list[Record] = field(default_factory=list, repr=False)
    """the runs that ended early, each with its ``error``"""

    @property
    def seeds(self) -> list[int]:
        """Of the runs that ended well."""
        return [record.settings["seed"] for record in self.records]

    @property
    def accuracies(self) -> list[float]:
        """On the clean test set after the last epoch, by seed."""
        return [100 * record.accuracy for record in self.records]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.accuracies) if self.records else math.nan

    @property
    def deviation(self) -> float:
        """The sample deviation over the seeds; NaN where there are fewer than two."""
        return statistics.stdev(self.accuracies) if len(self.records) > 1 else math.nan

    @property
    def key(self) -> tuple[str, str, float, str]:
        """What it shares with a `Published` cell: dataset, noise, rate and method."""
        return self.dataset, self.noise, self.rate, self.method


def cell_of(record: Record) -> tuple[str, str, float, str, str]:
    """Which cell a run belongs to: dataset, noise, rate, method, protocol."""
    s = record.settings
    rate = float(s["rate"])
    noise = "none" if s["noise"] in ("symmetric", "asymmetric") and not rate else s["noise"]
    return s["dataset"], noise, rate, method_of(s["loss"]), s["protocol"]


def cells(records: Iterable[Record]) -> list[Cell]:
    """Runs grouped over their seeds, in the order of the paper's tables.

    Runs of different protocols or of any other different setting are never averaged together.
    """
    groups: dict[str, list[Record]] = {}
    for record in records:
        settings = {k: v for k, v in record.settings.items() if k != "seed"}
        groups.setdefault(json.dumps(settings, sort_keys=True), []).append(record)
    found = []
    for text, group in groups.items():
        group.sort(key=lambda r: r.settings["seed"])
        well = [r for r in group if r.error is None and r.history]
        failed = [r for r in group if r.error is not None or not r.history]
        found.append(Cell(*cell_of(group[0]), json.loads(text), well, failed))
    return sorted(found, key=_order)


def _order(cell: Cell) -> tuple[Any, ...]:
    def place(value: str, known: tuple[str, ...]) -> int:
        return known.index(value) if value in known else len(known)

    return (
        place(cell.dataset, _DATASETS), cell.dataset, cell.protocol != "paper",
        place(cell.noise, _NOISES), cell.noise, rank_of(cell.method), cell.rate,
        json.dumps(cell.settings, sort_keys=True),
    )  # fmt: skip
