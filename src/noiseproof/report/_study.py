"""Results as a report sees them: cells with labels of their own, and the special studies apart."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ..results import Cell, Reading, cells, method_of, rank_of
from ..train import Run
from ..train._protocols import PROTOCOLS
from ._names import TIMES, Style, dataset_name, noise_name, styles

# What tells cells apart without being a setting of training.
_NOT_TRAINING = ("dataset", "noise", "rate", "loss", "protocol", "variant")
_SCALED = re.compile(r"(\d*\.?\d+)\*(nce|nfl|mae|rce)")
_GRID = re.compile(r"(?:(\d*\.?\d+)\*)?nce\+(?:(\d*\.?\d+)\*)?rce")
Where = tuple[str, str, float]  # dataset, noise, rate


@dataclass(frozen=True, eq=False)
class Entry:
    """A cell and what it is called in this report."""

    cell: Cell
    label: str
    """its method; with the protocol where it is not the paper's, and the variation"""
    variation: str
    """the settings that are not its protocol's and that not all runs beside it have, or nothing"""
    unlike: str = ""
    """those that are not its protocol's and that all runs of its data set and protocol share"""

    @property
    def where(self) -> Where:
        return self.cell.dataset, self.cell.noise, self.cell.rate

    @property
    def way(self) -> str:
        """The protocol, and in what all its runs are unlike it."""
        return self.cell.protocol + (f", but with {self.unlike}" if self.unlike else "")


@dataclass(frozen=True)
class Study:
    """All that a report is made from."""

    entries: list[Entry]
    """the comparison of losses"""
    scaled: dict[Where, list[tuple[str, float, Cell]]]
    """losses times a factor: the loss, the factor, the cell"""
    grid: dict[Where, list[tuple[float, float, Cell]]]
    """alpha * NCE + beta * RCE, judged by validation: alpha, beta, the cell"""
    styles: dict[str, Style]
    problems: list[str]
    cells: list[Cell] = field(repr=False, default_factory=list)

    def at(self, where: Where) -> list[Entry]:
        """What was run there, and ended well."""
        found = [e for e in self.entries if e.where == where and e.cell.records]
        return sorted(found, key=lambda e: (rank_of(e.cell.method), e.label))

    @property
    def places(self) -> list[Where]:
        """Every data set with every noise and rate, in order."""
        found = dict.fromkeys(e.where for e in self.entries if e.cell.records)
        return sorted(found, key=lambda w: (list(found).index(_first(found, w)), w[2]))


def _first(found: dict[Where, None], where: Where) -> Where:
    return next(w for w in found if w[:2] == where[:2])


def place_name(where: Where) -> str:
    return f"{dataset_name(where[0])}, {noise_name(where[1], where[2])}"


def study(reading: Reading) -> Study:
    """Sort what was read: the comparison, the scaled losses, the grid of parameters."""
    found = cells(reading.records)
    scaled: dict[Where, list[tuple[str, float, Cell]]] = {}
    grid: dict[Where, list[tuple[float, float, Cell]]] = {}
    compared = []
    for cell in found:
        where, text = (cell.dataset, cell.noise, cell.rate), cell.settings["loss"]
        of_scale, of_grid = _SCALED.fullmatch(text), _GRID.fullmatch(text)
        if of_scale:
            scaled.setdefault(where, []).append((method_of(of_scale[2]), float(of_scale[1]), cell))
        elif of_grid and cell.settings.get("holdout"):
            alpha, beta = (float(part or 1) for part in of_grid.groups())
            grid.setdefault(where, []).append((alpha, beta, cell))
        else:
            compared.append(cell)
    for cell in compared:  # the factor 1 of the losses that were scaled
        where = (cell.dataset, cell.noise, cell.rate)
        if where in scaled and cell.method in ("NCE", "NFL", "MAE", "RCE"):
            scaled[where].append((cell.method, 1.0, cell))
    for rows in scaled.values():
        rows.sort(key=lambda row: (rank_of(row[0]), row[1]))
    entries = _labelled(compared)
    factors = [(f"{TIMES}{s:g}",) * 2 for rows in scaled.values() for _, s, _ in rows]
    named = sorted({(e.label, e.cell.method) for e in entries}, key=lambda n: (rank_of(n[1]), n[0]))
    failed = [
        f"{r.hash} ({place_name((c.dataset, c.noise, c.rate))}, {c.method}, "
        f"seed {r.settings['seed']}) ended early: {r.error or 'it has no history'}"
        for c in found
        for r in c.failed
    ]
    look = styles([*named, *sorted(factors)])
    return Study(entries, scaled, grid, look, reading.problems + failed, found)


def _labelled(compared: list[Cell]) -> list[Entry]:
    noted = _unusual(compared)
    shared: dict[tuple[str, str], list[str]] = {}  # said once, so that labels stay short
    for cell, unusual in zip(compared, noted, strict=True):
        so_far = shared.get((cell.dataset, cell.protocol), unusual)
        shared[cell.dataset, cell.protocol] = [note for note in so_far if note in unusual]
    entries = []
    for cell, unusual in zip(compared, noted, strict=True):
        common = shared[cell.dataset, cell.protocol]
        own = [note for note in unusual if note not in common]
        notes = [*([cell.protocol] if cell.protocol != "paper" else []), *own]
        label = cell.method + (f" ({', '.join(notes)})" if notes else "")
        entries.append(Entry(cell, label, ", ".join(own), ", ".join(common)))
    return entries


def _unusual(compared: list[Cell]) -> list[list[str]]:
    """For each cell the settings that are not usual: those of the protocol are, however few have
    them; where it says nothing, those of most cells of the data set and protocol.
    """
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    for cell in compared:
        for name, value in cell.settings.items():
            counts.setdefault((cell.dataset, cell.protocol, name), Counter())[repr(value)] += 1
    found = []
    for cell in compared:
        known, notes = _usual(cell), []
        for name, value in cell.settings.items():
            most = counts[cell.dataset, cell.protocol, name].most_common(1)[0][0]
            if name in _NOT_TRAINING:
                continue
            if name == "own":  # data or a loss of the user's own: no protocol has them
                notes.append(f"own {str(value)[:8]}")
            elif value != known[name] if name in known else repr(value) != most:
                notes.append(f"{name.replace('_', ' ')} {value}")
        if cell.noise in ("symmetric", "asymmetric"):
            drawn = cell.settings.get("variant", cell.protocol)
            notes += [f"noise as {drawn}"] if drawn != cell.protocol else []
        found.append(notes)
    return found


def _usual(cell: Cell) -> dict[str, Any]:
    """What its protocol sets; nothing for a data set or a protocol that is not known."""
    if cell.dataset not in PROTOCOLS.get(cell.protocol, {}):
        return {}
    given: dict[str, Any] = {"dataset": cell.dataset, "protocol": cell.protocol}
    return Run(**given, loss=cell.settings["loss"]).settings()  # NLNL takes longer than others
