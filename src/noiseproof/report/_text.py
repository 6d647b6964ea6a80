"""Tables as text: CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable

from ._tables import Table, TableCell

_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def to_csv(tables: list[Table]) -> str:
    """A row for each cell of the tables; fields without a number are empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([
        "dataset", "noise", "rate", "method", "protocol", "shared_overrides", "overrides", "mean",
        "deviation", "seeds", "failed", "top_two", "published", "published_deviation", "difference",
        "source",
    ])  # fmt: skip
    for table in tables:
        for row in table.rows:
            for column, cell in zip(table.columns, row.cells, strict=True):
                p = cell.published
                writer.writerow([
                    table.dataset, column.noise, f"{column.rate:g}", row.method, row.protocol,
                    row.shared_overrides, row.overrides, _format_number(cell.mean),
                    _format_number(cell.deviation), " ".join(map(str, cell.seeds)),
                    cell.num_failed or "", int(cell.top_two) if cell.mean is not None else "",
                    _format_number(p.mean if p else None), _format_number(p.std if p else None),
                    _format_number(cell.difference), p.source if p else "",
                ])  # fmt: skip
    return out.getvalue()


def _format_number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def to_markdown(tables: list[Table]) -> str:
    """Pipe tables; in brackets the published number and the difference from it."""
    parts = []
    for table in tables:
        rows = [
            ["Loss", "Protocol", *table.headers],
            ["---", "---", *("---:" for _ in table.headers)],
            *_format_rows(table, _escape_markdown, lambda text: f"**{text}**", "{:+.2f}", "-"),
        ]
        lines = [f"| {' | '.join(row)} |" for row in rows]
        sources = f"In brackets: {'; '.join(table.sources)}.\n" if table.sources else ""
        caption = f"Test accuracy in percent, mean ± deviation over {table.num_seeds}."
        caption = f"{caption}{_escape_markdown(_overrides_sentence(table))} {sources}".strip()
        parts.append(f"### {table.title}\n\n{caption}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def to_latex(tables: list[Table]) -> str:
    """``table`` environments; they need the package booktabs."""
    parts = ["% needs \\usepackage{booktabs}"]
    for table in tables:
        rows = [["Loss", "Protocol", *map(_escape_latex, table.headers)]]
        rows += _format_rows(
            table, _escape_latex, lambda text: f"\\textbf{{{text}}}", "${:+.2f}$", "--"
        )
        head, *body = (" & ".join(row).replace("±", "$\\pm$") + r" \\" for row in rows)
        sources = f" In brackets: {'; '.join(table.sources)}." if table.sources else ""
        notes = _escape_latex(_overrides_sentence(table) + sources)
        caption = f"{table.title}: test accuracy (\\%), mean and deviation over {table.num_seeds}."
        parts += [
            "", r"\begin{table}", r"\centering", rf"\caption{{{caption}{notes}}}",
            rf"\begin{{tabular}}{{ll{'r' * len(table.headers)}}}", r"\toprule", head, r"\midrule",
            *body, r"\bottomrule", r"\end{tabular}", r"\end{table}",
        ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _overrides_sentence(table: Table) -> str:
    if not table.shared_overrides:
        return ""
    return f" Settings that differ from the protocol: {table.shared_overrides}."


def _format_rows(
    table: Table,
    escape: Callable[[str], str],
    bold: Callable[[str], str],
    difference_format: str,
    missing: str,
) -> list[list[str]]:
    found = []
    for row in table.rows:
        protocol = ", ".join(filter(None, (row.protocol, table.notes(row)))) or missing
        cells = [_format_cell(cell, bold, difference_format, missing) for cell in row.cells]
        found.append([escape(row.method), escape(protocol), *cells])
    return found


def _format_cell(
    cell: TableCell, bold: Callable[[str], str], difference_format: str, missing: str
) -> str:
    if cell.mean is None:
        ours = "failed" if cell.num_failed else missing
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


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\|*_`<>\[\]])", r"\\\1", text)


def _escape_latex(text: str) -> str:
    return "".join(_LATEX_ESCAPES.get(letter, letter) for letter in text)
