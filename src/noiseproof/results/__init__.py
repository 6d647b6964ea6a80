"""Results on disk: one folder a run, named by the run's hash, every file written atomically.

And as values: `read` them, group them into the `cells` of a table, and hold those against what was
`published`.
"""

from ._cells import Cell, cell_of, cells
from ._export import select, setting_of, table, write_csv, write_parquet
from ._methods import METHODS, method_of, rank_of
from ._published import Published, published
from ._records import Reading, Record, fold, hash_of, read, write_bundle
from ._store import ERROR, Folder, write_atomically

__all__ = [
    "ERROR",
    "METHODS",
    "Cell",
    "Folder",
    "Published",
    "Reading",
    "Record",
    "cell_of",
    "cells",
    "fold",
    "hash_of",
    "method_of",
    "published",
    "rank_of",
    "read",
    "select",
    "setting_of",
    "table",
    "write_atomically",
    "write_bundle",
    "write_csv",
    "write_parquet",
]
