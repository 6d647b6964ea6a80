"""The results of a report, sorted: the comparison of losses, the scaled losses, the grid."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from .. import syntax
from ..catalogue import GIVEN, dataset_title, method_named, rank_of
from ..results import Cell, Reading, Record, cells, missing
from ._entries import Condition, Entry, condition_of, judged_on, make_entries, read_loss
from ._styles import TIMES, Style, assign_styles
from ._words import JudgedOn, noise_words, where

MAX_PROBLEMS = 50  # that are listed of runs without a number; more are counted
_SCALABLE = ("NCE", "NFL", "MAE", "RCE")


class ScaledCell(NamedTuple):
    """A loss times a factor."""

    method: str
    factor: float
    cell: Cell


class GridCell(NamedTuple):
    """alpha * NCE + beta * RCE."""

    alpha: float
    beta: float
    cell: Cell


@dataclass(frozen=True)
class Study:
    """Results sorted by what a report shows of them."""

    entries: list[Entry]
    """the comparison of losses"""
    scaled: dict[Condition, list[ScaledCell]]
    """losses times a factor"""
    grid: dict[Condition, list[GridCell]]
    """alpha * NCE + beta * RCE, evaluated on a validation split"""
    styles: dict[str, Style]
    """by label"""
    problems: list[str]
    """what could not be read, and runs that ended early"""
    cells: list[Cell] = field(repr=False, default_factory=list)
    """every cell, whether compared, scaled or of the grid"""
    wrong: dict[Condition, float] = field(repr=False, default_factory=dict)
    """of labels as given, the percentage that is wrong, where the true ones are known"""

    def at(self, condition: Condition) -> list[Entry]:
        """The entries of a condition that have runs, in the order of the paper's tables."""
        return self._by_condition.get(condition, [])

    @cached_property
    def _by_condition(self) -> dict[Condition, list[Entry]]:
        found: dict[Condition, list[Entry]] = {}
        for e in self.entries:
            if e.cell.records:
                found.setdefault(e.condition, []).append(e)
        for entries in found.values():
            entries.sort(key=lambda e: (rank_of(e.cell.method), e.label))
        return found

    @cached_property
    def by_noise(self) -> dict[tuple[str, str], list[Condition]]:
        """The conditions that have runs, by data set and noise, each by increasing rate."""
        groups: dict[tuple[str, str], list[Condition]] = {}
        for c in self._by_condition:
            groups.setdefault((c.dataset, c.noise), []).append(c)
        return {key: sorted(group, key=lambda c: c.rate) for key, group in groups.items()}

    def noise_words(self, condition: Condition) -> str:
        """The noise of a condition in a title."""
        return noise_words(condition.noise, condition.rate, self.wrong.get(condition))

    def group_words(self, dataset: str, noise: str) -> str:
        """The noise of conditions that differ in their rates alone, in a title."""
        return noise_words(noise, wrong=self.wrong.get(Condition(dataset, noise, 0.0)))

    def name(self, condition: Condition) -> str:
        """A condition in a title."""
        return f"{dataset_title(condition.dataset)}, {self.noise_words(condition)}"

    def where(self, condition: Condition) -> str:
        """A condition in a sentence, after "on"."""
        return where(*condition, self.wrong.get(condition))

    def judged_on(self, conditions: Iterable[Condition] | None = None) -> JudgedOn:
        """What the accuracies of some conditions are of; by default of all."""
        chosen = self.conditions if conditions is None else conditions
        return judged_on(e for c in chosen for e in self.at(c))

    @cached_property
    def measured(self) -> str:
        """When the accuracies of the comparison were measured, in a sentence."""
        choose = {bool(e.cell.settings["choose_epoch"]) for e in self.entries}
        if choose == {True}:
            return "at the epoch that was chosen"
        chosen = " or, where a run chooses one, at the epoch that was chosen" if choose else ""
        return "after the last epoch" + (chosen if True in choose else "")

    @cached_property
    def conditions(self) -> list[Condition]:
        """The conditions that have runs, grouped by data set and noise, by increasing rate."""
        return [c for group in self.by_noise.values() for c in group]


def make_study(reading: Reading) -> Study:
    """Sort results into the comparison of losses, the scaled losses and the grid of weights."""
    read_loss.cache_clear()  # names may have been declared since
    found = cells(reading.records)
    scaled, grid = _find_scaled(found), _find_grid(found)
    entries = make_entries(list(_compared(found, scaled, grid)))
    labels = sorted(
        {(e.label, e.cell.method) for e in entries}, key=lambda pair: (rank_of(pair[1]), pair[0])
    )
    factors = sorted({(f"{TIMES}{row.factor:g}",) * 2 for rows in scaled.values() for row in rows})
    styles = assign_styles([*labels, *factors])
    wrong = _find_wrong(found)
    problems = reading.problems + _ended_early(found, wrong)
    return Study(entries, scaled, grid, styles, problems, found, wrong)


def _find_wrong(found: list[Cell]) -> dict[Condition, float]:
    """Of labels as given, the percentage that is wrong: the mean over the runs that know it."""
    rates: dict[Condition, list[float]] = {}
    for cell in found:
        for record in [*cell.records, *cell.failed] if cell.noise == GIVEN else []:
            rate = record.about.get("noise_rate")
            if rate is not None and math.isfinite(rate):
                rates.setdefault(condition_of(cell), []).append(100 * rate)
    return {condition: math.fsum(known) / len(known) for condition, known in rates.items()}


def _find_scaled(found: list[Cell]) -> dict[Condition, list[ScaledCell]]:
    """Losses times several factors under one condition; a loss as it is has the factor 1.

    On labels as given all losses are compared.
    """
    rows: dict[tuple[Condition, str], list[ScaledCell]] = {}
    for cell in found:
        if cell.noise == GIVEN:
            continue
        (name, factor), *others = _weights(cell).items()
        name = name.upper()
        if cell.method in _SCALABLE:
            name, factor = cell.method, 1.0
        elif others or name not in _SCALABLE:
            continue
        rows.setdefault((condition_of(cell), name), []).append(ScaledCell(name, factor, cell))
    scaled: dict[Condition, list[ScaledCell]] = {}
    for (condition, _), group in rows.items():
        if len({row.factor for row in group}) > 1:
            scaled.setdefault(condition, []).extend(group)
    for group in scaled.values():
        group.sort(key=lambda row: (rank_of(row.method), row.factor))
    return scaled


def _find_grid(found: list[Cell]) -> dict[Condition, list[GridCell]]:
    """NCE + RCE with several weights under one condition, evaluated on one validation split.

    On labels as given, of which a part is held out where there is no test set, all are compared.
    """
    rows: dict[tuple[Condition, float], list[GridCell]] = {}
    for cell in found:
        weights, holdout = _weights(cell), cell.settings["holdout"]
        if weights.keys() == {"nce", "rce"} and holdout and cell.noise != GIVEN:
            weighted = GridCell(weights["nce"], weights["rce"], cell)
            rows.setdefault((condition_of(cell), holdout), []).append(weighted)
    grid: dict[Condition, list[GridCell]] = {}
    for (condition, _), group in rows.items():
        if len({(row.alpha, row.beta) for row in group}) > 1:
            grid.setdefault(condition, []).extend(group)
    return grid


def _compared(
    found: list[Cell],
    scaled: dict[Condition, list[ScaledCell]],
    grid: dict[Condition, list[GridCell]],
) -> Iterator[Cell]:
    """The cells in which losses are compared: all but scaled losses and those of the grid.

    The published weights are compared too, where other losses had the validation split of the grid.
    """
    times_factor = {id(row.cell) for rows in scaled.values() for row in rows if row.factor != 1}
    of_grid = {id(row.cell) for rows in grid.values() for row in rows}
    apart = times_factor | of_grid
    splits = {(condition_of(c), c.settings["holdout"]) for c in found if id(c) not in apart}
    for cell in found:
        if id(cell) in of_grid:
            published = method_named(cell.method) is not None
            if published and (condition_of(cell), cell.settings["holdout"]) in splits:
                yield cell
        elif id(cell) not in times_factor:
            yield cell


def _ended_early(found: list[Cell], wrong: dict[Condition, float]) -> list[str]:
    """A line for each run that has no number, and how many there are beside them."""
    lines = []
    for cell in found:
        noise = noise_words(cell.noise, cell.rate, wrong.get(condition_of(cell)))
        lines += [
            f"{record.hash} ({dataset_title(cell.dataset)}, {noise}, {cell.method}, "
            f"seed {record.run.seed}) {_why_missing(record)}"
            for record in cell.failed
        ]
    more = len(lines) - MAX_PROBLEMS
    return lines if more <= 0 else [*lines[:MAX_PROBLEMS], f"{more} more runs have no number"]


def _why_missing(record: Record) -> str:
    return {
        "failed": f"ended early: {record.error or 'it has no history'}",
        "diverged": "diverged: its accuracy is not a number",
        "not tested": "has no test accuracy: its data has no test images",
    }[missing(record)]


def _weights(cell: Cell) -> dict[str, float]:
    """The factor of each loss in a sum, by name; of what is no sum of named losses, its text."""
    tree = None if "loss" in cell.settings["overrides"] else read_loss(cell.settings["loss"])
    if tree is None:
        return {cell.method: 1.0}
    terms = tree.terms if isinstance(tree, syntax.Sum) else ((1.0, tree),)
    return {t.name if isinstance(t, syntax.Leaf) else syntax.short(t): w for w, t in terms}
