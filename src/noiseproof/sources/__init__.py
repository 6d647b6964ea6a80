"""Data of one's own: where it lies and what is in it, read without torch.

A source is a text such as ``csv:reviews.csv`` or ``folder:photos``, with the columns to read. What
is in it decides how it is trained on, so it is read once, when a run is resolved, and kept.

>>> is_source("csv:reviews.csv"), is_source("cifar10")
(True, False)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ._source import FORMS, Source, is_source, meant_source, source_at, source_named

if TYPE_CHECKING:
    from ._content import Content, Part
    from ._folders import images_in
    from ._layout import layout_of
    from ._npz import read_inputs
    from ._read import read, read_labels
    from ._tables import Problems, Table, left_out_note, numeric_columns, read_table

Kind = Literal["image", "text", "features", "tokens"]
"""What is classified."""

__all__ = [
    "FORMS",
    "Content",
    "Kind",
    "Part",
    "Problems",
    "Source",
    "Table",
    "images_in",
    "is_source",
    "layout_of",
    "left_out_note",
    "meant_source",
    "numeric_columns",
    "read",
    "read_inputs",
    "read_labels",
    "read_table",
    "source_at",
    "source_named",
]


def __getattr__(name: str) -> Any:  # a run of a known data set does not wait for NumPy
    if name in __all__:
        from . import _content, _folders, _layout, _npz, _read, _tables

        homes = {
            "Problems": _tables, "Table": _tables, "images_in": _folders,
            "layout_of": _layout, "left_out_note": _tables, "numeric_columns": _tables,
            "read": _read, "read_inputs": _npz, "read_labels": _read, "read_table": _tables,
        }  # fmt: skip
        return getattr(homes.get(name, _content), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
