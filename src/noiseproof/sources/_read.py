"""Read a source: from files to inputs and labels, checked, with a digest of all that was read."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import UsageError
from .._hints import nearest
from . import Kind
from ._classes import Classes, check_classes, check_truth, class_name, is_empty
from ._content import Content, Part
from ._digest import Digest, bytes_of
from ._folders import image_shape, images_by_class, parts_of
from ._npz import INPUTS, LABELS, TEST, TRAIN, array_inputs, flat_labels, pick, read_arrays
from ._source import LABEL, Source
from ._tables import (
    Problems,
    Table,
    Values,
    has_decimal_commas,
    numeric_columns,
    read_table,
)

_KEPT = 4  # sources in memory
_FEW, _MANY = 10, 100  # classes: so few may all differ; from so many on, most may not
_INDEX = ("", "Unnamed: 0", "__index_level_0__")  # of the rows, as pandas writes it: no feature


def read(source: Source) -> Content:
    """What is in a source. It is kept, and read again only when a file has changed.

    Raises:
        UsageError: something is missing or cannot be read; it names the file or the line.
    """
    return _read(source, _stamps(source))


def read_labels(source: Source) -> NDArray[np.int64]:
    """The labels to train on: of a table these alone, whatever its other columns hold.

    Raises:
        UsageError: as `read`.
    """
    if source.form not in ("csv", "parquet"):
        return read(source).train.labels
    _stamps(source)  # whether it is there
    problems, label = Problems(source.skip_unreadable), source.label or LABEL
    table = read_table(source.path, source.form, _bytes_of_table(source, source.path), problems,
                       fewest=1)  # fmt: skip
    classes, (rows,) = _table_labels(source, [table], label, problems)
    return classes(table.columns[label][row] for row in rows)


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


def _folder(source: Source) -> Content:
    root, tested = parts_of(source.path, source.test)
    digest = Digest(source)
    found = [images_by_class(folder) for folder in (root, tested) if folder is not None]
    classes = Classes(found[0])
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
    problems, digest = Problems(source.skip_unreadable), Digest(source)
    tables = []
    for path in (source.path, source.test):
        if path is None:
            continue
        content = _bytes_of_table(source, path)
        digest.add(content)
        tables.append(read_table(path, source.form, content, problems))
    label = source.label or LABEL
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
    return _content(source, digest, kind, shape, classes, columns, parts, problems.lines)


def _bytes_of_table(source: Source, path: Path) -> bytes:
    if path.is_dir():
        raise UsageError(f"{path} is a folder, and no {source.form} file; is it folder:{path}?")
    return bytes_of(path)


def _table_labels(
    source: Source, tables: Sequence[Table], label: str, problems: Problems
) -> tuple[Classes, list[list[int]]]:
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
            empty = [row for row in rows if is_empty(values[row])]
            for row in empty:
                problems.add(table.place(row), f"column {name!r} is empty")
            left_out = set(empty)
            rows = [row for row in rows if row not in left_out]
            if at == 0:
                named += [values[row] for row in rows]
            else:
                classes = Classes(named)
                for row in rows:
                    if values[row] not in classes:
                        raise UsageError(
                            f"{table.place(row)}: the class {class_name(values[row])!r} is not "
                            f"among those of {source.path}: {', '.join(classes.names[:20])}"
                        )
        kept.append(rows)
    classes = Classes(named)
    if not named:
        raise UsageError(f"{source.path} has no row with a label")
    if len(classes.names) > max(_MANY, len(named) // 2) or len(classes.names) == len(named) > _FEW:
        raise UsageError(
            f"column {label!r} of {source.path} has {len(classes.names):,} different values in "
            f"{len(named):,} rows, so it is no class; name the column of the labels with --label"
        )
    check_classes(source, classes, f"column {label!r}")
    if source.truth:
        given, truth = tables[0].column(label, "--label"), tables[0].column(source.truth, "--truth")
        check_truth(source, (given[row] for row in kept[0]), (truth[row] for row in kept[0]))
    return classes, kept


def _table_inputs(
    source: Source, table: Table, rows: list[int], label: str, columns: tuple[str, ...],
    problems: Problems, digest: Digest,
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
    matrix = numeric_columns(table, names, problems)
    if any(has_decimal_commas(table, name) for name in names):
        digest.add(b"decimal commas")  # an older version left such rows out
    bad = set(np.argwhere(~np.isfinite(matrix))[:, 0].tolist())
    rows = [row for row in rows if row not in bad]
    return matrix[rows], rows, "features", names


def _rows_with(
    values: Values, rows: list[int], table: Table, name: str, problems: Problems
) -> list[int]:
    empty = {row for row in rows if values[row] is None or not str(values[row]).strip()}
    for row in sorted(empty):
        problems.add(table.place(row), f"column {name!r} is empty")
    return [row for row in rows if row not in empty]


def _npz(source: Source) -> Content:
    digest = Digest(source)
    loaded = []
    for path in (source.path, source.test):
        if path is None:
            continue
        content = bytes_of(path)
        digest.add(content)
        loaded.append((path, read_arrays(path, content)))
    (path, arrays), tested = loaded[0], loaded[1] if len(loaded) > 1 else None
    x, y = pick(arrays, INPUTS, TRAIN), pick(arrays, LABELS, TRAIN)
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
        names = pick(held, INPUTS, TRAIN), source.label or pick(held, LABELS, TRAIN)
        if names[0] not in held or names[1] not in held:
            raise UsageError(f"{where} has no arrays {x} and {y}; it has {', '.join(held)}")
        pairs.append((where, held[names[0]], held[names[1]], None))
    else:
        xt, yt = pick(arrays, INPUTS, TEST), pick(arrays, LABELS, TEST)
        if xt is not None and yt is not None:
            pairs.append((path, arrays[xt], arrays[yt], None))
    named = [flat_labels(where, labels) for where, _, labels, _ in pairs]
    truth = None if pairs[0][3] is None else flat_labels(path, pairs[0][3])
    classes = Classes([*named[0], *(() if truth is None else truth)])
    check_classes(source, classes, f"array {y!r}")
    if truth is not None:
        check_truth(source, named[0], truth)
    parts: list[Part] = []
    kind: Kind = "features"
    shape: tuple[int, ...] = ()
    for (where, inputs, _, _), labels in zip(pairs, named, strict=True):
        if len(inputs) != len(labels):
            raise UsageError(f"{where} has {len(inputs)} inputs and {len(labels)} labels")
        unknown = [label for label in labels if label not in classes]
        if unknown:
            raise UsageError(f"{where}: the class {class_name(unknown[0])!r} is not trained on")
        kind, inputs = array_inputs(where, inputs)
        shape = inputs.shape[1:]
        known = classes(truth) if truth is not None and not parts else None
        places = [f"{where}, row {i}" for i in range(len(labels))]
        parts.append(Part(inputs, classes(labels), known, places))
    return _content(source, digest, kind, shape, classes, (), parts, ())


def _content(
    source: Source, digest: Digest, kind: Kind, shape: Sequence[int], classes: Classes,
    columns: tuple[str, ...], parts: Sequence[Part], left_out: Sequence[str],
) -> Content:  # fmt: skip
    return Content(
        digest.name(source),
        kind,
        tuple(shape),
        classes.names,
        columns,
        parts[0],
        parts[1] if len(parts) > 1 else None,
        tuple(left_out),
    )
