"""Read a source: from files to inputs and labels, checked, with a digest of all that was read."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import hashlib
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import UsageError
from .._hints import nearest
from . import Kind
from ._content import Content, Part
from ._folders import image_shape, images_by_class, parts_of
from ._source import Source
from ._tables import Problems, Table, numbers, read_table

_VERSION = 1  # of what is made of a file: when that changes, runs on it are others
_DIGEST = 10  # hexadecimal digits in a name
_KEPT = 4  # sources in memory
_LABEL = "label"  # the column of the labels, where none is named
_INDEX = ("", "Unnamed: 0", "__index_level_0__")  # of the rows, as pandas writes it: no feature
_WHOLE = re.compile(r"(-?\d+)\.0+")
_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_INPUTS = ("x", "images", "features", "inputs", "tokens", "input_ids", "data")
_LABELS = ("y", "labels", "label", "targets")
_TRAIN, _TEST = ("train",), ("test", "val", "valid")
_CHANNELS = (1, 3)  # of images: grey and colour


def read(source: Source) -> Content:
    """What is in a source. It is kept, and read again only when a file has changed.

    Raises:
        UsageError: something is missing or cannot be read; it names the file or the line.
    """
    return _read(source, _stamps(source))


@functools.lru_cache(maxsize=_KEPT)
def _read(source: Source, stamps: object) -> Content:
    match source.form:
        case "folder":
            return _folder(source)
        case "npz":
            return _npz(source)
    return _table(source)


def _stamps(source: Source) -> tuple[Any, ...]:
    """Of the files of a source, their sizes and when they were changed."""
    found: list[tuple[str, tuple[int, int]]] = []
    for path in (source.path, source.test):
        if path is None:
            continue
        if path.is_dir():
            found += sorted(_stamps_in(path.absolute()))
        elif not path.exists():
            what = "the folder of the images" if source.form == "folder" else "the name of the file"
            raise UsageError(f"{path} is not there; give {what}")
        found.append((str(path.absolute()), _stamp(path)))
    return tuple(found)


def _stamps_in(folder: str | Path) -> Iterator[tuple[str, tuple[int, int]]]:
    """Of all in a folder; a bench asks for every run, so it must not take long."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _stamps_in(entry.path)
            yield entry.path, _stamp(entry)


def _stamp(path: Path | os.DirEntry[str]) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror})") from None


class _Digest:
    """Of how a source is read and of what was read."""

    def __init__(self, source: Source) -> None:
        self._hash = hashlib.sha256()
        told = ("form", "label", "text", "image", "truth", "ignore", "image_size")
        values = {name: getattr(source, name) for name in told}
        if source.form in ("csv", "parquet") and source.label == _LABEL:
            values["label"] = ""  # as it is by default
        self.add(repr([_VERSION, *values.values()]).encode())

    def add(self, content: bytes) -> None:
        self._hash.update(hashlib.sha256(content).digest())

    def add_files(self, files: Sequence[Path], names: Iterable[str]) -> None:
        """The names and the contents of files; one that cannot be read counts as empty."""
        with concurrent.futures.ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            for name, found in zip(names, pool.map(_digest_of_file, files), strict=True):
                self._hash.update(name.encode(errors="surrogateescape") + b"\0" + found)

    def name(self, source: Source) -> str:
        return f"{source.name}@{self._hash.hexdigest()[:_DIGEST]}"


def _digest_of_file(path: Path) -> bytes:
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return b""


class _Classes:
    """The classes that labels name: numbers in their order, else names in theirs."""

    def __init__(self, labels: Iterable[Any]) -> None:
        names = {_class_name(label) for label in labels}
        self.names = tuple(sorted(names, key=_order))
        self._numbers = {name: i for i, name in enumerate(self.names)}

    def __call__(self, labels: Iterable[Any]) -> NDArray[np.int64]:
        return np.array([self._numbers[_class_name(label)] for label in labels], np.int64)

    def __contains__(self, label: Any) -> bool:
        return _class_name(label) in self._numbers


def _class_name(label: Any) -> str:
    if isinstance(label, bytes):
        return label.decode(errors="replace")
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return str(int(label))  # a column with a gap somewhere is read as floats
    text = str(label).strip()
    whole = _WHOLE.fullmatch(text)  # and written as such
    return whole[1] if whole else text


def _is_empty(label: Any) -> bool:
    return label is None or _class_name(label) in ("", "nan", "NaN")


def _order(name: str) -> tuple[int, float, str]:
    return (0, float(name), name) if _NUMBER.fullmatch(name) else (1, 0, name)


def _check_classes(source: Source, classes: _Classes, column: str) -> None:
    if len(classes.names) < 2:
        raise UsageError(
            f"{source.path} has one class, {classes.names[0]!r}, in {column}; "
            "a classifier needs two"
        )


def _folder(source: Source) -> Content:
    root, tested = parts_of(source.path, source.test)
    digest = _Digest(source)
    found = [images_by_class(folder) for folder in (root, tested) if folder is not None]
    classes = _Classes(found[0])
    unknown = [name for name in (found[1] if len(found) > 1 else ()) if name not in classes]
    if unknown:
        raise UsageError(
            f"{tested} has the class {unknown[0]!r}, which {root} has not"
            f"{nearest(unknown[0], classes.names)}"
        )
    parts = []
    for folder, by_class in zip((root, tested), found, strict=False):
        files = [(file, name) for name, all_ in by_class.items() for file in all_]
        assert folder is not None
        paths = [file for file, _ in files]
        digest.add_files(paths, (p.relative_to(folder).as_posix() for p in paths))
        labels = classes(name for _, name in files)
        parts.append(Part(paths, labels, None, list(map(str, paths))))
    shape = image_shape([p for part in parts for p in part.inputs], source.image_size)  # type: ignore[misc]
    return _content(source, digest, "image", shape, classes, (), parts, ())


def _table(source: Source) -> Content:
    problems, digest = Problems(source.skip_unreadable), _Digest(source)
    tables = []
    for path in (source.path, source.test):
        if path is None:
            continue
        if path.is_dir():
            raise UsageError(f"{path} is a folder, and no {source.form} file; is it folder:{path}?")
        content = _bytes_of(path)
        digest.add(content)
        tables.append(read_table(path, source.form, content, problems))
    label = source.label or _LABEL
    classes, kept = _table_labels(source, tables, label, problems)
    parts: list[Part] = []
    kind: Kind = "features"
    shape: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
    for table, rows in zip(tables, kept, strict=True):
        tested = len(parts) == 1
        inputs, rows, kind, columns = _table_inputs(
            source, table, rows, label, columns, problems, digest
        )
        if not len(rows):
            raise UsageError(f"{table.path} has no row that can be read")
        shape = np.shape(inputs)[1:] if kind == "features" else ()
        truth = source.truth if source.truth in table.columns else ""
        given = (truth or label) if tested else label
        labels = classes(table.columns[given][row] for row in rows)
        known = classes(table.columns[truth][row] for row in rows) if truth else None
        parts.append(Part(inputs, labels, known, [table.place(row) for row in rows]))
    if kind == "image":
        files = [p for part in parts for p in part.inputs]
        shape = image_shape(files, source.image_size)  # type: ignore[arg-type]
    return _content(source, digest, kind, shape, classes, columns, parts, problems.summary())


def _table_labels(
    source: Source, tables: Sequence[Table], label: str, problems: Problems
) -> tuple[_Classes, list[list[int]]]:
    """The classes, and of each table the rows that have a label."""
    named: list[Any] = []
    kept = []
    for at, table in enumerate(tables):
        columns = [(label, "--label")]
        if source.truth:
            columns.append((source.truth, "--truth"))
        if at == 1 and source.truth in table.columns:
            columns = columns[1:]  # what is tested on has its true labels
        elif at == 1:
            columns = columns[:1]
        rows = list(range(len(table)))
        for name, option in columns:
            values = table.column(name, option)
            empty = [row for row in rows if _is_empty(values[row])]
            for row in empty:
                problems.add(table.place(row), f"column {name!r} is empty")
            left_out = set(empty)
            rows = [row for row in rows if row not in left_out]
            if at == 0:
                named += [values[row] for row in rows]
            else:
                classes = _Classes(named)
                for row in rows:
                    if values[row] not in classes:
                        raise UsageError(
                            f"{table.place(row)}: the class {_class_name(values[row])!r} is not "
                            f"among those of {source.path}: {', '.join(classes.names[:20])}"
                        )
        kept.append(rows)
    classes = _Classes(named)
    if not named:
        raise UsageError(f"{source.path} has no row with a label")
    if len(classes.names) > max(100, len(named) // 2):
        raise UsageError(
            f"column {label!r} of {source.path} has {len(classes.names):,} different values in "
            f"{len(named):,} rows, so it is no class; name the column of the labels with --label"
        )
    _check_classes(source, classes, f"column {label!r}")
    return classes, kept


def _table_inputs(
    source: Source, table: Table, rows: list[int], label: str, columns: tuple[str, ...],
    problems: Problems, digest: _Digest,
) -> tuple[Any, list[int], Kind, tuple[str, ...]]:  # fmt: skip
    """What is classified, the rows that have it, its kind, and the columns that it comes from."""
    if source.text:
        values = table.column(source.text, "--text")
        rows = _rows_with(values, rows, table, source.text, problems)
        return [str(values[row]) for row in rows], rows, "text", (source.text,)
    if source.image:
        values = table.column(source.image, "--image")
        rows = _rows_with(values, rows, table, source.image, problems)
        files = {row: table.path.parent / str(values[row]) for row in rows}
        for row in [row for row in rows if not files[row].is_file()]:
            problems.add(table.place(row), f"there is no image {files.pop(row)}")
        rows = list(files)
        digest.add_files(list(files.values()), (str(values[row]) for row in rows))
        return list(files.values()), rows, "image", (source.image,)
    for name in source.ignore:
        table.column(name, "--ignore")
    left_out = {label, source.truth, *source.ignore, *_INDEX}
    names = columns or tuple(name for name in table.columns if name not in left_out)
    for name in names:
        table.column(name, "")
    if not names:
        raise UsageError(f"{table.path} has no column beside the labels to learn from")
    matrix = numbers(table, names, problems)
    bad = set(np.argwhere(~np.isfinite(matrix))[:, 0].tolist())
    rows = [row for row in rows if row not in bad]
    return matrix[rows], rows, "features", names


def _rows_with(
    values: Sequence[Any], rows: list[int], table: Table, name: str, problems: Problems
) -> list[int]:
    empty = {row for row in rows if values[row] is None or not str(values[row]).strip()}
    for row in sorted(empty):
        problems.add(table.place(row), f"column {name!r} is empty")
    return [row for row in rows if row not in empty]


def _npz(source: Source) -> Content:
    digest = _Digest(source)
    loaded = []
    for path in (source.path, source.test):
        if path is None:
            continue
        content = _bytes_of(path)
        digest.add(content)
        loaded.append((path, _arrays(path, content)))
    (path, arrays), tested = loaded[0], loaded[1] if len(loaded) > 1 else None
    x, y = _pick(arrays, _INPUTS, _TRAIN), _pick(arrays, _LABELS, _TRAIN)
    y = source.label or y
    for name, what in ((x, "inputs"), (y, "labels")):
        if name is None or name not in arrays:
            example = "x and y, or x_train, y_train, x_test and y_test"
            raise UsageError(
                f"{path} has no array of {what}; it has {', '.join(arrays) or 'none'}. "
                f"Call them {example}"
            )
    assert x is not None
    assert y is not None
    pairs = [(path, arrays[x], arrays[y], arrays.get(source.truth) if source.truth else None)]
    if source.truth and source.truth not in arrays:
        raise UsageError(f"{path} has no array {source.truth!r}; it has {', '.join(arrays)}")
    if tested is not None:
        where, held = tested
        names = _pick(held, _INPUTS, _TRAIN), source.label or _pick(held, _LABELS, _TRAIN)
        if names[0] not in held or names[1] not in held:
            raise UsageError(f"{where} has no arrays {x} and {y}; it has {', '.join(held)}")
        pairs.append((where, held[names[0]], held[names[1]], None))
    else:
        xt, yt = _pick(arrays, _INPUTS, _TEST), _pick(arrays, _LABELS, _TEST)
        if xt is not None and yt is not None:
            pairs.append((path, arrays[xt], arrays[yt], None))
    named = [_flat_labels(where, labels) for where, _, labels, _ in pairs]
    truth = None if pairs[0][3] is None else _flat_labels(path, pairs[0][3])
    classes = _Classes([*named[0], *(() if truth is None else truth)])
    _check_classes(source, classes, f"array {y!r}")
    parts: list[Part] = []
    kind: Kind = "features"
    shape: tuple[int, ...] = ()
    for (where, inputs, _, _), labels in zip(pairs, named, strict=True):
        if len(inputs) != len(labels):
            raise UsageError(f"{where} has {len(inputs)} inputs and {len(labels)} labels")
        unknown = [label for label in labels if label not in classes]
        if unknown:
            raise UsageError(f"{where}: the class {_class_name(unknown[0])!r} is not trained on")
        kind, inputs = _array_inputs(where, inputs)
        shape = inputs.shape[1:]
        known = classes(truth) if truth is not None and not parts else None
        places = [f"{where}, row {i}" for i in range(len(labels))]
        parts.append(Part(inputs, classes(labels), known, places))
    return _content(source, digest, kind, shape, classes, (), parts, ())


def _arrays(path: Path, content: bytes) -> dict[str, NDArray[Any]]:
    try:
        file = np.load(io.BytesIO(content), allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise UsageError(f"{path} holds one array; an npz file with x and y is needed")
        with file:
            arrays = {name: file[name] for name in file.files}
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):
            raise ValueError("it holds more than arrays")
        return arrays
    except UsageError:
        raise
    except Exception as error:
        reason = "it holds Python objects" if "allow_pickle" in str(error) else str(error)
        raise UsageError(f"{path} is no npz file that can be read: {reason}") from None


def _pick(arrays: Iterable[str], names: Sequence[str], parts: Sequence[str]) -> str | None:
    """The array of a part: ``x_train``, ``train_images``, or for training just ``x``."""
    known = list(arrays)
    for name in names:
        for part in parts:
            for spelled in (f"{name}_{part}", f"{part}_{name}"):
                if spelled in known:
                    return spelled
    if "train" in parts:
        return next((name for name in names if name in known), None)
    return None


def _flat_labels(path: Path, labels: NDArray[Any]) -> list[Any]:
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise UsageError(f"{path}: labels are one for each sample, not {list(labels.shape)}")
    return list(labels.tolist())


def _array_inputs(path: Path, inputs: NDArray[Any]) -> tuple[Kind, NDArray[Any]]:
    if inputs.ndim < 2 or not inputs.size:
        raise UsageError(f"{path}: inputs are [samples, ...], not {list(inputs.shape)}")
    if inputs.dtype == np.uint8 and inputs.ndim in (3, 4):
        return "image", _channels_first(path, inputs)
    if inputs.dtype.kind in "iu" and inputs.ndim == 2:
        below = np.argwhere(inputs < 0)
        if len(below):
            raise UsageError(
                f"{path}, row {below[0][0]}: integers are token ids, which are 0 or more; save "
                "features as floating point"
            )
        return "tokens", inputs.astype(np.int64)
    if inputs.dtype.kind not in "fiub":
        raise UsageError(f"{path}: inputs are numbers, not {inputs.dtype}")
    with np.errstate(over="ignore"):  # what float32 cannot hold is found below
        features = inputs.astype(np.float32)
    bad = np.argwhere(~np.isfinite(features))
    if len(bad):
        raise UsageError(f"{path}, row {bad[0][0]}: the inputs hold a NaN or an infinity")
    return "features", features


def _channels_first(path: Path, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Images [N, C, H, W]."""
    if images.ndim == 3:
        return images[:, None]
    first, last = images.shape[1] in _CHANNELS, images.shape[3] in _CHANNELS
    if not first and not last:
        raise UsageError(
            f"{path}: images are [N, C, H, W] or [N, H, W, C] of 1 or 3 channels, and these are "
            f"{list(images.shape)}"
        )
    if first and last and images.shape[1:] != (1, 1, 1):
        raise UsageError(
            f"{path}: images {list(images.shape)} could be [N, C, H, W] or [N, H, W, C]; give them "
            "to data.from_arrays with its layout"
        )
    return images if first else np.moveaxis(images, 3, 1)


def _content(
    source: Source, digest: _Digest, kind: Kind, shape: Sequence[int], classes: _Classes,
    columns: tuple[str, ...], parts: Sequence[Part], skipped: tuple[str, ...],
) -> Content:  # fmt: skip
    test = parts[1] if len(parts) > 1 else None
    if (
        test is not None
        and kind == "features"
        and np.asarray(test.inputs).shape[1:] != tuple(shape)
    ):
        raise UsageError("inputs to train on and to test on differ in their shape")
    return Content(
        digest.name(source), kind, tuple(shape), classes.names, columns, parts[0], test, skipped
    )
