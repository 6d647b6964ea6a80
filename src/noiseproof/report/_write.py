"""A report on disk, in any of its formats."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from ..results import Reading, write_atomically
from ._compile import picture
from ._page import figures, html
from ._study import Study, study
from ._tables import tables
from ._text import to_csv, to_latex, to_markdown

Format = Literal["html", "latex", "csv", "markdown", "png", "svg"]
FORMATS: tuple[str, ...] = get_args(Format)
SUFFIXES = {"html": ".html", "latex": ".tex", "csv": ".csv", "markdown": ".md"}
_PICTURES = ("png", "svg")


def write(
    reading: Reading,
    out: Path | str,
    kind: Format = "html",
    title: str | None = None,
    beside: Reading | None = None,
) -> list[Path]:
    """Write a report of what was read, and say which files it is.

    Pictures are many: for png and svg ``out`` is a folder, and each figure a file in it. Results
    to show ``beside`` have a section of their own in the page, and only there.
    """
    if kind not in FORMATS:
        raise ValueError(f"a report is written as {', '.join(FORMATS)}; not as {kind!r}")
    if not reading.records:
        why = f": {reading.problems[0]}" if reading.problems else ""
        raise ValueError(f"there are no results to report on{why}; noiseproof train makes some")
    if beside is not None and kind != "html":
        raise ValueError(f"only the page shows results beside its own; a {kind} report does not")
    out, found = Path(out), study(reading)
    if kind in _PICTURES:
        return _pictures(found, out, kind)
    if out.is_dir():
        raise ValueError(f"{out} is a folder; --out names the file of a {kind} report")
    if kind == "html":
        others = study(beside) if beside is not None and beside.records else None
        text = html(found, title, others)
    else:
        text = {"latex": to_latex, "csv": to_csv, "markdown": to_markdown}[kind](tables(found))
    write_atomically(out, text.encode())
    return [out]


def _pictures(found: Study, out: Path, kind: str) -> list[Path]:
    if out.is_file():
        raise ValueError(f"{out} is a file; --out names the folder of the pictures")
    written = []
    for figure in figures(found):
        path = out / f"{figure.name}.{kind}"
        write_atomically(path, picture(figure, found.styles, kind))
        written.append(path)
    if not written:
        raise ValueError("there is nothing to draw: no run has ended well")
    return written
