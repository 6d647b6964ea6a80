"""The results of a report, sorted: the comparison of losses, the scaled losses, the grid."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from .. import syntax
from .._errors import UsageError
from .._imports import setting_text
from ..catalogue import (
    GIVEN,
    NOISES,
    dataset_title,
    method_named,
    rank_of,
    setting_of,
)
from ..results import (
    HELD_OUT_ACCURACY,
    OWN,
    Cell,
    Reading,
    Record,
    cells,
    following_settings,
    missing,
    protocol_settings,
)
from ._styles import TIMES, Style, assign_styles
from ._words import JudgedOn, noise_words, protocol_title, where

MAX_PROBLEMS = 50  # that are listed of runs without a number; more are counted
# Settings that say which cell it is. They are never overrides of a protocol.
_CELL_SETTINGS = ("dataset", "noise", "rate", "loss", "protocol", "variant")
_SCALABLE = ("NCE", "NFL", "MAE", "RCE")


class Condition(NamedTuple):
    """What losses are compared under: a data set with label noise of one rate."""

    dataset: str
    noise: str
    rate: float


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


@dataclass(frozen=True, eq=False)
class Entry:
    """A cell of the comparison, with its label in this report."""

    cell: Cell
    label: str
    """the method, followed in brackets by the protocol, unless it is the paper's, and overrides"""
    overrides: str
    """settings that differ from the protocol in this cell, but not in all cells of its data set
    and protocol; ``""`` where there are none"""
    shared_overrides: str = ""
    """settings that differ from the protocol in all cells of its data set and protocol"""

    @property
    def condition(self) -> Condition:
        return condition_of(self.cell)

    @property
    def judged_on(self) -> JudgedOn:
        """What its accuracies are of; the test set also where no run has one."""
        columns = {record.accuracy_column for record in self.cell.records}
        return "held-out" if HELD_OUT_ACCURACY in columns else "test"

    @property
    def has_overrides(self) -> bool:
        """Whether something was the user's own, whatever its name: no paper has a number of it."""
        return bool(self.cell.settings["overrides"])

    @property
    def protocol_note(self) -> str:
        """The protocol with its shared overrides, such as ``"paper, but with epochs 20"``."""
        note = f", but with {self.shared_overrides}" if self.shared_overrides else ""
        return protocol_title(self.cell.protocol, self.cell.dataset) + note


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


def condition_of(cell: Cell) -> Condition:
    return Condition(cell.dataset, cell.noise, cell.rate)


def condition_name(condition: Condition) -> str:
    return f"{dataset_title(condition.dataset)}, {noise_words(condition.noise, condition.rate)}"


def judged_on(entries: Iterable[Entry]) -> JudgedOn:
    """What the accuracies of some losses are of."""
    found = {e.judged_on for e in entries}
    return "both" if len(found) > 1 else found.pop() if found else "test"


def make_study(reading: Reading) -> Study:
    """Sort results into the comparison of losses, the scaled losses and the grid of weights."""
    _read.cache_clear()  # names may have been declared since
    found = cells(reading.records)
    scaled, grid = _find_scaled(found), _find_grid(found)
    entries = _make_entries(list(_compared(found, scaled, grid)))
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


def _make_entries(compared: list[Cell]) -> list[Entry]:
    all_overrides = _find_overrides(compared)
    shared: dict[tuple[str, str], list[str]] = {}  # left out of the labels, which stay short
    for cell, overrides in zip(compared, all_overrides, strict=True):
        key = cell.dataset, cell.protocol
        shared[key] = [o for o in shared.get(key, overrides) if o in overrides]
    common = [shared[cell.dataset, cell.protocol] for cell in compared]
    own = [
        [o for o in overrides if o not in left_out]
        for overrides, left_out in zip(all_overrides, common, strict=True)
    ]
    seen = Counter(map(_identity, compared, own))
    entries = []
    for cell, overrides, left_out in zip(compared, own, common, strict=True):
        if seen[_identity(cell, overrides)] > 1:  # other data or another loss of the same name
            overrides = [*overrides, [*cell.records, *cell.failed][0].run.folder]
        notes = [*([cell.protocol] if cell.protocol != "paper" else []), *overrides]
        said = any(note in overrides for note in _user_overrides(cell))
        method = cell.method.removesuffix(OWN) if said else cell.method
        label = method + (f" ({', '.join(notes)})" if notes else "")
        entries.append(Entry(cell, label, ", ".join(overrides), ", ".join(left_out)))
    return entries


def _identity(cell: Cell, overrides: list[str]) -> Hashable:
    """What tells a cell from others in a table."""
    return condition_of(cell), cell.method, cell.protocol, tuple(overrides)


def _find_overrides(compared: list[Cell]) -> list[list[str]]:
    """For each cell, the settings that differ from its protocol, such as ``["epochs 20"]``.

    Where the protocol does not set a value, the most frequent one of the data set and protocol
    counts as the protocol's.
    """
    by_protocol: dict[Hashable, dict[str, Any]] = {}
    expected = []
    for cell in compared:
        key = _protocol_key(cell)
        if key not in by_protocol:
            by_protocol[key] = protocol_settings(cell)
        expected.append(by_protocol[key])
    most_frequent = _most_frequent(compared, expected)
    return [
        [*_overrides(cell, known, most_frequent), *_user_overrides(cell)]
        for cell, known in zip(compared, expected, strict=True)
    ]


def _overrides(
    cell: Cell, expected: dict[str, Any], most_frequent: dict[tuple[str, str, str], str]
) -> Iterator[str]:
    for name, value in _other_settings(cell):
        if name in expected:
            differs = value != expected[name]
        else:
            differs = repr(value) != most_frequent[cell.dataset, cell.protocol, name]
        if differs:
            yield setting_text(name, value)
    variant = cell.settings["variant"]
    if cell.noise in NOISES and len(NOISES[cell.noise].variants) > 1 and variant != cell.protocol:
        yield f"noise as {variant}"


def _other_settings(cell: Cell) -> Iterable[tuple[str, Any]]:
    left_out = (*_CELL_SETTINGS, "overrides", "imports")
    return ((n, v) for n, v in cell.settings.items() if n not in left_out)


def _most_frequent(
    compared: list[Cell], expected: list[dict[str, Any]]
) -> dict[tuple[str, str, str], str]:
    """The most frequent value of each setting that is not expected, by data set and protocol."""
    counts: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for cell, known in zip(compared, expected, strict=True):
        for name, value in _other_settings(cell):
            if name not in known:
                counts[cell.dataset, cell.protocol, name][repr(value)] += 1
    return {key: counter.most_common(1)[0][0] for key, counter in counts.items()}


def _user_overrides(cell: Cell) -> list[str]:
    """What of its runs was the user's own."""
    own = cell.settings["overrides"]
    return [f"own {' and '.join(own)}"] if own else []


def _protocol_key(cell: Cell) -> Hashable:
    """Cells of one key have the same settings by their protocol.

    Of the loss they depend on the published method alone, which may bring its own weight decay.
    """
    loss: Hashable
    method = method_named(cell.method)
    if method is None:
        loss = _read(cell.settings["loss"]) is None
    else:
        try:
            loss = (
                method,
                setting_of(
                    method, cell.dataset, noise=cell.noise, rate=cell.rate, protocol=cell.protocol
                ),
            )
        except UsageError:
            loss = method, None
    follows = tuple(following_settings(cell.method, cell.settings).items())
    return cell.dataset, cell.protocol, cell.noise, loss, follows


def _weights(cell: Cell) -> dict[str, float]:
    """The factor of each loss in a sum, by name; of what is no sum of named losses, its text."""
    tree = None if "loss" in cell.settings["overrides"] else _read(cell.settings["loss"])
    if tree is None:
        return {cell.method: 1.0}
    terms = tree.terms if isinstance(tree, syntax.Sum) else ((1.0, tree),)
    return {t.name if isinstance(t, syntax.Leaf) else syntax.short(t): w for w, t in terms}


@lru_cache(maxsize=1 << 15)
def _read(loss: str) -> syntax.Tree | None:
    try:
        return syntax.read(loss)
    except UsageError:
        return None
