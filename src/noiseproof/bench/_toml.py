"""A grid of the user's own, from a short TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._errors import UsageError
from .._hints import nearest
from ..runs import CHOICES, Run
from ._bench import FIELDS, LISTS, Bench, grid, unique, values_of

_WORDS = ("title", "shows", "include", "exclude")


def read_bench(path: Path | str) -> Bench:
    """A bench from a file: every setting of a run as one value, or as a list of values to combine.

    Tables ``[[include]]`` add runs: they take what they do not say from above. Tables
    ``[[exclude]]`` leave out the runs that have all the values they name::

        title = "Which loss for my noise?"
        dataset = "cifar10"
        noise = "symmetric"
        rate = [0.2, 0.4]
        loss = ["ce", "nce+rce", "10*nce + 0.1*mae"]
        seed = [0, 1, 2]
        epochs = 30

        [[include]]
        loss = "jal-ce"
        rate = 0.8

        [[exclude]]
        loss = "ce"
        rate = 0.2

    ``import = ["mylosses"]`` names modules of the user's own, whose registered losses the texts may
    then use; it is a list of its own, as ``freeze`` is, and no values to combine.
    """
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # of the syntax, the encoding, or a number of thousands of digits
        raise UsageError(f"{path} is not TOML: {str(error)[:200]}") from None
    except RecursionError:
        raise UsageError(f"{path} is nested too deeply for a grid") from None
    axes = _renamed({k: v for k, v in content.items() if k not in _WORDS})
    include, exclude = (
        [_renamed(table) for table in _tables(content, word, path)]
        for word in ("include", "exclude")
    )
    for table in (axes, *include, *exclude):
        for name in table:
            if name not in FIELDS:
                raise UsageError(f"{path}: {_unknown(name)}")
    for table in (axes, *include):
        for name, value in table.items():
            if value == [] and name not in LISTS:
                raise UsageError(f"{path}: {name} has no value")
    try:
        runs = grid(**axes)
        for table in include:
            runs += grid(**axes | table)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{path}: {str(error)[:500]}") from None
    for table in exclude:
        if not any(_has(run, table) for run in runs):
            what = ", ".join(f"{name} = {value!r}" for name, value in table.items())
            raise UsageError(f"{path}: no run has what [[exclude]] leaves out, {what}")
    kept = [run for run in runs if not any(_has(run, table) for table in exclude)]
    if not kept:
        raise UsageError(f"{path}: [[exclude]] leaves no run")
    title, shows = (str(content.get(word, "")) for word in ("title", "shows"))
    return Bench(path.stem, title or path.stem, shows, unique(kept))


def _tables(content: Mapping[str, Any], word: str, path: Path) -> list[dict[str, Any]]:
    tables = content.get(word, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{path}: {word} is a list of tables; write [[{word}]]")
    return tables


def _renamed(table: Mapping[str, Any]) -> dict[str, Any]:
    """What a file calls ``import``, a word of Python's, is the setting ``imports``."""
    return {"imports" if name == "import" else name: value for name, value in table.items()}


def _unknown(name: str) -> str:
    hint = nearest(name, (*FIELDS, *_WORDS))
    return f"unknown setting {name!r}{hint}; the settings of a run are {', '.join(FIELDS)}"


def _has(run: Run, table: Mapping[str, Any]) -> bool:
    """Whether a run has all the values of a table, in whatever way they are written."""
    resolved = run.resolve()

    def matches(name: str, value: Any) -> bool:
        if name == "loss":
            return isinstance(value, str) and resolved.means(value)
        if name in CHOICES and isinstance(value, str):
            value = value.lower()  # as a run takes it
        return bool(value in (getattr(resolved, name), getattr(run, name)))

    return all(
        any(matches(name, value) for value in values_of(name, wanted))
        for name, wanted in table.items()
    )
