"""What is under results/ beside what was published, and how a page writes it."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from pathlib import Path

from noiseproof.report import Comparison, Study, comparisons, study
from noiseproof.report._names import CLEAN
from noiseproof.results import Record, read

ROOT = Path(__file__).parent.parent


class Results:
    """What is under results/, and lookups into it that end in words and never in a made-up one."""

    def __init__(self) -> None:
        reading = read(ROOT / "results")
        if reading.problems:
            raise ValueError("; ".join(reading.problems))
        self.records: list[Record] = reading.records
        self.study: Study = study(reading)
        self.compared: list[Comparison] = comparisons(self.study)

    def find(
        self, dataset: str, noise: str, rate: float, method: str, protocol: str = "paper",
        variation: str = "",
    ) -> Comparison | None:  # fmt: skip
        wanted = ((dataset, noise, rate), method, protocol, variation)
        for c in self.compared:
            if c.ours is None:
                continue
            if (c.where, c.method, c.ours.cell.protocol, c.ours.variation) == wanted:
                return c
        return None


@functools.cache
def results_of_the_repository() -> Results:
    return Results()


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
    return "clean" if c.where[1] == CLEAN else f"{c.where[2]:g}"


def labels(noise: str) -> str:
    return "clean" if noise == CLEAN else noise


def way(c: Comparison) -> str:
    if c.ours is None:
        return ""
    return ", ".join(filter(None, (c.ours.cell.protocol, c.ours.variation)))
