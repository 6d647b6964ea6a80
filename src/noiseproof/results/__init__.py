"""Results on disk: one folder a run, every file written atomically; and bundles of many runs.

And as values: `read` them, group them into the `cells` of a table, and compare those with what was
`published`.
"""

from .._files import write_atomically
from ._cells import Cell, cells
from ._claim import claim
from ._export import has_setting, select, table, write_csv, write_parquet
from ._history import History
from ._published import Published, published
from ._records import MAX_PROBLEMS, Reading, Record, fold, read, write_bundle
from ._store import ERROR, FORMAT, Folder
from ._upgrade import clear_failed, outdated, upgrade

__all__ = [
    "ERROR",
    "FORMAT",
    "MAX_PROBLEMS",
    "Cell",
    "Folder",
    "History",
    "Published",
    "Reading",
    "Record",
    "cells",
    "claim",
    "clear_failed",
    "fold",
    "has_setting",
    "outdated",
    "published",
    "read",
    "select",
    "table",
    "upgrade",
    "write_atomically",
    "write_bundle",
    "write_csv",
    "write_parquet",
]
