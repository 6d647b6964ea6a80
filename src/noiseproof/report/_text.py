"""The tables as text: CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable

from ._tables import Square, Table

_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def to_csv(tables: list[Table]) -> str:
    """A line for each cell, numbers as they are; empty where there is none."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([
        "dataset", "noise", "rate", "method", "protocol", "unlike", "variation", "mean",
        "deviation", "seeds", "failed", "top_two", "published", "published_deviation", "difference",
        "source",
    ])  # fmt: skip
    for table in tables:
        for line in table.lines:
            for (noise, rate), s in zip(table.columns, line.squares, strict=True):
                paper = s.paper
                writer.writerow([
                    table.dataset, noise, f"{rate:g}", line.method, line.protocol, line.unlike,
                    line.variation, _number(s.mean), _number(s.deviation),
                    " ".join(map(str, s.seeds)), s.failed or "",
                    int(s.best) if s.mean is not None else "",
                    _number(paper.mean if paper else None), _number(paper.std if paper else None),
                    _number(s.difference), paper.source if paper else "",
                ])  # fmt: skip
    return out.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def to_markdown(tables: list[Table]) -> str:
    """A pipe table each, the published figure and the difference in brackets."""
    parts = []
    for table in tables:
        rows = [
            ["Loss", "Protocol", *table.heads],
            ["---", "---", *("---:" for _ in table.heads)],
            *_rows(table, _plain, lambda text: f"**{text}**", "{:+.2f}", "-"),
        ]
        lines = [f"| {' | '.join(row)} |" for row in rows]
        sources = f"In brackets: {'; '.join(table.sources)}.\n" if table.sources else ""
        about = f"Test accuracy in percent, mean ± deviation over {table.seeds}."
        about = f"{about}{_plain(_unlike(table))} {sources}".strip()
        parts.append(f"### {table.title}\n\n{about}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def to_latex(tables: list[Table]) -> str:
    """A table environment each; it needs the package booktabs."""
    parts = ["% needs \\usepackage{booktabs}"]
    for table in tables:
        rows = [["Loss", "Protocol", *map(_tex, table.heads)]]
        rows += _rows(table, _tex, lambda text: f"\\textbf{{{text}}}", "${:+.2f}$", "--")
        head, *body = (" & ".join(row).replace("±", "$\\pm$") + r" \\" for row in rows)
        sources = f" In brackets: {'; '.join(table.sources)}." if table.sources else ""
        more = _tex(_unlike(table) + sources)
        about = f"{table.title}: test accuracy (\\%), mean and deviation over {table.seeds}."
        parts += [
            "", r"\begin{table}", r"\centering", rf"\caption{{{about}{more}}}",
            rf"\begin{{tabular}}{{ll{'r' * len(table.heads)}}}", r"\toprule", head, r"\midrule",
            *body, r"\bottomrule", r"\end{tabular}", r"\end{table}",
        ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _unlike(table: Table) -> str:
    return f" Settings unlike the protocol's: {table.unlike}." if table.unlike else ""


def _rows(
    table: Table, escape: Callable[[str], str], bold: Callable[[str], str], apart: str, missing: str
) -> list[list[str]]:
    found = []
    for line in table.lines:
        protocol = ", ".join(filter(None, (line.protocol, table.settings(line)))) or missing
        squares = [_square(s, bold, apart, missing) for s in line.squares]
        found.append([escape(line.method), escape(protocol), *squares])
    return found


def _square(s: Square, bold: Callable[[str], str], apart: str, missing: str) -> str:
    if s.mean is None:
        ours = "failed" if s.failed else missing
    else:
        mean = f"{s.mean:.2f}"
        ours = bold(mean) if s.best else mean
        ours += f" ± {s.deviation:.2f}" if s.deviation is not None else ""
    if s.paper is None:
        return ours
    difference = f", {apart.format(s.difference)}" if s.difference is not None else ""
    return f"{ours} ({s.paper.mean:.2f}{difference})"


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\|*_`<>\[\]])", r"\\\1", text)


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)
