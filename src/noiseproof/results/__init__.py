"""Results on disk: one folder a run, every file written atomically; and bundles of many runs.

And as values: `read` them, group them into the `cells` of a table, and compare those with what was
`published`.
"""

from ._cells import Cell, cells
from ._export import has_setting, select, table, write_csv, write_parquet
from ._published import Published, published
from ._records import Reading, Record, fold, read, write_bundle
from ._store import ERROR, FORMAT, Folder, write_atomically
from ._upgrade import outdated, upgrade

__all__ = [
    "ERROR",
    "FORMAT",
    "Cell",
    "Folder",
    "Published",
    "Reading",
    "Record",
    "cells",
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
