"""Tables: columns of a CSV or Parquet file, every row with the line to name in a message."""

from __future__ import annotations

import csv
import gzip
import io
import re
import shlex
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import UsageError, require
from .._hints import nearest

_LARGEST = float(np.finfo(np.float32).max)
_MAX_UNPACKED = 1 << 32  # bytes of a file that is packed
_MAX_FIELD = 1 << 27  # characters of one value; csv's own limit is 131,072
_QUOTED = re.compile(r'"[^"]*"')
_COMMA = re.compile(r"-?\d[\d.]*,\d+")
_TRUTH = {"true": 1.0, "false": 0.0}

Values = Sequence[Any] | NDArray[Any]
"""A column: texts or numbers, or, of vectors, a matrix."""


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name, of one length, as texts or as numbers.

    Attributes:
        path: of the file.
        columns: by name; one of vectors, such as embeddings, is a matrix.
        lines: the line of the file, or the number of the row, of each row.
        unit: what ``lines`` counts.
        delimiter: of a CSV file, what stands between its columns.
    """

    path: Path
    columns: dict[str, Values]
    lines: list[int]
    unit: str = "line"
    delimiter: str = ","

    def __len__(self) -> int:
        return len(self.lines)

    def column(self, name: str, option: str) -> Values:
        if name not in self.columns:
            parts = [part.strip() for part in name.split(",")]
            if len(parts) > 1 and all(part in self.columns for part in parts):
                raise UsageError(
                    f"{self.path} has no column {name!r}: several are given with blanks between "
                    f"them, {option} {shlex.join(parts)}"
                )
            known = [" ".join(column.split()) for column in self.columns]
            remedy = f"name one with {option}" if option else "it has"
            raise UsageError(
                f"{self.path} has no column {name!r}{nearest(name, known)}; "
                f"{remedy}: {', '.join(known):.300}"
            )
        values = self.columns[name]
        if option not in ("", "--ignore") and self.has_vectors(name):
            raise UsageError(
                f"column {name!r} of {self.path} holds vectors, which can only be learnt from; "
                f"name another with {option}"
            )
        return values

    def has_vectors(self, name: str) -> bool:
        return isinstance(self.columns[name], np.ndarray)

    def place(self, row: int) -> str:
        return f"{self.path}, {self.unit} {self.lines[row]}"


class Problems:
    """What cannot be read: an error at once, or, where that was asked for, a count.

    Args:
        skip: whether to go on.
        remedy: what to do where that was not asked for.
    """

    def __init__(
        self, skip: bool, remedy: str = "mend it, or go on without such with --skip-unreadable"
    ) -> None:
        self.skip = skip
        self.remedy = remedy
        self.lines: list[str] = []

    def add(self, place: str, problem: str) -> None:
        if not self.skip:
            raise UsageError(f"{place}: {problem}; {self.remedy}")
        self.lines.append(f"{place}: {problem}")

    def summary(self) -> tuple[str, ...]:
        """One line on all of them."""
        return left_out_note(self.lines)


def left_out_note(lines: Sequence[str]) -> tuple[str, ...]:
    """One line on what was left out, of which each has a line."""
    if not lines:
        return ()
    more = f", and {len(lines) - 1} more" if len(lines) > 1 else ""
    return (f"left out what cannot be read: {lines[0]}{more}",)


def read_table(
    path: Path, form: str, content: bytes, problems: Problems, *, fewest: int = 2
) -> Table:
    """The columns of a file, which are so many at least."""
    if form == "parquet":
        table = _parquet(path, content, fewest)
    else:
        table = _csv(path, content, problems, fewest)
    if not len(table):
        raise UsageError(f"{path} has no rows")
    return table


def _csv(path: Path, content: bytes, problems: Problems, fewest: int) -> Table:
    if content[:2] == b"\x1f\x8b":
        content = _unpacked(path, content)
    if content[:4] == b"PK\x03\x04":
        raise UsageError(f"{path} is packed, as spreadsheets are, and no CSV; save it as CSV")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}, line {line}: no UTF-8 text; save the file as UTF-8") from None
    delimiter = _delimiter(path, text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows, lines = [], []
    usual = csv.field_size_limit(_MAX_FIELD)  # it holds for the whole process
    try:
        first = next(reader, [])
        header = [name.strip() for name in first]
        _check_header(path, header, fewest)
        for row in reader:
            if not row:
                continue  # an empty line
            if len(row) != len(header):
                problems.add(
                    f"{path}, line {reader.line_num}",
                    f"{len(row)} values where the header has {len(header)} columns",
                )
                continue
            if row == first:  # files that were put together
                problems.add(f"{path}, line {reader.line_num}", "the header once more")
                continue
            rows.append(row)
            lines.append(reader.line_num)
    except csv.Error as error:
        end = "end of data" in str(error)
        why = "a value begins with a quote, and none ends it" if end else f"no CSV, {error}"
        raise UsageError(f"{path}, line {reader.line_num}: {why}") from None
    finally:
        csv.field_size_limit(usual)
    columns: list[Values] = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    return Table(path, dict(zip(header, columns, strict=True)), lines, delimiter=delimiter)


def _unpacked(path: Path, content: bytes) -> bytes:
    try:
        with gzip.open(io.BytesIO(content)) as file:
            found = bytearray()
            while len(found) <= _MAX_UNPACKED and (block := file.read(1 << 20)):
                found += block
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} cannot be unpacked: {error}") from None
    if len(found) > _MAX_UNPACKED:
        raise UsageError(f"{path} holds more than {_MAX_UNPACKED >> 30} GB; unpack it yourself")
    return bytes(found)


def _delimiter(path: Path, text: str) -> str:
    if ".tsv" in path.suffixes:
        return "\t"
    first = _QUOTED.sub("", text.partition("\n")[0])
    return max(",;\t", key=lambda mark: (first.count(mark), mark == ","))


def _check_header(path: Path, header: list[str], fewest: int) -> None:
    twice = [name for i, name in enumerate(header) if name in header[:i]]
    if twice:
        raise UsageError(f"{path} has two columns {twice[0]!r}; rename one")
    if len(header) < fewest:
        columns = "two columns" if fewest == 2 else "one column"
        raise UsageError(
            f"{path} needs a first line with the names of at least {columns}; "
            f"it has {', '.join(map(repr, header)) or 'none'}"
        )


def _parquet(path: Path, content: bytes, fewest: int) -> Table:
    parquet = require("pyarrow.parquet", "parquet", "a Parquet file")
    try:
        found = parquet.read_table(io.BytesIO(content))
    except Exception as error:
        raise UsageError(f"{path} is no Parquet file that can be read: {error}") from None
    _check_header(path, list(found.column_names), fewest)
    columns = {name: _values(found.column(name)) for name in found.column_names}
    return Table(path, columns, list(range(1, found.num_rows + 1)), "row")


def _values(column: Any) -> Values:
    """A column of Arrow; vectors of numbers, all of one length, are the rows of a matrix.

    One that is missing is a row of NaN.
    """
    compute = require("pyarrow.compute", "parquet", "a Parquet file")
    types = require("pyarrow.types", "parquet", "a Parquet file")
    kind = column.type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        item, flat = kind.value_type, column.combine_chunks().flatten()
        numbers = types.is_floating(item) or types.is_integer(item) or types.is_boolean(item)
        lengths = compute.list_value_length(column.drop_null()).unique().to_pylist()
        if numbers and len(lengths) == 1 and lengths[0] and not flat.null_count:
            vectors: NDArray[Any] = flat.to_numpy(zero_copy_only=False).reshape(-1, lengths[0])
            if not column.null_count:
                return vectors
            matrix = np.full((len(column), lengths[0]), np.nan)
            matrix[column.is_valid().to_numpy()] = vectors
            return matrix
    values: list[Any] = column.to_pylist()
    return values


def numeric_columns(
    table: Table, names: Sequence[str], problems: Problems, *, required: bool = False
) -> NDArray[np.float32]:
    """Columns as numbers, [rows, numbers]; rows that have none are NaN, and are reported.

    True and false are 1 and 0. Decimals have a point; in a table whose marks are semicolons those
    of a column may all have a comma. A column of vectors is as many columns of numbers.

    Args:
        table: whose they are.
        names: of the columns.
        problems: where values are reported that are no numbers.
        required: whether these columns are needed, so that one that is none of numbers cannot be
            left out.
    """
    owners = [name for name in names for _ in range(_width(table.columns[name]))]
    found = np.empty((len(table), len(owners)), np.float32)
    at = 0
    for name in names:
        values = table.columns[name]
        with np.errstate(over="ignore"):  # what float32 cannot hold is found below
            try:
                numbers = np.asarray(values, dtype=np.float64).reshape(len(table), _width(values))
            except (ValueError, TypeError, OverflowError):
                if has_decimal_commas(table, name):
                    values = [value.replace(",", ".") for value in values]
                numbers = np.array([[_number(value)] for value in values])
            found[:, at : at + _width(values)] = numbers
        at += _width(values)
    finite = np.isfinite(found)
    if not required:
        _check_columns(table, owners, finite)
    told: tuple[int, str] | None = None
    for row, at in np.argwhere(~finite).tolist():
        if told == (row, owners[at]):
            continue  # another number of the same vector
        told = row, owners[at]
        value = table.columns[owners[at]][row]
        if isinstance(value, np.ndarray):
            value = found[row, at]
        what = "is empty" if value in ("", None) else f"is {str(value)!r:.40}, no finite number"
        problems.add(table.place(row), f"column {owners[at]!r} {what}")
    return found


def _width(values: Values) -> int:
    """How many numbers a value of a column is."""
    return values.shape[1] if isinstance(values, np.ndarray) else 1


def has_decimal_commas(table: Table, name: str) -> bool:
    """Whether the decimals of a column have the commas of a spreadsheet."""
    if table.delimiter != ";":
        return False
    values = table.columns[name]
    return any("," in value for value in values) and not any("." in value for value in values)


def _check_columns(table: Table, owners: Sequence[str], finite: NDArray[np.bool_]) -> None:
    """Refuse columns that are none of numbers, all at once."""
    few = [at for at, share in enumerate(finite.mean(0)) if share < 0.5]
    if not few:
        return
    name, row = owners[few[0]], int(np.argmin(finite[:, few[0]]))
    held = table.columns[name][row]
    value, why = str(held), "which is no number"
    if isinstance(held, list):
        why = "and not all of its vectors are numbers of one length"
    shown = value if len(value) <= 40 else f"{value[:37]}..."
    remedies = ["name what is classified with --text or --image"]
    if _COMMA.fullmatch(value.strip()):
        remedies.insert(0, "write its numbers with a point")
    none = list(dict.fromkeys(owners[at] for at in few))
    if len(none) < len(set(owners)):  # else there is nothing left to learn from
        which = "it" if len(none) == 1 else "such columns"
        remedies.insert(0, f"leave {which} out with --ignore {shlex.join(none)}")
    raise UsageError(
        f"{table.place(row)}: column {name!r} holds {shown!r}, {why}; {', or '.join(remedies)}"
    )


def _number(value: Any) -> float:
    """A value as a number; NaN if it is none."""
    try:
        number = float(value)
    except (ValueError, TypeError, OverflowError):
        return _TRUTH.get(str(value).strip().lower(), np.nan)
    return number if abs(number) <= _LARGEST else np.nan
