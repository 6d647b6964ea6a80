"""``noiseproof report``: what came out, as a page to look at."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from ._words import count, size

if TYPE_CHECKING:
    from noiseproof.report import Format

_FORMATS = "{html,latex,csv,markdown,png,svg}"


def report(
    places: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="DIR|FILE")] = (
        Path("runs"),
    ),
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
        places: folders of runs, or bundles of results.
        out: the file to write, report.html and the like by default; for png and svg a folder,
            figures by default.
        format: html for the page; latex, csv, markdown for its tables; png, svg for its figures;
            by default that of the file's name, else html.
        title: the page's title.
        beside: results of others to show in a section of their own, such as a reference; they have
            no part in the conclusion.
    """
    from noiseproof.report import SUFFIXES, conclusions, study, write
    from noiseproof.results import read

    kind = _format(format, out)
    reading, others = read(*places), read(*beside)
    for problem in reading.problems + others.problems:
        print(f"noiseproof: {problem}", file=sys.stderr)
    pictures = kind not in SUFFIXES
    where = out or Path("figures" if pictures else f"report{SUFFIXES[kind]}")
    written = write(reading, where, kind, title, others if beside else None)
    print(conclusions(study(reading))[0])
    large = size(sum(path.stat().st_size for path in written))
    what = f"{count(len(written), 'figure')} in {where}" if pictures else str(where)
    print(f"{what}, {large}, from {count(len(reading.records), 'run')}")


def _format(given: Format | None, out: Path | None) -> Format:
    """That of the file's name; a format that says something else is a mistake."""
    named: dict[str, Format] = {
        ".html": "html", ".tex": "latex", ".csv": "csv", ".md": "markdown", ".png": "png",
        ".svg": "svg",
    }  # fmt: skip
    name = None if out is None else named.get(out.suffix.lower())
    if given is None and name in ("png", "svg"):
        raise ValueError(
            f"figures are a file each; give --format {name} and a folder as --out, not {out}"
        )
    if given is not None and name not in (None, given):
        raise ValueError(f"{out} is named as {name}, and --format is {given}; give one of the two")
    return given or name or "html"
