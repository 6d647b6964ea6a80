"""A run as the command that trains it."""

from __future__ import annotations

import dataclasses
import shlex

from ..runs import Run

_FLAGS = {"imports": "import"}


def command_of(run: Run, command: str = "train") -> str:
    """The command line of a run: what differs from the defaults.

    >>> command_of(Run(dataset="csv:a b.csv", loss="nce + 0.1*rce", flip=False))
    "noiseproof train --dataset 'csv:a b.csv' --loss 'nce + 0.1*rce' --flip False"
    """
    words = ["noiseproof", command]
    for field in dataclasses.fields(Run):
        value = getattr(run, field.name)
        if value == field.default and field.name != "dataset":
            continue
        flag = "--" + _FLAGS.get(field.name, field.name).replace("_", "-")
        if isinstance(value, tuple):
            words += [flag, *value]
        elif field.name == "skip_unreadable":
            words.append(flag)
        else:
            words += [flag, _number(value) if isinstance(value, float) else str(value)]
    return shlex.join(words)


def _number(value: float) -> str:
    """As short as it can be said without being another number, which would be another run."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
