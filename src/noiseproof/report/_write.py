"""Writing a report to disk, in any of its formats."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from .._errors import UsageError
from .._files import refuse_folder, write_atomically
from ._compile import picture
from ._page import html
from ._report import Report
from ._text import to_csv, to_latex, to_markdown

Format = Literal["html", "latex", "csv", "markdown", "png", "svg"]
FORMATS: tuple[Format, ...] = get_args(Format)
_FORMATS: dict[str, Format] = {name: name for name in FORMATS}
SUFFIXES = {"html": ".html", "latex": ".tex", "csv": ".csv", "markdown": ".md"}
_BY_SUFFIX: dict[str, Format] = {
    ".html": "html", ".htm": "html", ".tex": "latex", ".csv": "csv", ".md": "markdown",
    ".png": "png", ".svg": "svg",
}  # fmt: skip


def write(
    report: Report,
    out: Path | str,
    format: Format | None = None,
    title: str | None = None,
    beside: Report | None = None,
) -> list[Path]:
    """Write a report.

    Args:
        report: what to write, from :func:`make_report`.
        out: the file; for png and svg a folder, which gets a file for each figure.
        format: ``"html"`` for the page; ``"latex"``, ``"csv"`` or ``"markdown"`` for its tables;
            ``"png"`` or ``"svg"`` for its figures. By default that of the file's suffix, and html
            for a name without one.
        title: the page's title.
        beside: results of others to show in a section of the page; html only.

    Returns:
        The files that were written.
    """
    out = Path(out)
    format = choose_format(out, format)
    if not report.study.cells:
        problems = report.study.problems
        why = f": {problems[0]}" if problems else ""
        raise UsageError(f"there are no results to report on{why}; noiseproof train makes some")
    if beside is not None and format != "html":
        raise UsageError(f"only the page shows results beside its own; a {format} report does not")
    if format == "png" or format == "svg":
        return _write_pictures(report, out, format)
    refuse_folder(out)  # at once, and not when all is made
    if format == "html":
        text = html(report, title, beside if beside and beside.study.cells else None)
    else:
        to_text = {"latex": to_latex, "csv": to_csv, "markdown": to_markdown}[format]
        text = to_text(report.tables)
    write_atomically(out, text.encode())
    return [out]


def choose_format(out: Path | None, given: str | None = None) -> Format:
    """The format that was given, or else that of a file's suffix.

    Raises:
        UsageError: there is no such format, or the two disagree.
    """
    form = None if given is None else _FORMATS.get(given.lower())
    if given is not None and form is None:
        raise UsageError(f"a report is written as {', '.join(FORMATS)}; not as {given!r}")
    suffix = "" if out is None else out.suffix.lower()
    named = _BY_SUFFIX.get(suffix)
    if form is not None:
        if named not in (None, form):
            raise UsageError(
                f"{out} is named as {named}, and --format is {form}; give one of the two"
            )
        return form
    if named in ("png", "svg"):
        raise UsageError(
            f"figures are a file each; give --format {named} and a folder as --out, not {out}"
        )
    if suffix and named is None:
        raise UsageError(
            f"a report is written as {', '.join(SUFFIXES.values())}, and its figures with --format "
            f"png or svg; not as {suffix}, so give another name than {out}"
        )
    return named or "html"


def _write_pictures(report: Report, out: Path, format: Literal["png", "svg"]) -> list[Path]:
    if out.is_file():
        raise UsageError(f"{out} is a file; --out names the folder of the pictures")
    written = []
    for figure in report.figures:
        path = out / f"{figure.name}.{format}"  # a figure's name is safe for files
        write_atomically(path, picture(figure, report.study.styles, format))
        written.append(path)
    if not written:
        raise UsageError("there is nothing to draw: no run has ended well")
    return written
