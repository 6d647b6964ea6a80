"""Tables as text: CSV, Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Callable

from .._escape import csv_text, latex, markdown
from ._lead import RULE
from ._tables import Column, Table, TableCell, TableRow
from ._words import ACCURACY_WORDS, HELD_OUT_NOTE, JudgedOn

_CSV_COLUMNS = (
    "dataset", "noise", "rate", "method", "protocol", "shared_overrides", "overrides",
    "mean_percent", "deviation_percent", "seeds", "failed", "top_two", "published_percent",
    "published_deviation_percent", "difference_points", "source", "accuracy_on",
    "behind_best_points", "behind_best_standard_error", "verdict",
)  # fmt: skip
_ACCURACY_ON: dict[JudgedOn, str] = {
    "test": "test set", "held-out": "held-out labels", "both": "test set or held-out labels",
}  # fmt: skip
_BEHIND = "Points behind the best"
_PLUS_MINUS = "$\\pm$"


def to_csv(tables: list[Table]) -> str:
    """A row for each cell of the tables; fields without a number are empty.

    Accuracies are in percent, as the tables print them, and their columns end in ``_percent``. The
    accuracies of ``noiseproof results --csv`` are fractions, as in ``history.csv``.
    """
    rows = [
        _csv_row(table, row, column, cell)
        for table in tables
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
    ]
    return csv_text([_CSV_COLUMNS, *rows])


def _csv_row(table: Table, row: TableRow, column: Column, cell: TableCell) -> list[object]:
    p = cell.published
    return [
        table.dataset, column.noise, f"{column.rate:g}", row.method, row.protocol,
        row.shared_overrides, row.overrides, _format_number(cell.mean),
        _format_number(cell.deviation), " ".join(map(str, cell.seeds)),
        cell.num_failed or "", int(cell.top_two) if cell.mean is not None else "",
        _format_number(p.mean if p else None), _format_number(p.std if p else None),
        _format_number(cell.difference), p.source if p else "",
        "" if cell.mean is None else _ACCURACY_ON[table.judged_on],
        _format_number(cell.behind.points if cell.behind else None),
        _format_number(cell.behind.standard_error if cell.behind else None),
        cell.behind.verdict if cell.behind else cell.place,
    ]  # fmt: skip


def _format_number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def to_markdown(tables: list[Table]) -> str:
    """Pipe tables; in brackets the published number and the difference from it."""
    parts = []
    for table in tables:
        rows = [
            ["Loss", "Protocol", *map(markdown, _headers(table))],
            ["---", "---", *("---:" for _ in _headers(table))],
            *_format_rows(table, markdown, lambda text: f"**{text}**", "{:+.2f}", "-"),
        ]
        accuracy = ACCURACY_WORDS[table.judged_on]
        lines = [f"| {' | '.join(row)} |" for row in rows]
        caption = f"{accuracy[0].upper()}{accuracy[1:]} in percent, {_averaged(table)}."
        parts.append(
            f"### {markdown(table.title)}\n\n{caption}{markdown(_notes(table))}\n\n"
            + "\n".join(lines) + "\n"
        )  # fmt: skip
    return "\n".join(parts)


def to_latex(tables: list[Table]) -> str:
    """``table`` environments; they need the package booktabs."""
    parts = ["% needs \\usepackage{booktabs}"]
    for table in tables:
        rows = [["Loss", "Protocol", *map(latex, _headers(table))]]
        rows += _format_rows(table, latex, lambda text: f"\\textbf{{{text}}}", "${:+.2f}$", "--")
        head, *body = (" & ".join(row).replace("±", _PLUS_MINUS) + r" \\" for row in rows)
        text = latex(f"{_averaged(table)}.{_notes(table)}").replace("±", _PLUS_MINUS)
        caption = f"{latex(table.title)}: {ACCURACY_WORDS[table.judged_on]} (\\%), {text}"
        parts += [
            "", r"\begin{table}", r"\centering", rf"\caption{{{caption}}}",
            rf"\begin{{tabular}}{{ll{'r' * len(_headers(table))}}}", r"\toprule", head, r"\midrule",
            *body, r"\bottomrule", r"\end{tabular}", r"\end{table}",
        ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _notes(table: Table) -> str:
    """What a caption says after its first sentence."""
    overrides, sources = table.shared_overrides, "; ".join(table.sources)
    note = f" Settings that differ from the protocol: {overrides}." if overrides else ""
    note += _bold_note(table)
    if sources:
        note += f" In brackets the published number and ours minus it, from {sources}."
    note += f" {RULE}" if table.has_errors else ""
    return note + ("" if table.judged_on == "test" else f" {HELD_OUT_NOTE}")


def _averaged(table: Table) -> str:
    """What a number is, and which numbers have no deviation."""
    if all(len(cell.seeds) < 2 for row in table.rows for cell in row.cells):
        return f"of {table.num_seeds}"
    alone = "; a number without ± is of one seed" if table.has_single_seeds else ""
    return f"mean ± {table.spread} over {table.num_seeds}{alone}"


def _bold_note(table: Table) -> str:
    """Which numbers are in bold: of two losses the best, of more the best two."""
    columns = zip(*(row.cells for row in table.rows), strict=True)
    most = max((sum(cell.mean is not None for cell in column) for column in columns), default=0)
    best = {0: "", 1: "", 2: "The best of each column is"}.get(
        most, "The best two of each column are"
    )
    return f" {best} in bold." if best else ""


def _headers(table: Table) -> list[str]:
    return [*table.headers, *([_BEHIND] if table.says_how_sure else [])]


def _format_rows(
    table: Table,
    escape: Callable[[str], str],
    bold: Callable[[str], str],
    difference_format: str,
    missing: str,
) -> list[list[str]]:
    found = []
    for row in table.rows:
        protocol = table.protocol_of(row.protocol)
        protocol = ", ".join(filter(None, (protocol, table.notes(row)))) or missing
        cells = [
            _format_cell(cell, table.spread_of(cell), bold, difference_format, missing)
            for cell in row.cells
        ]
        if table.says_how_sure:
            cells.append(", ".join(filter(None, (row.behind, row.note))) or missing)
        found.append([escape(row.method), escape(protocol), *cells])
    return found


def _format_cell(
    cell: TableCell,
    spread: float | None,
    bold: Callable[[str], str],
    difference_format: str,
    missing: str,
) -> str:
    if cell.mean is None:
        ours = cell.missing or missing
    else:
        mean = f"{cell.mean:.2f}"
        ours = bold(mean) if cell.top_two else mean
        ours += f" ± {spread:.2f}" if spread is not None else ""
    if cell.published is None:
        return ours
    theirs = f"{cell.published.mean:.2f}"
    if cell.difference is not None:
        theirs += f", {difference_format.format(cell.difference)}"
    return f"{ours} ({theirs})"
