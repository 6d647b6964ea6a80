"""Tables and plots from results alone; nothing here trains, and nothing imports torch."""

from ._compare import Comparison, comparisons
from ._compile import picture
from ._conclude import conclusions
from ._page import figures, html
from ._study import Study, study
from ._tables import Table, tables
from ._text import to_csv, to_latex, to_markdown
from ._write import FORMATS, SUFFIXES, Format, write

__all__ = [
    "FORMATS",
    "SUFFIXES",
    "Comparison",
    "Format",
    "Study",
    "Table",
    "comparisons",
    "conclusions",
    "figures",
    "html",
    "picture",
    "study",
    "tables",
    "to_csv",
    "to_latex",
    "to_markdown",
    "write",
]
