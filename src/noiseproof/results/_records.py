"""Results as values: read from the folders of runs and from bundles of many, whoever made them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from .._errors import UsageError
from .._files import write_atomically
from ..runs import ResolvedRun
from ._history import History, Row, accuracy_column, lacks_chosen, with_chosen_column
from ._legacy import upgraded_about, upgraded_columns, upgraded_settings
from ._store import ERROR, FORMAT, Folder

BUNDLE = ".jsonl"
MAX_PROBLEMS = 20  # that are listed; more are counted
_MAX_LENGTH = 500  # characters of a problem
_ENDED = "result.json"
# What hostile or damaged JSON can end in, beside what it holds being wrong.
_DAMAGE = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError)


@dataclass(frozen=True, eq=False)
class Record:
    """A run that has ended: its settings, its history, and where it was made."""

    run: ResolvedRun
    history: History | Sequence[Row] = field(repr=False)
    """a row for each epoch"""
    about: dict[str, Any] = field(repr=False)
    """number of parameters, noise rate, versions, machine, ..."""
    error: str | None = None
    """why it ended early"""
    source: Path = field(default=Path(), repr=False)
    """the folder or the bundle that it was read from"""

    def __post_init__(self) -> None:
        if not isinstance(self.history, History):
            object.__setattr__(self, "history", History.from_rows(self.history))

    @cached_property
    def hash(self) -> str:
        """That of the run."""
        return self.run.hash

    @property
    def accuracy(self) -> float:
        """On the clean test set, of the weights that the run ends with.

        They are those of the last epoch, or of the one that was chosen where the run chooses one.
        Without a test set it is that on what was held out, after the last epoch.
        """
        column = self.accuracy_column
        return math.nan if column is None else self.column(column)[-1]

    @property
    def accuracy_column(self) -> str | None:
        """The column of the history that its accuracy is in; None if nothing was evaluated."""
        assert isinstance(self.history, History)
        return accuracy_column(self.history.columns) if self.history else None

    def column(self, name: str) -> list[float]:
        """One number of every epoch."""
        assert isinstance(self.history, History)
        return self.history.column(name)


@dataclass(frozen=True)
class Reading:
    """What was found: each run once, and a line for everything that could not be read.

    Runs that could not be trained for the same reason share a line.
    """

    records: list[Record] = field(repr=False)
    problems: list[str]
    unended: int = 0
    """how many runs were begun and have not ended"""


def read(*places: Path | str, last_only: bool = False) -> Reading:
    """The results under these folders and in these bundles; of a run that is there twice the first.

    A folder may be that of one run, one that holds such folders, or one that holds bundles. What is
    damaged is reported and skipped, be it one line of a bundle, and so is a run that could not be
    trained; one that has not ended is counted.

    Args:
        places: the folders and bundles.
        last_only: read the last epoch of each history alone, which is several times faster.
    """
    found: dict[str, Record] = {}
    problems: list[str] = []
    failed: list[tuple[Path, str]] = []
    unended = 0
    for place in map(Path, places):
        if not place.exists():
            problems.append(f"{place} is not there")
        for source, read_source in _sources(place):
            try:
                for record in read_source(source, problems, last_only):
                    found.setdefault(record.hash, record)
            except _UnendedError:
                unended += 1
            except _UntrainedError as error:
                failed.append((source, str(error)))
            except (*_DAMAGE, OSError) as error:
                own = isinstance(error, UsageError)
                what = error if own else f"{source} is damaged ({type(error).__name__})"
                problems.append(str(what).split("\n")[0])
    return Reading(list(found.values()), _counted(problems + fold(failed)), unended)


def _counted(problems: list[str]) -> list[str]:
    """The first problems, and how many there are beside them."""
    short = [p if len(p) <= _MAX_LENGTH else f"{p[:_MAX_LENGTH]} ..." for p in problems]
    more = len(problems) - MAX_PROBLEMS
    return short if more <= 0 else [*short[:MAX_PROBLEMS], f"and {more} more problems"]


class _UntrainedError(Exception):
    """The folder says why its run could not be trained."""


class _UnendedError(Exception):
    """The run was begun and has not ended."""


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


_Read = Callable[[Path, list[str], bool], list["Record"]]


def _sources(place: Path) -> Iterator[tuple[Path, _Read]]:
    """Bundles and folders, which may be those of runs, and what reads each."""
    if place.is_file():
        yield place, _bundle
    elif any((place / name).exists() for name in ("run.json", _ENDED, ERROR)):
        yield place, _folder
    elif place.is_dir():
        with os.scandir(place) as entries:
            is_file = {entry.name: entry.is_file(follow_symlinks=False) for entry in entries}
        names = sorted(is_file)
        yield from ((place / name, _bundle) for name in names if name.endswith(BUNDLE))
        yield from ((place / name, _folder) for name in names if not is_file[name])


def _folder(path: Path, problems: list[str], last_only: bool) -> list[Record]:
    """The run of a folder, if there is one."""
    folder = Folder(path)
    ended = folder.read_json(_ENDED)
    if ended is None:
        if (failed := folder.read_json(ERROR)) is not None:
            raise _UntrainedError(failed.get("error"))
        if (path / "run.json").exists():
            raise _UnendedError
        return []
    described = folder.read_json("run.json")
    if described is None:
        raise UsageError(f"{path} lacks its run.json; delete the folder to run it again")
    error, epochs = ended.pop("error", None), ended.pop("epochs", None)
    if not isinstance(epochs, int):
        raise folder.damaged(_ENDED)
    if last_only and not lacks_chosen(ended):
        columns = {name: [value] for name, value in ended.items()} if epochs else {}
    else:
        columns = folder.read_columns()
        if epochs != len(next(iter(columns.values()), ())):
            raise folder.damaged("history.csv")
    described.pop("hash", None)
    try:
        return [_record(described, described.pop("settings"), columns, error, path)]
    except _DAMAGE as error:
        why = f" ({error})" if isinstance(error, UsageError) else ""
        raise UsageError(
            f"{path / 'run.json'} is damaged{why}; delete the folder {path} to run it again"
        ) from None


def write_bundle(path: Path | str, records: Iterable[Record]) -> None:
    """Many runs in one file, a line of JSON each, numbers rounded to five digits."""
    lines = []
    for record in sorted(records, key=lambda r: json.dumps(r.run.settings(), sort_keys=True)):
        assert isinstance(record.history, History)
        history = {n: [_rounded(v) for v in c] for n, c in record.history.columns.items()}
        content = {
            "format": FORMAT,
            "settings": record.run.settings(),
            "about": record.about,
            "error": record.error,
            "last": {name: values[-1] for name, values in history.items() if values},
            "history": history,  # last, so that a list can be made without reading it
        }
        lines.append(json.dumps(content, separators=(",", ":")))
    write_atomically(Path(path), "".join(f"{line}\n" for line in lines).encode())


def _rounded(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.5g}")
    return int(short) if short.is_integer() else short


def _bundle(path: Path, problems: list[str], last_only: bool) -> list[Record]:
    """The runs that can be read; what cannot is added to the problems."""
    records, damaged, text = [], [], True
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                records.append(_line(line, path, last_only))
            except _DAMAGE as error:
                why = f" ({error})" if isinstance(error, UsageError) else ""
                damaged.append(f"{path}, line {number}, is damaged{why}; fetch the file again")
                text = text and not isinstance(error, UnicodeDecodeError)
    if not records and not text:  # a picture or an archive, which has no lines to speak of
        damaged = [f"{path} is not text; give a file that noiseproof results --bundle wrote"]
    problems += damaged
    return records


_HISTORY = b',"history":'


def _line(line: bytes, path: Path, last_only: bool) -> Record:
    content = None
    if last_only and b'"last":{' in line and (at := line.rfind(_HISTORY)) > 0:
        content = json.loads(line[:at].decode() + "}")
    if content is not None and not lacks_chosen(content["last"]):
        columns = {name: [value] for name, value in content["last"].items()}
    else:
        content = json.loads(line.decode())
        columns = with_chosen_column(content["history"])
        if last_only:
            columns = {name: values[-1:] for name, values in columns.items()}
    about = content["about"] | {"format": content.get("format", 1)}
    return _record(about, content["settings"], columns, content["error"], path)


def _record(
    about: dict[str, Any],
    settings: dict[str, Any],
    columns: dict[str, list[Any]],
    error: str | None,
    path: Path,
) -> Record:
    """A record of either format, checked: whoever reads it may rely on its types."""
    found = about.pop("format", 1)
    if found == 1:
        settings, about = upgraded_settings(settings, about), upgraded_about(about)
        columns = upgraded_columns(columns)
    elif found != FORMAT:
        raise UsageError(f"it is of format {found!r}, which a newer version reads")
    about.pop("upgraded", None)
    run = ResolvedRun.from_settings(settings)
    history = History(columns)
    if history and accuracy_column(history.columns) is None and "train_loss" not in history.columns:
        raise UsageError("the history has no test_accuracy")
    if error is not None and not isinstance(error, str):
        raise UsageError(f"the error is {error!r:.60}, not a text")
    for name in ("versions", "machine", "overrides"):
        if not isinstance(about.get(name, {}), Mapping):
            raise UsageError(f"{name} is {about[name]!r:.60}, not a mapping")
    notes = about.get("notes", [])
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise UsageError(f"notes is {notes!r:.60}, no list of texts")
    pairs = about.get("disbelieved", [])
    if not isinstance(pairs, list) or not all(map(_is_pair, pairs)):
        raise UsageError(f"disbelieved is {pairs!r:.60}, no list of two classes and a number")
    left_out = about.get("left_out")
    if left_out is not None and not _is_left_out(left_out):
        raise UsageError(f"left_out is {left_out!r:.60}, no count, digest and first lines")
    noise_rate = about.get("noise_rate")
    if noise_rate is not None and not isinstance(noise_rate, int | float):
        raise UsageError(f"noise_rate is {noise_rate!r:.60}, not a number")
    return Record(run, history, about, error, path)


def _is_left_out(value: object) -> bool:
    """Whether it says how many samples could not be read, and which."""
    return (
        isinstance(value, Mapping)
        and type(value.get("count")) is int
        and isinstance(value.get("digest"), str)
        and isinstance(value.get("first"), list)
        and all(isinstance(line, str) for line in value["first"])
    )


def _is_pair(value: object) -> bool:
    """Whether it is a class as given, a class as predicted, and how many."""
    return (
        isinstance(value, list | tuple)
        and len(value) == 3
        and isinstance(value[0], str)
        and isinstance(value[1], str)
        and type(value[2]) is int
    )
