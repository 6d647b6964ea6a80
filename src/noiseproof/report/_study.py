"""The results of a report, sorted: the comparison of losses, the scaled losses, the grid."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from .. import syntax
from .._errors import UsageError
from ..catalogue import (
    DATASETS,
    NOISES,
    PROTOCOLS,
    dataset_title,
    method_named,
    noise_title,
    rank_of,
)
from ..results import Cell, Reading, cells
from ..runs import CHOICES, Run
from ._styles import TIMES, Style, assign_styles

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
    def protocol_note(self) -> str:
        """The protocol with its shared overrides, such as ``"paper, but with epochs 20"``."""
        note = f", but with {self.shared_overrides}" if self.shared_overrides else ""
        return self.cell.protocol + note


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

    def at(self, condition: Condition) -> list[Entry]:
        """The entries of a condition that have runs, in the order of the paper's tables."""
        found = [e for e in self.entries if e.condition == condition and e.cell.records]
        return sorted(found, key=lambda e: (rank_of(e.cell.method), e.label))

    @cached_property
    def conditions(self) -> list[Condition]:
        """The conditions that have runs, grouped by data set and noise, by increasing rate."""
        found = dict.fromkeys(e.condition for e in self.entries if e.cell.records)
        groups = list(dict.fromkeys((c.dataset, c.noise) for c in found))
        return sorted(found, key=lambda c: (groups.index((c.dataset, c.noise)), c.rate))


def condition_of(cell: Cell) -> Condition:
    return Condition(cell.dataset, cell.noise, cell.rate)


def condition_name(condition: Condition) -> str:
    return f"{dataset_title(condition.dataset)}, {noise_title(condition.noise, condition.rate)}"


def make_study(reading: Reading) -> Study:
    """Sort results into the comparison of losses, the scaled losses and the grid of weights."""
    found = cells(reading.records)
    scaled: dict[Condition, list[ScaledCell]] = {}
    grid: dict[Condition, list[GridCell]] = {}
    compared = []
    for cell in found:
        condition, weights = condition_of(cell), _weights(cell)
        (name, factor), *others = weights.items()
        if not others and factor != 1 and name.upper() in _SCALABLE and cell.method != name.upper():
            scaled.setdefault(condition, []).append(ScaledCell(name.upper(), factor, cell))
        elif weights.keys() == {"nce", "rce"} and cell.settings["holdout"]:
            weighted = GridCell(weights["nce"], weights["rce"], cell)
            grid.setdefault(condition, []).append(weighted)
        else:
            compared.append(cell)
    for cell in compared:  # a loss as it is has the factor 1
        if cell.method in _SCALABLE and (rows := scaled.get(condition_of(cell))):
            rows.append(ScaledCell(cell.method, 1.0, cell))
    for rows in scaled.values():
        rows.sort(key=lambda row: (rank_of(row.method), row.factor))
    entries = _make_entries(compared)
    labels = sorted(
        {(e.label, e.cell.method) for e in entries}, key=lambda pair: (rank_of(pair[1]), pair[0])
    )
    factors = sorted((f"{TIMES}{row.factor:g}",) * 2 for rows in scaled.values() for row in rows)
    failed = [
        f"{record.hash} ({condition_name(condition_of(cell))}, {cell.method}, "
        f"seed {record.run.seed}) ended early: {record.error or 'it has no history'}"
        for cell in found
        for record in cell.failed
    ]
    styles = assign_styles([*labels, *factors])
    return Study(entries, scaled, grid, styles, reading.problems + failed, found)


def _make_entries(compared: list[Cell]) -> list[Entry]:
    all_overrides = _find_overrides(compared)
    shared: dict[tuple[str, str], list[str]] = {}  # left out of the labels, which stay short
    for cell, overrides in zip(compared, all_overrides, strict=True):
        key = cell.dataset, cell.protocol
        shared[key] = [o for o in shared.get(key, overrides) if o in overrides]
    entries = []
    for cell, overrides in zip(compared, all_overrides, strict=True):
        common = shared[cell.dataset, cell.protocol]
        own = [o for o in overrides if o not in common]
        notes = [*([cell.protocol] if cell.protocol != "paper" else []), *own]
        label = cell.method + (f" ({', '.join(notes)})" if notes else "")
        entries.append(Entry(cell, label, ", ".join(own), ", ".join(common)))
    return entries


def _find_overrides(compared: list[Cell]) -> list[list[str]]:
    """For each cell, the settings that differ from its protocol, such as ``["epochs 20"]``.

    Where the protocol does not set a value, the most frequent one of the data set and protocol
    counts as the protocol's.
    """
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    for cell in compared:
        for name, value in cell.settings.items():
            counts.setdefault((cell.dataset, cell.protocol, name), Counter())[repr(value)] += 1
    found = []
    for cell in compared:
        expected, overrides = _protocol_settings(cell), []
        for name, value in cell.settings.items():
            if name in (*_CELL_SETTINGS, "overrides"):
                continue
            most_common = counts[cell.dataset, cell.protocol, name].most_common(1)[0][0]
            if value != expected[name] if name in expected else repr(value) != most_common:
                overrides.append(f"{name.replace('_', ' ')} {value}")
        if len(NOISES[cell.noise].variants if cell.noise in NOISES else ()) > 1:
            variant = cell.settings["variant"]
            overrides += [f"noise as {variant}"] if variant != cell.protocol else []
        overrides += _user_overrides(cell)
        found.append(overrides)
    return found


def _user_overrides(cell: Cell) -> list[str]:
    """What of its runs was the user's own, and the name that tells it from others."""
    if not cell.settings["overrides"]:
        return []
    record = [*cell.records, *cell.failed][0]
    return [f"own {' and '.join(cell.settings['overrides'])}", record.run.name]


def _protocol_settings(cell: Cell) -> dict[str, Any]:
    """What the cell's protocol sets; empty for an unknown data set, protocol or loss."""
    if cell.dataset not in DATASETS or cell.protocol not in PROTOCOLS:
        return {}
    given: dict[str, Any] = {"dataset": cell.dataset, "protocol": cell.protocol}
    if cell.noise in CHOICES["noise"]:
        given |= {"noise": cell.noise, "rate": cell.rate}
    # The loss matters: a method may bring its own weight decay, and NLNL trains for more epochs.
    loss = method_named(cell.method) or cell.settings["loss"]
    try:
        expected = Run(**given, loss=loss).resolve().settings()
    except UsageError:
        return {}
    return {name: value for name, value in expected.items() if name != "precision"}


def _weights(cell: Cell) -> dict[str, float]:
    """The factor of each loss in a sum, by name; of what is no sum of named losses, its text."""
    try:
        tree = syntax.read(cell.settings["loss"])
    except UsageError:
        return {cell.settings["loss"]: 1.0}
    terms = tree.terms if isinstance(tree, syntax.Sum) else ((1.0, tree),)
    return {t.name if isinstance(t, syntax.Leaf) else syntax.short(t): w for w, t in terms}
