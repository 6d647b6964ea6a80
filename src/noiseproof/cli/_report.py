"""``noiseproof report``: results as a page with tables and figures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import tyro

from ._tables import say
from ._words import count, size, unended

_FORMATS = "{html,latex,csv,markdown,png,svg}"


def report(
    sources: Annotated[
        tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="DIR|FILE")
    ] = (Path("runs"),),
    *,
    out: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None,
    format: Annotated[str | None, tyro.conf.arg(metavar=_FORMATS, help_behavior_hint="")] = None,
    title: Annotated[str | None, tyro.conf.arg(metavar="TEXT")] = None,
    beside: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="DIR|FILE")] = (),
) -> None:
    """Tables and figures of results, beside what the paper says, as one page without a network.

    The page holds everything it shows. The other formats give the tables (latex, csv, markdown) or
    the figures, a file each (png, svg). Accuracies are in percent; columns of the csv end in
    _percent, while those of noiseproof results --csv are fractions.

    Args:
        sources: folders of runs, or bundles of results.
        out: the file to write, report.html and the like by default; for png and svg a folder,
            figures by default.
        format: html for the page; latex, csv, markdown for its tables; png, svg for its figures;
            by default that of the file's suffix (.html, .tex, .csv, .md), else html.
        title: the page's title.
        beside: results of others to show in a section of their own, such as a reference; they have
            no part in the conclusion.
    """
    from noiseproof.report import SUFFIXES, choose_format, make_report, write
    from noiseproof.results import read

    chosen = choose_format(out, format)
    reading, others = read(*sources), read(*beside)
    for problem in reading.problems + others.problems:
        say(f"noiseproof: {problem}", file=sys.stderr)
    if reading.unended:
        say(unended(reading.unended), file=sys.stderr)
    is_folder = chosen not in SUFFIXES
    path = out or Path("figures" if is_folder else f"report{SUFFIXES[chosen]}")
    made = make_report(reading)
    written = write(made, path, chosen, title, make_report(others) if beside else None)
    # What is written to a pipe, which may be the output itself, is not followed by other lines.
    file = None if all(path.is_file() for path in written) else sys.stderr
    say(made.conclusions[0], file)
    total = size(sum(path.stat().st_size for path in written))
    what = f"{count(len(written), 'figure')} in {path}" if is_folder else str(path)
    say(f"{what}, {total}, from {count(len(reading.records), 'run')}", file)
