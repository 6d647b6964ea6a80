"""Tables as text: CSV, Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Callable

from .._escape import csv_text, latex, markdown
from ._tables import Column, Table, TableCell, TableRow

_CSV_COLUMNS = (
    "dataset", "noise", "rate", "method", "protocol", "shared_overrides", "overrides",
    "mean_percent", "deviation_percent", "seeds", "failed", "top_two", "published_percent",
    "published_deviation_percent", "difference_points", "source",
)  # fmt: skip


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
    ]  # fmt: skip


def _format_number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def to_markdown(tables: list[Table]) -> str:
    """Pipe tables; in brackets the published number and the difference from it."""
    parts = []
    for table in tables:
        rows = [
            ["Loss", "Protocol", *map(markdown, table.headers)],
            ["---", "---", *("---:" for _ in table.headers)],
            *_format_rows(table, markdown, lambda text: f"**{text}**", "{:+.2f}", "-"),
        ]
        lines = [f"| {' | '.join(row)} |" for row in rows]
        caption = f"Test accuracy in percent, mean ± deviation over {table.num_seeds}."
        parts.append(
            f"### {markdown(table.title)}\n\n{caption}{markdown(_notes(table))}\n\n"
            + "\n".join(lines) + "\n"
        )  # fmt: skip
    return "\n".join(parts)


def to_latex(tables: list[Table]) -> str:
    """``table`` environments; they need the package booktabs."""
    parts = ["% needs \\usepackage{booktabs}"]
    for table in tables:
        rows = [["Loss", "Protocol", *map(latex, table.headers)]]
        rows += _format_rows(table, latex, lambda text: f"\\textbf{{{text}}}", "${:+.2f}$", "--")
        head, *body = (" & ".join(row).replace("±", "$\\pm$") + r" \\" for row in rows)
        caption = (
            f"{latex(table.title)}: test accuracy (\\%), mean and deviation over "
            f"{table.num_seeds}.{latex(_notes(table))}"
        )
        parts += [
            "", r"\begin{table}", r"\centering", rf"\caption{{{caption}}}",
            rf"\begin{{tabular}}{{ll{'r' * len(table.headers)}}}", r"\toprule", head, r"\midrule",
            *body, r"\bottomrule", r"\end{tabular}", r"\end{table}",
        ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _notes(table: Table) -> str:
    """What a caption says after its first sentence."""
    overrides, sources = table.shared_overrides, "; ".join(table.sources)
    note = f" Settings that differ from the protocol: {overrides}." if overrides else ""
    return note + (f" In brackets: {sources}." if sources else "")


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
        cells = [_format_cell(cell, bold, difference_format, missing) for cell in row.cells]
        found.append([escape(row.method), escape(protocol), *cells])
    return found


def _format_cell(
    cell: TableCell, bold: Callable[[str], str], difference_format: str, missing: str
) -> str:
    if cell.mean is None:
        ours = cell.missing or missing
    else:
        mean = f"{cell.mean:.2f}"
        ours = bold(mean) if cell.top_two else mean
        ours += f" ± {cell.deviation:.2f}" if cell.deviation is not None else ""
    if cell.published is None:
        return ours
    theirs = f"{cell.published.mean:.2f}"
    if cell.difference is not None:
        theirs += f", {difference_format.format(cell.difference)}"
    return f"{ours} ({theirs})"
