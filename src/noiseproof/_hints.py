"""A guess at what a misspelt name was meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """`` (did you mean 'nce'?)`` where one of the known names is close, else nothing.

    >>> nearest("resnet43", ["cnn8", "resnet34"])
    " (did you mean 'resnet34'?)"
    """
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""
