"""Reports of results: tables, figures and conclusions, written as a page, as text or as pictures.

Nothing here trains, and nothing imports torch.

    from noiseproof.report import make_report, write
    from noiseproof.results import read

    report = make_report(read("runs"))
    print(report.conclusions[0])
    write(report, "report.html")
"""

from ._compare import Comparison, comparisons
from ._compile import picture
from ._entries import Condition, Entry, condition_name
from ._figure import Figure
from ._page import html
from ._report import Report, Section, make_report
from ._study import Study, make_study
from ._tables import Table
from ._text import to_csv, to_latex, to_markdown
from ._write import FORMATS, SUFFIXES, Format, choose_format, write

__all__ = [
    "FORMATS",
    "SUFFIXES",
    "Comparison",
    "Condition",
    "Entry",
    "Figure",
    "Format",
    "Report",
    "Section",
    "Study",
    "Table",
    "choose_format",
    "comparisons",
    "condition_name",
    "html",
    "make_report",
    "make_study",
    "picture",
    "to_csv",
    "to_latex",
    "to_markdown",
    "write",
]
