"""Results on disk: one folder a run, every file written atomically; and bundles of many runs.

And as values: `read` them, group them into the `cells` of a table, and compare those with what was
`published`.
"""

from .._files import write_atomically
from ._cells import OWN, Cell, cells, following_settings, missing, protocol_settings
from ._claim import claim
from ._examples import MAX_EXAMPLES, MAX_NAME, Example, read_examples, write_examples
from ._export import has_setting, select, table, write_csv, write_parquet
from ._held_out import HeldOut, read_held_out, write_held_out
from ._history import (
    CHOSEN_ACCURACY,
    CHOSEN_EPOCH,
    HELD_OUT_ACCURACY,
    TEST_ACCURACY,
    History,
    accuracy_column,
    with_chosen,
)
from ._published import Published, published
from ._records import MAX_PROBLEMS, Reading, Record, fold, read, write_bundle
from ._store import ERROR, FORMAT, Folder
from ._upgrade import clear_failed, outdated, upgrade

__all__ = [
    "CHOSEN_ACCURACY",
    "CHOSEN_EPOCH",
    "ERROR",
    "FORMAT",
    "HELD_OUT_ACCURACY",
    "MAX_EXAMPLES",
    "MAX_NAME",
    "MAX_PROBLEMS",
    "OWN",
    "TEST_ACCURACY",
    "Cell",
    "Example",
    "Folder",
    "HeldOut",
    "History",
    "Published",
    "Reading",
    "Record",
    "accuracy_column",
    "cells",
    "claim",
    "clear_failed",
    "fold",
    "following_settings",
    "has_setting",
    "missing",
    "outdated",
    "protocol_settings",
    "published",
    "read",
    "read_examples",
    "read_held_out",
    "select",
    "table",
    "upgrade",
    "with_chosen",
    "write_atomically",
    "write_bundle",
    "write_csv",
    "write_examples",
    "write_held_out",
    "write_parquet",
]
