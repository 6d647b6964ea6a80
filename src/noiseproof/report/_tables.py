"""The paper's tables, filled with our results beside the published numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .._files import safe_name
from ..catalogue import (
    CLEAN,
    GIVEN,
    NOISES,
    dataset_title,
    noise_group,
    noise_title,
    rank_of,
)
from ..results import Published, published
from ._entries import Condition, Entry, judged_on
from ._lead import Lead, rank
from ._study import Study
from ._words import JudgedOn, full_names, noise_words, protocol_title

# Rows of these tables are shown even where nothing was run.
_PAPER_TABLES = ("table-symmetric", "table-asymmetric", "table-webvision")


class Column(NamedTuple):
    noise: str
    rate: float


@dataclass(frozen=True)
class TableCell:
    """One number of a table: ours and the published one."""

    mean: float | None = None
    """in percent; None where no run ended well"""
    deviation: float | None = None
    """the sample deviation over the seeds; None for fewer than two"""
    seeds: tuple[int, ...] = ()
    num_failed: int = 0
    """how many runs ended early"""
    missing: str = ""
    """what stands in place of a number: why no run has one; ``""`` where none was run"""
    top_two: bool = False
    """whether it is among the two best of its column"""
    published: Published | None = None
    behind: Lead | None = None
    """of labels as given, how many points it is behind the best loss"""
    place: str = ""
    """of labels as given, ``"best"`` where its lead is clear, or else ``"first"``"""

    @property
    def standard_error(self) -> float | None:
        """Of the mean over the seeds."""
        return None if self.deviation is None else self.deviation / math.sqrt(len(self.seeds))

    @property
    def difference(self) -> float | None:
        """Ours minus the published one, in points."""
        if self.mean is None or self.published is None:
            return None
        return round(self.mean, 2) - self.published.mean


@dataclass(frozen=True)
class TableRow:
    """One method under one protocol."""

    label: str
    """the same as in the charts"""
    method: str
    protocol: str
    """``""`` where nothing was run"""
    overrides: str
    """see :class:`Entry`"""
    cells: list[TableCell]
    shared_overrides: str = ""
    """see :class:`Entry`"""

    @property
    def behind(self) -> str:
        """Of labels as given, how many points it is behind the best loss."""
        found = (str(cell.behind) if cell.behind else cell.place for cell in self.cells)
        return next(filter(None, found), "")

    @property
    def note(self) -> str:
        """Whether it can be told apart from the best loss, in words."""
        return next((cell.behind.note for cell in self.cells if cell.behind), "")


@dataclass(frozen=True)
class Table:
    """One data set under one type of noise."""

    dataset: str
    noise: str
    """the name of a noise that is drawn, or a group of others: clean, human or given"""
    columns: list[Column]
    rows: list[TableRow]
    judged_on: JudgedOn = "test"
    wrong: float | None = None
    """of labels as given, the percentage that is wrong, where it is known"""

    @cached_property
    def name(self) -> str:
        """For links and files."""
        return safe_name(f"{self.dataset}-{self.noise}")

    @cached_property
    def title(self) -> str:
        given = noise_words(GIVEN, wrong=self.wrong)
        titles = {"human": "human labels", "clean": "clean labels", GIVEN: given}
        title = titles.get(self.noise, f"{self.noise} noise")
        return f"{dataset_title(self.dataset)}, {title}"

    @cached_property
    def protocol(self) -> str:
        """The protocol of all rows, or ``""`` where rows differ in more than the loss."""
        used = {(row.protocol, row.overrides) for row in self.rows if row.protocol}
        return self.protocol_of(next(iter(used))[0]) if len(used) == 1 else ""

    def protocol_of(self, name: str) -> str:
        """Whose settings a protocol has on this data set."""
        return protocol_title(name, self.dataset) if name else ""

    @cached_property
    def full_names(self) -> dict[str, str]:
        """The names of losses in this table, each with the words that it stands for."""
        return {k: v for row in self.rows for k, v in full_names(row.method).items()}

    @cached_property
    def shared_overrides(self) -> str:
        """The shared overrides of all rows, or ``""`` where rows have different ones."""
        used = {row.shared_overrides for row in self.rows if row.protocol}
        return next(iter(used)) if len(used) == 1 else ""

    def notes(self, row: TableRow) -> str:
        """The overrides of a row that the caption of the table does not mention."""
        shared = row.shared_overrides
        return ", ".join(
            filter(None, (shared if shared != self.shared_overrides else "", row.overrides))
        )

    @cached_property
    def headers(self) -> list[str]:
        return [
            f"{c.rate:g}" if noise_group(c.noise) == "drawn" else noise_title(*c)
            for c in self.columns
        ]

    @cached_property
    def says_how_sure(self) -> bool:
        """Whether it says of each loss how far it is behind the best one, and how sure that is."""
        return any(row.behind for row in self.rows)

    @cached_property
    def has_errors(self) -> bool:
        """Whether some of these differences have a standard error, which one seed has not."""
        leads = [cell.behind for row in self.rows for cell in row.cells if cell.behind]
        return any(lead.standard_error is not None for lead in leads)

    @cached_property
    def spread(self) -> str:
        """What follows the mean: where a table says how sure it is, the standard error."""
        return "standard error" if self.says_how_sure else "deviation"

    def spread_of(self, cell: TableCell) -> float | None:
        return cell.standard_error if self.says_how_sure else cell.deviation

    @cached_property
    def num_seeds(self) -> str:
        """The number of seeds of a cell, such as ``"3 seeds"`` or ``"1 to 3 seeds"``."""
        counts = {len(cell.seeds) for row in self.rows for cell in row.cells if cell.seeds}
        low, high = min(counts, default=0), max(counts, default=0)
        number = str(high) if low == high else f"{low} to {high}"
        return f"{number} seed{'' if high == 1 else 's'}"

    @cached_property
    def has_single_seeds(self) -> bool:
        """Whether some cells have one seed, and so no deviation, beside others with several."""
        counts = {len(cell.seeds) for row in self.rows for cell in row.cells if cell.seeds}
        return 1 in counts and len(counts) > 1

    @cached_property
    def has_same_seeds(self) -> bool:
        """Whether all cells have the same seeds."""
        return len({cell.seeds for row in self.rows for cell in row.cells if cell.seeds}) <= 1

    @cached_property
    def sources(self) -> list[str]:
        """Where the published numbers are from, the paper first."""
        cells = [cell for row in self.rows for cell in row.cells]
        return list(dict.fromkeys(c.published.source for c in cells if c.published))

    @cached_property
    def num_missing(self) -> int:
        """How many cells are published and were not run."""
        cells = [cell for row in self.rows for cell in row.cells]
        return sum(c.mean is None and c.published is not None for c in cells)


def make_tables(study: Study) -> list[Table]:
    """A table for each data set and type of noise that has results."""
    by_dataset: dict[str, list[Entry]] = {}
    for entry in study.entries:
        by_dataset.setdefault(entry.cell.dataset, []).append(entry)
    order = {noise: i for i, noise in enumerate(dict.fromkeys(map(_table_noise, NOISES)))}
    tables = []
    for dataset, entries in by_dataset.items():
        noises = {_table_noise(e.cell.noise) for e in entries if e.cell.noise != CLEAN}
        # Clean labels are a column of the first table.
        ordered = sorted(noises, key=order.__getitem__) or [_table_noise(CLEAN)]
        for noise in ordered:
            with_clean = noise == ordered[0]
            tables.append(_make_table(study, dataset, entries, noise, with_clean=with_clean))
    return tables


def _table_noise(noise: str) -> str:
    """Which table a noise belongs to: all human labels share one."""
    group = noise_group(noise)
    return noise if group == "drawn" else group


def _make_table(
    study: Study, dataset: str, entries: list[Entry], group: str, with_clean: bool
) -> Table:
    def belongs(noise: str) -> bool:
        return _table_noise(noise) == group or (noise == CLEAN and with_clean)

    entries = [e for e in entries if belongs(e.cell.noise)]
    numbers: dict[tuple[str, Column], Published] = {}
    for p in published():  # the paper's numbers come first and are kept
        if p.dataset == dataset and belongs(p.noise):
            numbers.setdefault((p.method, Column(p.noise, p.rate)), p)
    expected = {method for (method, _), p in numbers.items() if p.table in _PAPER_TABLES}
    columns = {_column_of(e) for e in entries} | {c for method, c in numbers if method in expected}
    ordered = sorted(columns, key=lambda c: (c.noise != CLEAN, c.rate, c.noise))
    rows: dict[tuple[str, str, str], dict[Column, Entry]] = {}
    for e in entries:
        row = rows.setdefault((e.cell.method, e.cell.protocol, e.overrides), {})
        row.setdefault(_column_of(e), e)
    ran = {e.cell.method for e in entries if not e.has_overrides}
    for method in expected - ran:
        rows[method, "", ""] = {}
    thresholds = {
        column: _top_two_threshold(row[column] for row in rows.values() if column in row)
        for column in ordered
    }
    given = Condition(dataset, GIVEN, 0.0)
    places = _places(study.at(given) if belongs(GIVEN) else [])
    made = []
    for key, row in sorted(rows.items(), key=lambda item: _row_order(*item[0])):
        method, protocol, overrides = key
        first = next(iter(row.values()), None)
        own = any(e.has_overrides for e in row.values())
        cells = [
            _make_cell(row.get(c), None if own else numbers.get((method, c)), thresholds[c], places)
            for c in ordered
        ]
        made.append(TableRow(
            first.label if first else method, method, protocol, overrides, cells,
            first.shared_overrides if first else "",
        ))  # fmt: skip
    on = judged_on(e for e in entries if e.cell.records)
    return Table(dataset, group, ordered, made, on, study.wrong.get(given))


def _places(entries: list[Entry]) -> dict[Entry, Lead | None]:
    """How far each loss is behind the best one, which has None; empty for one loss alone."""
    return dict(rank(entries)) if len(entries) > 1 else {}


def _column_of(entry: Entry) -> Column:
    return Column(entry.cell.noise, entry.cell.rate)


def _row_order(method: str, protocol: str, overrides: str) -> tuple[object, ...]:
    return rank_of(method), protocol == "authors", protocol, overrides


def _top_two_threshold(entries: Iterable[Entry]) -> float:
    """The smallest mean, rounded as printed, that is in bold: the second best, of two the best."""
    means = sorted((round(e.cell.mean, 2) for e in entries if e.cell.records), reverse=True)
    return means[1] if len(means) > 2 else means[0] if len(means) == 2 else math.inf


def _make_cell(
    entry: Entry | None,
    published: Published | None,
    threshold: float,
    places: dict[Entry, Lead | None],
) -> TableCell:
    if entry is None:
        return TableCell(published=published)
    cell = entry.cell
    if not cell.records:
        return TableCell(num_failed=len(cell.failed), missing=cell.missing, published=published)
    deviation = cell.deviation
    behind = places.get(entry)
    place = ""
    if entry in places and behind is None:
        clear = all(lead is None or lead.verdict == "clear" for lead in places.values())
        place = "best" if clear else "first"
    return TableCell(
        mean=cell.mean, deviation=None if math.isnan(deviation) else deviation,
        seeds=tuple(cell.seeds), num_failed=len(cell.failed),
        top_two=round(cell.mean, 2) >= threshold, published=published, behind=behind, place=place,
    )  # fmt: skip
