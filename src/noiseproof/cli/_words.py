"""Numbers as one would say them."""

from __future__ import annotations

import math


def count(number: int, noun: str) -> str:
    """A number of things.

    >>> count(1, "epoch"), count(3, "run"), count(1200, "label")
    ('1 epoch', '3 runs', '1,200 labels')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(number: int) -> str:
    """So many bytes.

    >>> size(300), size(42_000), size(1_234_567)
    ('1 kB', '42 kB', '1.2 MB')
    """
    return f"{math.ceil(number / 1e3)} kB" if number < 1e5 else f"{number / 1e6:.1f} MB"
