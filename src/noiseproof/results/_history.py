"""What was measured of a run, epoch by epoch, kept in columns: many runs fit into memory."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import overload

from .._errors import UsageError

Row = dict[str, float]
TEST_ACCURACY = "test_accuracy"
HELD_OUT_ACCURACY = "validation_accuracy"
"""Of what was held out of the training set, whose labels are as noisy as the rest."""


CHOSEN_EPOCH = "chosen_epoch"
CHOSEN = "_chosen"
"""Behind the name of an accuracy: of the weights that would be chosen if this epoch were the last.
"""


def accuracy_column(columns: Iterable[str]) -> str | None:
    """The column by which a run is judged: the test set's or, without one, what was held out.

    Of a run that chooses an epoch it is the accuracy of the weights that are chosen.

    >>> accuracy_column(["train_loss", "validation_accuracy"])
    'validation_accuracy'
    >>> accuracy_column(["test_accuracy", "test_accuracy_chosen", "validation_accuracy"])
    'test_accuracy_chosen'
    """
    known = set(columns)
    for name in (TEST_ACCURACY, HELD_OUT_ACCURACY):
        if name in known:
            return name + CHOSEN if name + CHOSEN in known else name
    return None


def is_held_out(column: str | None) -> bool:
    """Whether the accuracy in a column is that on what was held out."""
    return column is not None and column.startswith(HELD_OUT_ACCURACY)


def with_chosen(row: Row, history: Sequence[Row]) -> Row:
    """A row with the accuracy of the weights that were chosen so far, where an epoch is chosen.

    Args:
        row: of an epoch; its number is in ``epoch``.
        history: the rows before it.
    """
    if CHOSEN_EPOCH not in row:
        return row
    name = TEST_ACCURACY if TEST_ACCURACY in row else HELD_OUT_ACCURACY
    chosen = int(row[CHOSEN_EPOCH])
    of = row if chosen == row["epoch"] else history[chosen - 1]
    return row | {name + CHOSEN: of.get(f"{name}_ema", of[name])}


class History(Sequence[Row]):
    """A row for each epoch, as a sequence of dictionaries.

    Args:
        columns: the numbers of each column by its name, all of one length; None is NaN.
    """

    __slots__ = ("columns",)

    def __init__(self, columns: Mapping[str, Iterable[float | None]]) -> None:
        self.columns = {name: _numbers(name, values) for name, values in columns.items()}
        lengths = {len(values) for values in self.columns.values()}
        if len(lengths) > 1:
            raise UsageError(
                f"the columns of the history have {min(lengths)} to {max(lengths)} rows"
            )

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, float]]) -> History:
        names = rows[0] if rows else ()
        return cls({name: [row.get(name, math.nan) for row in rows] for name in names})

    def column(self, name: str) -> list[float]:
        """One number of every epoch; NaN where the runs do not have it."""
        if name not in self.columns:
            return [math.nan] * len(self)
        return self.columns[name].tolist()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"epoch {index} of {len(self)}")
        return {name: values[index] for name, values in self.columns.items()}

    def __iter__(self) -> Iterator[Row]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"History({len(self)} epochs of {', '.join(self.columns)})"


def _numbers(name: str, values: Iterable[float | None]) -> array[float]:
    try:
        return array("d", [math.nan if v is None else v for v in values])
    except (TypeError, OverflowError):
        raise UsageError(f"the column {name!r} of the history is not numbers") from None
