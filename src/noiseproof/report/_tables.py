"""The paper's tables, from results: each cell beside the published figure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ..results import Published, published, rank_of
from ._names import CLEAN, DRAWN, dataset_name, noise_name
from ._study import Entry, Study

_PAPER = ("table-symmetric", "table-asymmetric", "table-webvision")  # their rows are always shown
Column = tuple[str, float]  # noise, rate


@dataclass(frozen=True)
class Square:
    """One cell as it is shown."""

    mean: float | None = None
    """in percent; None where nothing ended well"""
    deviation: float | None = None
    seeds: tuple[int, ...] = ()
    failed: int = 0
    """runs that ended early"""
    best: bool = False
    """among the top two of its column"""
    paper: Published | None = None

    @property
    def difference(self) -> float | None:
        if self.mean is None or self.paper is None:
            return None
        return round(self.mean, 2) - self.paper.mean


@dataclass(frozen=True)
class Line:
    """A row: one method under one protocol."""

    label: str
    """as the charts call it"""
    method: str
    protocol: str
    variation: str
    squares: list[Square]
    unlike: str = ""
    """as all runs of its protocol differ from it"""


@dataclass(frozen=True)
class Table:
    """One data set under one kind of noise."""

    dataset: str
    noise: str
    columns: list[Column]
    lines: list[Line]

    @property
    def name(self) -> str:
        """For links and files."""
        return f"{self.dataset}-{self.noise}"

    @property
    def title(self) -> str:
        kind = {"people": "people's labels", CLEAN: "clean labels"}.get(
            self.noise, f"{self.noise} noise"
        )
        return f"{dataset_name(self.dataset)}, {kind}"

    @property
    def protocol(self) -> str:
        """The one protocol of all its runs, or nothing where lines differ in more than the loss."""
        used = {(line.protocol, line.variation) for line in self.lines if line.protocol}
        return next(iter(used))[0] if len(used) == 1 else ""

    @property
    def unlike(self) -> str:
        """The settings of all its runs that are not their protocol's, or nothing."""
        used = {line.unlike for line in self.lines if line.protocol}
        return next(iter(used)) if len(used) == 1 else ""

    def settings(self, line: Line) -> str:
        """What a row has to say of its settings: its variation, and what the caption cannot say."""
        unlike = line.unlike if line.unlike != self.unlike else ""
        return ", ".join(filter(None, (unlike, line.variation)))

    @property
    def heads(self) -> list[str]:
        return [
            f"{rate:g}" if noise in DRAWN else noise_name(noise, rate)
            for noise, rate in self.columns
        ]

    @property
    def seeds(self) -> str:
        """Over how many seeds the means are."""
        counts = {len(s.seeds) for line in self.lines for s in line.squares if s.seeds}
        low, high = min(counts, default=0), max(counts, default=0)
        words = str(high) if low == high else f"{low} to {high}"
        return f"{words} seed{'' if high == 1 else 's'}"

    @property
    def sources(self) -> list[str]:
        """Where the published figures are from, the paper first."""
        found = [s.paper.source for line in self.lines for s in line.squares if s.paper]
        return list(dict.fromkeys(found))

    @property
    def missing(self) -> int:
        """Cells that the paper has and these results have not."""
        return sum(s.mean is None and s.paper is not None for li in self.lines for s in li.squares)


def tables(study: Study) -> list[Table]:
    """A table for each data set and kind of noise that there are results for."""
    groups: dict[tuple[str, str], None] = {}
    for entry in study.entries:
        if entry.cell.noise != CLEAN:
            groups[entry.cell.dataset, _kind(entry.cell.noise)] = None
    for entry in study.entries:  # clean labels have a column in another table, or one of their own
        if not any(dataset == entry.cell.dataset for dataset, _ in groups):
            groups[entry.cell.dataset, CLEAN] = None
    order = list(dict.fromkeys(e.cell.dataset for e in study.entries))
    kinds = (CLEAN, *DRAWN, "people", "real")
    ordered = sorted(groups, key=lambda g: (order.index(g[0]), kinds.index(g[1])))
    with_clean = dict(reversed(ordered))
    return [_table(study, *group, with_clean[group[0]] == group[1]) for group in ordered]


def _kind(noise: str) -> str:
    return noise if noise in (CLEAN, *DRAWN, "real") else "people"


def _table(study: Study, dataset: str, kind: str, with_clean: bool) -> Table:
    def belongs(noise: str) -> bool:
        return _kind(noise) == kind or (noise == CLEAN and with_clean)

    entries = [e for e in study.entries if e.cell.dataset == dataset and belongs(e.cell.noise)]
    figures: dict[tuple[str, Column], Published] = {}
    for p in published():  # the paper comes first, and stays
        if p.dataset == dataset and belongs(p.noise):
            figures.setdefault((p.method, (p.noise, p.rate)), p)
    expected = [m for (m, _), p in figures.items() if p.table in _PAPER]
    columns = {e.where[1:] for e in entries} | {c for m, c in figures if m in expected}
    ordered = sorted(columns, key=lambda c: (c[0] != CLEAN, c[1], c[0]))
    rows: dict[tuple[str, str, str], dict[Column, Entry]] = {}
    for e in entries:
        row = rows.setdefault((e.cell.method, e.cell.protocol, e.variation), {})
        row.setdefault(e.where[1:], e)
    for method in expected:
        if not any(method == key[0] for key in rows):
            rows[method, "", ""] = {}
    best = {column: _top_two(row[column] for row in rows.values() if column in row)
            for column in ordered}  # fmt: skip
    lines = [
        Line(
            _label(row, key[0]),
            *key,
            [_square(row.get(c), figures.get((key[0], c)), best[c]) for c in ordered],
            next((e.unlike for e in row.values()), ""),
        )
        for key, row in sorted(rows.items(), key=lambda r: (rank_of(r[0][0]), *_protocol(r[0])))
    ]
    return Table(dataset, kind, ordered, lines)


def _label(row: dict[Column, Entry], method: str) -> str:
    return next((e.label for e in row.values()), method)


def _protocol(key: tuple[str, str, str]) -> tuple[bool, str, str]:
    return key[1] == "authors", key[1], key[2]


def _top_two(entries: Iterable[Entry]) -> float:
    """The least mean, as it is printed, that is among the top two; of two cells the better one."""
    means = sorted((round(e.cell.mean, 2) for e in entries if e.cell.records), reverse=True)
    return means[1] if len(means) > 2 else means[0] if len(means) == 2 else math.inf


def _square(entry: Entry | None, paper: Published | None, second: float) -> Square:
    if entry is None:
        return Square(paper=paper)
    cell = entry.cell
    if not cell.records:
        return Square(failed=len(cell.failed), paper=paper)
    deviation = cell.deviation
    return Square(
        cell.mean, None if math.isnan(deviation) else deviation, tuple(cell.seeds),
        len(cell.failed), round(cell.mean, 2) >= second, paper,
    )  # fmt: skip
