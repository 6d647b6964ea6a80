"""Text that leaves the package: one function for each form of output.

Names of data sets, losses and machines are whatever a bundle says. The page escapes them by its
template engine, and charts by :func:`noiseproof._vega.to_json`.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

_UNPRINTABLE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "[": "{[}", "]": "{]}", "*": "{*}",  # at the start of a row they would be read by the last \\
}  # fmt: skip
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def printable(text: str) -> str:
    r"""A text for a terminal or a line of a file: without control characters.

    Each is written as Python writes it, so that it is seen and does nothing.

    >>> print(printable("a\x1b[31mb\x00\n"))
    a\x1b[31mb\x00\n
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) in _UNPRINTABLE else c
        for c in text
    )


def markdown(text: str) -> str:
    r"""A text inside Markdown, in a heading, a sentence or a cell of a table.

    >>> print(markdown("a_b <script>"))
    a\_b \<script\>
    """
    return re.sub(r"([\\`*_{}\[\]<>#|~$&])", r"\\\1", printable(text))


def latex(text: str) -> str:
    r"""A text inside LaTeX.

    >>> print(latex("5 % of a_b"))
    5 \% of a\_b
    """
    return "".join(_LATEX.get(letter, letter) for letter in printable(text))


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV that a spreadsheet shows as it stands.

    A text that a spreadsheet would compute, because it begins as a formula does, gets an
    apostrophe before it.

    >>> csv_text([["loss", "difference"], ["=1+1", "-0.5"]])
    "loss,difference\\n'=1+1,-0.5\\n"
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(_csv_field, row) for row in rows)
    return out.getvalue()


def _csv_field(value: Any) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    text = printable(str(value))
    is_formula = text.startswith(("=", "+", "-", "@")) and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text
