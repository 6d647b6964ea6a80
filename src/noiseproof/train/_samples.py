"""What is predicted: samples out of files, as a model takes them, a part at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import UsageError
from ..data._store import ImageStore
from ..data._store import Part as Decoding
from ..sources import Problems, Table, images_in, numeric_columns, read_inputs, read_table
from ._model import Inputs, Model

_TABLES = (".csv", ".tsv", ".gz", ".parquet")
_ARRAYS = (".npz", ".npy")
_IMAGES = 128  # that are decoded and predicted together
_ROWS = 2048


@dataclass(frozen=True, eq=False)
class Part:
    """Some samples.

    Attributes:
        places: of each, its file and its number in it.
        inputs: as a model takes them.
    """

    places: list[tuple[Path, int]]
    inputs: Any


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples whose number is known, read as one goes through the parts."""

    count: int
    parts: Iterable[Part]


def read_samples(files: Iterable[Path], inputs: Inputs, problems: Problems) -> Iterator[Samples]:
    """What is in files: all images that follow each other together, each other file by itself.

    Args:
        files: images, folders of them, tables, and arrays.
        inputs: what the model was trained on.
        problems: where samples are reported that cannot be read.

    Raises:
        UsageError: a file is not there, or not of this kind.
    """
    found = list(_without_folders(files))
    for form, group in groupby(found, _form):
        if form == "image":
            yield _images(list(group), inputs, problems)
            continue
        for file in group:
            read = _table if form == "table" else _arrays
            yield read(file, inputs, problems)


def probabilities(model: Model, samples: Samples) -> Iterator[tuple[Part, NDArray[np.float32]]]:
    """Each part with the probabilities of its samples."""
    for part in samples.parts:
        try:
            yield part, np.asarray(model.predict_proba(part.inputs))
        except UsageError as error:
            raise UsageError(f"{part.places[0][0]}: {error}") from None


def _form(file: Path) -> str:
    suffix = file.suffix.lower()
    return "table" if suffix in _TABLES else "arrays" if suffix in _ARRAYS else "image"


def _without_folders(files: Iterable[Path]) -> Iterator[Path]:
    """The files, and in place of a folder the images in it."""
    for file in files:
        if not file.exists():
            raise UsageError(f"there is no file {file}")
        if not file.is_dir():
            yield file
            continue
        images = images_in(file)
        if not images:
            raise UsageError(f"{file} is a folder without images")
        yield from images


def _images(files: Sequence[Path], inputs: Inputs, problems: Problems) -> Samples:
    if inputs.kind != "image":
        raise UsageError(f"{files[0]} is no table, and the run was trained on {inputs.kind}")
    named = [(file, (file, 0), str(file)) for file in files]
    return Samples(len(files), _decoded(named, inputs, problems))


_Image = tuple[Path, tuple[Path, int], str]  # its file, its place, and what a message calls it


def _decoded(images: Sequence[_Image], inputs: Inputs, problems: Problems) -> Iterator[Part]:
    """Images in parts; the next part is decoded while one is predicted."""
    store = ImageStore([file for file, *_ in images], inputs.stored or inputs.shape)
    started: deque[Decoding] = deque()
    for index in np.split(np.arange(len(images)), range(_IMAGES, len(images), _IMAGES)):
        started.append(store.begin(index))
        if len(started) > 1:
            yield from _part(images, started.popleft(), problems)
    while started:
        yield from _part(images, started.popleft(), problems)


def _part(images: Sequence[_Image], decoding: Decoding, problems: Problems) -> Iterator[Part]:
    bad = dict(decoding.wait())
    for at, problem in sorted(bad.items()):
        problems.add(images[at][2], problem)
    good = [row for row, at in enumerate(decoding.index) if int(at) not in bad]
    if good:
        yield Part([images[decoding.index[row]][1] for row in good], decoding.images[good])


def _table(file: Path, inputs: Inputs, problems: Problems) -> Samples:
    """The columns of a table that the run was trained on."""
    if not inputs.columns:
        raise UsageError(
            f"{file} is a table, and the run was trained on none; save {inputs.kind} as npz"
            if inputs.kind != "image"
            else f"{file} is a table, and the run was trained on none; give images or their folder"
        )
    form = "parquet" if file.suffix.lower() == ".parquet" else "csv"
    table = read_table(file, form, file.read_bytes(), problems, fewest=1)
    for name in inputs.columns:
        table.column(name, "")
    if inputs.kind == "features":
        matrix = numeric_columns(table, inputs.columns, problems, required=True)
        rows = np.flatnonzero(np.isfinite(matrix).all(1)).tolist()
        return Samples(len(rows), _parts(file, rows, matrix))
    name = inputs.columns[0]
    rows = list(_filled(table, name, problems))
    values = table.columns[name]
    if inputs.kind == "text":
        return Samples(len(rows), _parts(file, rows, [str(value) for value in values]))
    images = [
        (file.parent / str(values[row]), (file, row), f"{table.place(row)} ({values[row]})")
        for row in rows
    ]
    return Samples(len(rows), _decoded(images, inputs, problems))


def _filled(table: Table, name: str, problems: Problems) -> Iterator[int]:
    for row, value in enumerate(table.columns[name]):
        if value is None or not str(value).strip():
            problems.add(table.place(row), f"column {name!r} is empty")
        else:
            yield row


def _parts(file: Path, rows: Sequence[int], values: Any) -> Iterator[Part]:
    for at in range(0, len(rows), _ROWS):
        some = rows[at : at + _ROWS]
        chosen = [values[row] for row in some] if isinstance(values, list) else values[some]
        yield Part([(file, row) for row in some], chosen)


def _arrays(file: Path, inputs: Inputs, problems: Problems) -> Samples:
    values = read_inputs(file, file.read_bytes())
    rows = list(range(len(values)))
    if inputs.kind == "features" and values.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(1))
        for row in bad.tolist():
            problems.add(f"{file}, row {row}", "it holds a NaN or an infinity")
        rows = np.setdiff1d(rows, bad).tolist()
    return Samples(len(rows), _parts(file, rows, values))
