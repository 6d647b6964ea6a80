"""Results as values: read from the folders of runs and from bundles of many, whoever made them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._errors import UsageError
from ..runs import ResolvedRun
from ._legacy import upgraded_about, upgraded_columns, upgraded_settings
from ._store import ERROR, FORMAT, Folder, write_atomically

Row = dict[str, float]
BUNDLE = ".jsonl"
_ENDED = "result.json"


@dataclass(frozen=True, eq=False)
class Record:
    """A run that has ended: its settings, its history, and where it was made."""

    run: ResolvedRun
    history: list[Row]
    """a row an epoch"""
    about: dict[str, Any]
    """number of parameters, noise rate, versions, machine, ..."""
    error: str | None = None
    """why it ended early"""
    source: Path = field(default=Path())
    """the folder or the bundle that it was read from"""

    @property
    def hash(self) -> str:
        """That of the run."""
        return self.run.hash

    @property
    def accuracy(self) -> float:
        """On the clean test set after the last epoch."""
        return self.history[-1]["test_accuracy"] if self.history else math.nan

    def column(self, name: str) -> list[float]:
        """One number of every epoch."""
        return [row.get(name, math.nan) for row in self.history]


@dataclass(frozen=True)
class Reading:
    """What was found: each run once, and a line for everything that could not be read.

    Runs that could not be trained for the same reason share a line.
    """

    records: list[Record]
    problems: list[str]


def read(*places: Path | str) -> Reading:
    """The results under these folders and in these bundles; of a run that is there twice the first.

    A folder may be that of one run, one that holds such folders, or one that holds bundles. What is
    damaged is reported and skipped, be it one line of a bundle, and so is a run that could not be
    trained; one that has not ended is left out.
    """
    found: dict[str, Record] = {}
    problems: list[str] = []
    failed: list[tuple[Path, str]] = []
    for place in map(Path, places):
        if not place.exists():
            problems.append(f"{place} is not there")
        for source in _sources(place):
            try:
                for record in _bundle(source, problems) if source.is_file() else [_folder(source)]:
                    found.setdefault(record.hash, record)
            except _UntrainedError as error:
                failed.append((source, str(error)))
            except (ValueError, KeyError, TypeError, OSError) as error:
                what = error if isinstance(error, ValueError) else f"{source} is damaged ({error})"
                problems.append(str(what).split("\n")[0])
    return Reading(list(found.values()), problems + fold(failed))


class _UntrainedError(Exception):
    """The folder says why its run could not be trained."""


def fold(failed: Iterable[tuple[object, str]], how: str = "could not be trained") -> list[str]:
    """A line for each reason why runs failed, however many share it: given are run and reason.

    >>> fold([("runs/a", "no such device"), ("runs/b", "no such device"), ("runs/c", "no data")])
    ... # doctest: +NORMALIZE_WHITESPACE
    ['2 runs could not be trained: no such device (runs/a, and 1 more)',
     'runs/c could not be trained: no data']
    """
    reasons: dict[str, list[object]] = {}
    for run, why in failed:
        reasons.setdefault(why.split("\n")[0], []).append(run)
    return [
        f"{runs[0]} {how}: {why}"
        if len(runs) == 1
        else f"{len(runs)} runs {how}: {why} ({runs[0]}, and {len(runs) - 1} more)"
        for why, runs in reasons.items()
    ]


def _sources(place: Path) -> Iterator[Path]:
    if place.is_file() or any((place / name).exists() for name in (_ENDED, ERROR)):
        yield place
    elif place.is_dir():
        yield from sorted(place.glob(f"*{BUNDLE}"))
        yield from sorted({p.parent for name in (_ENDED, ERROR) for p in place.glob(f"*/{name}")})


def _folder(path: Path) -> Record:
    folder = Folder(path)
    described, ended = folder.read_json("run.json"), folder.read_json(_ENDED)
    if ended is None and (failed := folder.read_json(ERROR)) is not None:
        raise _UntrainedError(failed.get("error"))
    if described is None or ended is None:
        raise UsageError(f"{path} lacks its run.json; delete the folder to run it again")
    history = folder.read_history()
    if len(history) != ended["epochs"]:
        raise folder.damaged("history.csv")
    described.pop("hash", None)
    columns = {name: [row[name] for row in history] for name in (history[0] if history else ())}
    return _record(described, described.pop("settings"), columns, ended["error"], path)


def write_bundle(path: Path | str, records: Iterable[Record]) -> None:
    """Many runs in one file, a line of JSON each, numbers rounded to five digits."""
    lines = []
    for record in sorted(records, key=lambda r: json.dumps(r.run.settings(), sort_keys=True)):
        columns = list(record.history[0]) if record.history else []
        history = {name: [_rounded(v) for v in record.column(name)] for name in columns}
        content = {
            "format": FORMAT,
            "settings": record.run.settings(),
            "about": record.about,
            "error": record.error,
            "history": history,
        }
        lines.append(json.dumps(content, separators=(",", ":")))
    write_atomically(Path(path), "".join(f"{line}\n" for line in lines).encode())


def _rounded(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.5g}")
    return int(short) if short.is_integer() else short


def _bundle(path: Path, problems: list[str]) -> list[Record]:
    """The runs that can be read; what cannot is added to the problems."""
    records, damaged, text = [], [], True
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            content = json.loads(line.decode())
            about = content["about"] | {"format": content.get("format", 1)}
            columns, error = content["history"], content["error"]
            records.append(_record(about, content["settings"], columns, error, path))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            why = f" ({error})" if isinstance(error, UsageError) else ""
            damaged.append(f"{path}, line {number}, is damaged{why}; fetch the file again")
            text = text and not isinstance(error, UnicodeDecodeError)
    if not records and not text:  # a picture or an archive, which has no lines to speak of
        damaged = [f"{path} is not text; give a file that noiseproof results --bundle wrote"]
    problems += damaged
    return records


def _record(
    about: dict[str, Any],
    settings: dict[str, Any],
    columns: dict[str, list[Any]],
    error: str | None,
    path: Path,
) -> Record:
    """A record of either format, checked."""
    if about.pop("format", 1) == 1:
        settings, about = upgraded_settings(settings, about), upgraded_about(about)
        columns = upgraded_columns(columns)
    run = ResolvedRun.from_settings(settings)
    rows = [
        {k: math.nan if v is None else float(v) for k, v in zip(columns, row, strict=True)}
        for row in zip(*columns.values(), strict=True)
    ]
    return Record(run, rows, about, error, path)
