"""``noiseproof report``: what came out, as a page to look at."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro


def report(
    places: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="DIR|FILE")] = (
        Path("runs"),
    ),
    *,
    out: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None,
    format: Literal["html", "latex", "csv", "markdown", "png", "svg"] = "html",
    title: Annotated[str | None, tyro.conf.arg(metavar="TEXT")] = None,
    beside: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="DIR|FILE")] = (),
) -> None:
    """Tables and figures of results, beside what the paper says, as one page without a network.

    The page holds everything it shows. The other formats give the tables (latex, csv, markdown) or
    the figures, a file each (png, svg).

    Args:
        places: folders of runs, or bundles of results.
        out: the file to write, report.html and the like by default; for png and svg a folder,
            figures by default.
        format: html for the page; latex, csv, markdown for its tables; png, svg for its figures.
        title: the page's title.
        beside: results of others to show in a section of their own, such as a reference; they have
            no part in the conclusion.
    """
    from noiseproof.report import SUFFIXES, conclusions, study, write
    from noiseproof.results import read

    reading, others = read(*places), read(*beside)
    for problem in reading.problems + others.problems:
        print(f"noiseproof: {problem}", file=sys.stderr)
    pictures = format not in SUFFIXES
    where = out or Path("figures" if pictures else f"report{SUFFIXES[format]}")
    written = write(reading, where, format, title, others if beside else None)
    print(conclusions(study(reading))[0])
    size = sum(path.stat().st_size for path in written)
    what = f"{len(written)} figures in {where}" if pictures else str(where)
    print(f"{what}, {size / 1e6:.1f} MB, from {len(reading.records)} runs")
