"""Cells of a table: runs that differ in their seeds alone, and what they come to together."""

from __future__ import annotations

import functools
import json
import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .. import syntax
from .._errors import UsageError
from .._imports import is_import
from ..catalogue import (
    AUTO,
    AUTO_BRINGS,
    DATASETS,
    NOISES,
    PROTOCOLS,
    auto_brings,
    method_named,
    rank_of,
)
from ..runs import CHOICES, ResolvedRun, Run
from ._records import Record

OWN = " (own)"  # behind the name of a user's own loss that could be taken for one of ours


Missing = Literal["failed", "diverged", "not tested"]


def missing(record: Record) -> Missing:
    """Why a run has no number, in a word or two."""
    if record.error is not None or not record.history:
        return "failed"
    return "not tested" if math.isfinite(record.column("train_loss")[-1]) else "diverged"


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
    """0 where there is none to choose"""
    method: str
    """as papers print it, such as NCE+RCE; a text of one's own as it stands; a loss of one's own
    that is called like one of ours as "NCE+RCE (own)", so that nobody takes it for that"""
    protocol: str
    settings: dict[str, Any]
    """all settings of its runs but the seed and the name"""
    records: list[Record] = field(repr=False)
    """the runs that ended well, by seed"""
    failed: list[Record] = field(default_factory=list, repr=False)
    """the runs that ended early, each with its ``error``, or whose accuracy is no number"""

    @property
    def seeds(self) -> list[int]:
        """Of the runs that ended well."""
        return [record.run.seed for record in self.records]

    @property
    def accuracies(self) -> list[float]:
        """On the clean test set, of the weights that the runs end with, by seed."""
        return [100 * record.accuracy for record in self.records]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.accuracies) if self.records else math.nan

    @property
    def missing(self) -> Missing:
        """Why there is no number, where no run has one."""
        reasons = {missing(record) for record in self.failed}
        return reasons.pop() if len(reasons) == 1 else "failed"

    @property
    def deviation(self) -> float:
        """The sample deviation over the seeds; NaN where there are fewer than two."""
        return statistics.stdev(self.accuracies) if len(self.records) > 1 else math.nan

    @property
    def key(self) -> tuple[str, str, float, str]:
        """What it shares with a `Published` cell: dataset, noise, rate and method."""
        return self.dataset, self.noise, self.rate, self.method


def cells(records: Iterable[Record]) -> list[Cell]:
    """Runs grouped over their seeds, in the order of the paper's tables.

    Runs of different protocols or of any other different setting are never averaged together.
    """
    groups: dict[str, dict[int, Record]] = {}
    for record in records:  # of two runs that differ in their names alone, the first counts
        groups.setdefault(_group_key(record), {}).setdefault(record.run.seed, record)
    found = []
    for by_seed in groups.values():
        group = [by_seed[seed] for seed in sorted(by_seed)]
        well = [r for r in group if r.error is None and math.isfinite(100 * r.accuracy)]
        failed = [r for r in group if r.error is not None or not math.isfinite(100 * r.accuracy)]
        run = group[0].run
        settings = {k: v for k, v in run.settings().items() if k not in ("seed", "name")}
        found.append(Cell(*run.condition, _method(run), run.protocol, settings, well, failed))
    return sorted(found, key=_order)


def protocol_settings(cell: Cell) -> dict[str, Any]:
    """What the cell's protocol sets; empty for an unknown protocol or loss.

    Of data of one's own that is what ``auto`` brings, and that others are trained without it.
    """
    if cell.protocol not in PROTOCOLS:
        return {}
    follows = following_settings(cell.method, cell.settings)
    if cell.dataset not in DATASETS:
        brought = {name: getattr(ResolvedRun, name) for name in AUTO_BRINGS}
        return {**follows, "weight_decay": 0.0} if follows else brought
    given: dict[str, Any] = {"dataset": cell.dataset, "protocol": cell.protocol}
    if cell.noise in CHOICES["noise"]:
        given |= {"noise": cell.noise, "rate": cell.rate}
    # The loss matters: a method may bring its own weight decay, and NLNL trains for more epochs.
    loss = method_named(cell.method) or cell.settings["loss"]
    if is_import(loss):  # what a record names is not looked for here
        return {}
    try:
        expected = Run(**given, loss=loss).resolve().settings()
    except UsageError:
        return {}
    return {name: value for name, value in expected.items() if name != "precision"} | follows


def following_settings(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What a method has because of other settings: of ``auto`` what suits the learning rate.

    Who tried several learning rates has changed nothing else.

    Args:
        method: as papers print it.
        settings: of a run of that method.
    """
    if method != AUTO:
        return {}
    return {"loss": settings["loss"], **auto_brings(settings["lr"], settings["optimizer"])}


def _method(run: ResolvedRun) -> str:
    own = "loss" in run.overrides and _is_ours(run.loss)
    return run.method + OWN if own else run.method


@functools.lru_cache(maxsize=1 << 10)
def _is_ours(loss: str) -> bool:
    """Whether a text names a method, or losses of ours alone."""
    if method_named(loss) is not None:
        return True
    try:
        return not syntax.uses_user_losses(syntax.read(loss))
    except UsageError:
        return False


def _group_key(record: Record) -> str:
    settings = {k: v for k, v in record.run.settings().items() if k not in ("seed", "name")}
    # A user's own data or loss is told from another of the same name by its digest.
    digests = record.about.get("overrides") or {}
    settings["digests"] = {p: digests.get(p) for p in ("data", "loss", "network", "prior")}
    return json.dumps(settings, sort_keys=True)


def _order(cell: Cell) -> tuple[Any, ...]:
    def place(value: str, known: Iterable[str]) -> int:
        names = list(known)
        return names.index(value) if value in names else len(names)

    follows = following_settings(cell.method, cell.settings)
    settings = {k: v for k, v in cell.settings.items() if k not in follows or v != follows[k]}
    return (
        place(cell.dataset, DATASETS), cell.dataset, cell.protocol != "paper",
        place(cell.noise, NOISES), cell.noise, rank_of(cell.method), cell.rate,
        json.dumps(settings, sort_keys=True),
    )  # fmt: skip
