"""The device of a command, asked for before anything else is done."""

from __future__ import annotations


def check_device(name: str) -> None:
    """Refuse one that is not there; what is always there needs no torch, which takes seconds.

    >>> check_device("cpu")
    """
    if name not in ("auto", "cpu"):
        from noiseproof.train._setup import device_of

        device_of(name)
