"""``noiseproof report``: results as a page with tables and figures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from noiseproof._errors import UsageError

from ._words import count, size

if TYPE_CHECKING:
    from noiseproof.report import Format

_FORMATS = "{html,latex,csv,markdown,png,svg}"


def report(
    sources: Annotated[
        tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="DIR|FILE")
    ] = (Path("runs"),),
    *,
    out: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None,
    format: Annotated[
        Literal["html", "latex", "csv", "markdown", "png", "svg"] | None,
        tyro.conf.arg(metavar=_FORMATS, help_behavior_hint=""),
    ] = None,
    title: Annotated[str | None, tyro.conf.arg(metavar="TEXT")] = None,
    beside: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="DIR|FILE")] = (),
) -> None:
    """Tables and figures of results, beside what the paper says, as one page without a network.

    The page holds everything it shows. The other formats give the tables (latex, csv, markdown) or
    the figures, a file each (png, svg).

    Args:
        sources: folders of runs, or bundles of results.
        out: the file to write, report.html and the like by default; for png and svg a folder,
            figures by default.
        format: html for the page; latex, csv, markdown for its tables; png, svg for its figures;
            by default that of the file's name, else html.
        title: the page's title.
        beside: results of others to show in a section of their own, such as a reference; they have
            no part in the conclusion.
    """
    from noiseproof.report import SUFFIXES, make_report, write
    from noiseproof.results import read

    chosen = _choose_format(format, out)
    reading, others = read(*sources), read(*beside)
    for problem in reading.problems + others.problems:
        print(f"noiseproof: {problem}", file=sys.stderr)
    is_folder = chosen not in SUFFIXES
    path = out or Path("figures" if is_folder else f"report{SUFFIXES[chosen]}")
    made = make_report(reading)
    written = write(made, path, chosen, title, make_report(others) if beside else None)
    print(made.conclusions[0])
    total = size(sum(file.stat().st_size for file in written))
    what = f"{count(len(written), 'figure')} in {path}" if is_folder else str(path)
    print(f"{what}, {total}, from {count(len(reading.records), 'run')}")


def _choose_format(given: Format | None, out: Path | None) -> Format:
    """The format given, or else that of the file's suffix; an error where the two disagree."""
    by_suffix: dict[str, Format] = {
        ".html": "html", ".tex": "latex", ".csv": "csv", ".md": "markdown", ".png": "png",
        ".svg": "svg",
    }  # fmt: skip
    named = None if out is None else by_suffix.get(out.suffix.lower())
    if given is None and named in ("png", "svg"):
        raise UsageError(
            f"figures are a file each; give --format {named} and a folder as --out, not {out}"
        )
    if given is not None and named not in (None, given):
        raise UsageError(f"{out} is named as {named}, and --format is {given}; give one of the two")
    return given or named or "html"
