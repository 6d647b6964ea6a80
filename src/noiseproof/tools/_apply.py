"""Corrections that a person decided on, applied to a copy of the data."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import UsageError, require
from .._escape import printable
from .._files import write_atomically
from ..data import resident
from ..runs import Run
from ..runs._check import OF_SOURCES
from ..runs._resolve import source_of
from ..sources._digest import bytes_of
from ..sources._npz import INPUTS, LABELS, TRAIN, pick, read_arrays
from ..sources._source import LABEL
from ._samples import Samples, table_of

_HEADER = ["index", "name", "given", "decision", "label"]


@dataclass(frozen=True, eq=False)
class Corrections:
    """What was decided.

    Attributes:
        labels: of every sample the number of its class, corrected, [N].
        kept: which samples are not dropped, [N].
        changed: how many labels were changed.
    """

    labels: NDArray[np.int64]
    kept: NDArray[np.bool_]
    changed: int

    @property
    def dropped(self) -> int:
        return int((~self.kept).sum())


def read_corrections(
    path: Path, labels: NDArray[np.int64], classes: tuple[str, ...]
) -> Corrections:
    """The decisions in a file that the page exported, held against the labels they are about."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    reader = csv.reader(io.StringIO(text, newline=""))
    header = next(reader, [])
    if header != _HEADER:
        raise UsageError(
            f"{path} has the columns {', '.join(header):.100}, not {', '.join(_HEADER)}; give the "
            "file that the page of the audit exported"
        )
    number = {name: k for k, name in enumerate(classes)}
    # As the page and csv_text write them.
    number |= {printable(name): k for k, name in enumerate(classes)}
    number |= {f"'{printable(name)}": k for k, name in enumerate(classes)}
    corrected, kept = labels.copy(), np.ones(len(labels), bool)
    for row in reader:
        where = f"{path}, line {reader.line_num}"
        if not row:
            continue
        if len(row) != len(_HEADER) or not row[0].isascii() or not row[0].isdigit():
            raise UsageError(f"{where}: it is no decision; {', '.join(_HEADER)} are expected")
        index, _, given, decision, label = int(row[0]), *row[1:]
        if index >= len(labels) or number.get(given) != labels[index]:
            raise UsageError(
                f"{where}: sample {index} is not given as {given!r:.60} here: the decisions are of "
                "other data"
            )
        if decision not in ("keep", "change", "drop"):
            raise UsageError(f"{where}: the decision is keep, change or drop; it was {decision!r}")
        if decision == "drop":
            kept[index] = False
        elif label not in number:
            raise UsageError(f"{where}: the label {label!r:.60} is none of the classes")
        else:
            corrected[index] = number[label]
    return Corrections(corrected, kept, int((corrected != labels)[kept].sum()))


def write_corrected(samples: Samples, found: Corrections, out: Path) -> tuple[Path, Run]:
    """Write a corrected copy of the data; the file, and the run that trains on it."""
    run, classes = samples.run, samples.data.classes
    form = run.dataset.partition(":")[0]
    names = [classes[k] for k in found.labels]
    read = {name: getattr(run, name) for name in OF_SOURCES}
    if form == "folder":
        path, tested = _folder(samples, found, names, out)
        return path, Run(**read | {"dataset": f"csv:{path}", "image": "image", "test": tested})
    if form in ("csv", "parquet"):
        path = _table(samples, found, names, form, out)
        return path, Run(**read, dataset=f"{form}:{path}")
    stem = Path(run.dataset.partition(":")[2]).stem if form == "npz" else samples.data.name
    path = out / f"{stem}-corrected.npz"
    arrays = _own_arrays(samples, found, names) if form == "npz" else _arrays(samples, found)
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_atomically(path, content.getvalue())
    of_files = {"skip_unreadable": False}  # an array has none, and a data set by name no other
    return path, Run(**read | of_files, dataset=f"npz:{path}")


def _table(samples: Samples, found: Corrections, names: list[str], form: str, out: Path) -> Path:
    source = source_of(samples.run)
    table = table_of(source)
    label = source.label or LABEL
    assert samples.names is not None
    at = {place: i for i, place in enumerate(samples.names)}
    rows = [(row, at[table.place(row)]) for row in range(len(table)) if table.place(row) in at]
    rows = [(row, i) for row, i in rows if found.kept[i]]
    columns: dict[str, list[Any]] = {
        name: [values[row] for row, _ in rows] for name, values in table.columns.items()
    }
    before = columns[label]
    columns[label] = [
        _like(names[i], old) if found.labels[i] != samples.labels.labels[i] else old
        for (_, i), old in zip(rows, before, strict=True)
    ]
    if source.image:  # which are relative to the table
        folder = source.path.absolute().parent
        columns[source.image] = [str(folder / str(value)) for value in columns[source.image]]
    stem = source.path.name.removesuffix(".gz").rpartition(".")[0] or source.path.stem
    path = out / f"{stem}-corrected.{form}"
    content = _parquet(columns) if form == "parquet" else _csv(columns, table.delimiter)
    write_atomically(path, content)
    return path


def _like(name: str, old: Any) -> Any:
    """The name of a class in the type that the column has."""
    if isinstance(old, bool):
        return name == "True"
    return type(old)(name) if isinstance(old, int | float) else name


def _csv(columns: dict[str, list[Any]], delimiter: str = ",") -> bytes:
    """Exactly what was there, with no apostrophes: it is data, and no report."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode()


def _parquet(columns: dict[str, list[Any]]) -> bytes:
    arrow = require("pyarrow", "parquet", "a Parquet file")
    parquet = require("pyarrow.parquet", "parquet", "a Parquet file")
    content = io.BytesIO()
    parquet.write_table(arrow.table(columns), content)
    return content.getvalue()


def _folder(samples: Samples, found: Corrections, names: list[str], out: Path) -> tuple[Path, str]:
    """A table of the images, which stay where they are; and of those to test on, if there are."""
    assert samples.content is not None
    train, test = samples.content.train, samples.content.test
    stem = source_of(samples.run).name
    path = out / f"{stem}-corrected.csv"
    write_atomically(path, _images(train.inputs, names, found.kept))
    if test is None:
        return path, ""
    tested = out / f"{stem}-test.csv"
    classes = [samples.content.classes[k] for k in test.labels]
    write_atomically(tested, _images(test.inputs, classes, np.ones(len(test), bool)))
    return path, str(tested)


def _images(files: Iterable[Any], names: list[str], kept: NDArray[np.bool_]) -> bytes:
    rows = [(f, name) for f, name, keep in zip(files, names, kept, strict=True) if keep]
    paths = [str(Path(str(file)).absolute()) for file, _ in rows]
    return _csv({"image": paths, "label": [name for _, name in rows]})


def _own_arrays(samples: Samples, found: Corrections, names: list[str]) -> dict[str, Any]:
    source = source_of(samples.run)
    arrays = read_arrays(source.path, bytes_of(source.path))
    x, y = pick(arrays, INPUTS, TRAIN), source.label or pick(arrays, LABELS, TRAIN)
    assert x is not None
    assert y is not None
    old = arrays[y].reshape(-1)
    changed = found.labels != np.asarray(samples.labels.labels)
    made = [_like(n, o) if c else o for n, o, c in zip(names, old.tolist(), changed, strict=True)]
    new = np.array(made, old.dtype if old.dtype.kind in "iufb" else None)
    sized = [name for name in (x, source.truth) if name]
    return arrays | {name: arrays[name][found.kept] for name in sized} | {y: new[found.kept]}


def _arrays(samples: Samples, found: Corrections) -> dict[str, Any]:
    """Of a data set by name: everything, since its labels are no file of the user's."""
    data = samples.data
    x, x_test = (resident(part.inputs, "a copy of the data") for part in (data.train, data.test))
    return {
        "x_train": x.numpy()[found.kept], "y_train": found.labels[found.kept],
        "x_test": x_test.numpy(), "y_test": data.test.labels.numpy(),
    }  # fmt: skip
