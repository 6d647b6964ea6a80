"""Data of one's own: where it lies and what is in it, read without torch.

A source is a text such as ``csv:reviews.csv`` or ``folder:photos``, with the columns to read. What
is in it decides how it is trained on, so it is read once, when a run is resolved, and kept.

>>> is_source("csv:reviews.csv"), is_source("cifar10")
(True, False)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ._source import FORMS, Source, is_source, meant_source, source_named

if TYPE_CHECKING:
    from ._content import Content, Part
    from ._read import read
    from ._tables import Problems, left_out_note

Kind = Literal["image", "text", "features", "tokens"]
"""What is classified."""

__all__ = [
    "FORMS",
    "Content",
    "Kind",
    "Part",
    "Problems",
    "Source",
    "is_source",
    "left_out_note",
    "meant_source",
    "read",
    "source_named",
]


def __getattr__(name: str) -> Any:  # a run of a known data set does not wait for NumPy
    if name in __all__:
        from . import _content, _read, _tables

        homes = {"read": _read, "Problems": _tables, "left_out_note": _tables}
        return getattr(homes.get(name, _content), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
