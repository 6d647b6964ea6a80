"""The results of the repository beside the published numbers, and how a page formats them."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

from noiseproof.catalogue import CLEAN
from noiseproof.report import Comparison, Condition, Report, comparisons, make_report
from noiseproof.results import Cell, Reading, Record, read

ROOT = Path(__file__).parent.parent


class Results:
    """Results compared with the published numbers."""

    def __init__(self, reading: Reading) -> None:
        if reading.problems:
            raise ValueError("; ".join(reading.problems))
        self.records: list[Record] = reading.records
        self.report: Report = make_report(reading)
        self.compared: list[Comparison] = comparisons(self.report.study)

    def find(
        self, condition: Condition, method: str, protocol: str = "paper", overrides: str = ""
    ) -> Comparison | None:
        wanted = (condition, method, protocol, overrides)
        for c in self.compared:
            if c.ours is None:
                continue
            if (c.condition, c.method, c.ours.cell.protocol, c.ours.overrides) == wanted:
                return c
        return None

    def cell(self, condition: Condition, method: str) -> Cell | None:
        """Our cell of a method with the paper's settings, where it was run."""
        c = self.find(condition, method)
        return None if c is None or c.ours is None else c.ours.cell


@functools.cache
def results_of_the_repository() -> Results:
    return Results(read(ROOT / "results"))


def share_of(cell: Cell, column: str) -> str:
    """A measured share after the last epoch, the mean over the seeds, such as 27 %."""
    return f"{100 * fmean(record.column(column)[-1] for record in cell.records):.0f} %"


def row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(head: Iterable[str], rows: Iterable[Iterable[str]], left: int = 1) -> list[str]:
    head = list(head)
    marks = ["---"] * left + ["---:"] * (len(head) - left)
    return [row(*head), row(*marks), *(row(*cells) for cells in rows), ""]


def number(mean: float, deviation: float | None) -> str:
    known = deviation is not None and not math.isnan(deviation)
    return f"{mean:.2f} ± {deviation:.2f}" if known else f"{mean:.2f}"


def ours(c: Comparison | None) -> str:
    if c is None or c.ours is None:
        return "not run"
    return number(c.ours.cell.mean, c.ours.cell.deviation)


def paper(c: Comparison | None) -> str:
    return number(c.paper.mean, c.paper.std) if c is not None and c.paper is not None else ""


def signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.2f}"


def rate(c: Comparison) -> str:
    return "clean" if c.condition.noise == CLEAN else f"{c.condition.rate:g}"


def labels(noise: str) -> str:
    return "clean" if noise == CLEAN else noise


def protocol_text(c: Comparison) -> str:
    """The protocol of our runs and their overrides, such as ``"paper, weight decay 0.01"``."""
    if c.ours is None:
        return ""
    return ", ".join(filter(None, (c.ours.cell.protocol, c.ours.overrides)))


def settings_text(c: Comparison) -> str:
    """The same for a reader, with the overrides that all such runs of the data set share."""
    shared = c.ours.shared_overrides if c.ours is not None else ""
    return ", ".join(filter(None, (protocol_text(c), shared)))
