"""Numbers as one would say them."""

from __future__ import annotations

import math


def count(number: int, noun: str) -> str:
    """A number of things.

    >>> count(1, "epoch"), count(3, "run"), count(1200, "label")
    ('1 epoch', '3 runs', '1,200 labels')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(seconds: float) -> str:
    """So long.

    >>> duration(42), duration(600), duration(40000)
    ('about 42 s', 'about 10 min', 'about 11.1 h')
    """
    if seconds < 100:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 6000 else f"about {seconds / 3600:.1f} h"


def size(number: int) -> str:
    """So many bytes.

    >>> size(300), size(42_000), size(1_234_567)
    ('1 kB', '42 kB', '1.2 MB')
    """
    return f"{math.ceil(number / 1e3)} kB" if number < 1e5 else f"{number / 1e6:.1f} MB"


def unended(runs: int) -> str:
    """What is said of runs that were begun and are left out.

    >>> unended(1)
    'left out: 1 run that has not ended; the command that began it goes on with it'
    """
    have, they = ("has", "it") if runs == 1 else ("have", "them")
    return (
        f"left out: {count(runs, 'run')} that {have} not ended; the command that began {they} goes "
        f"on with {they}"
    )
