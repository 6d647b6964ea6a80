"""What was measured of a run, epoch by epoch, kept in columns: many runs fit into memory."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from .._errors import UsageError

Row = dict[str, float]
TEST_ACCURACY = "test_accuracy"
HELD_OUT_ACCURACY = "validation_accuracy"
"""Of what was held out of the training set, whose labels are as noisy as the rest."""


CHOSEN_EPOCH = "chosen_epoch"
CHOSEN_ACCURACY = "test_accuracy_chosen"
"""Of the weights that would be chosen if this epoch were the last."""


def accuracy_column(columns: Iterable[str]) -> str | None:
    """The column by which a run is judged: the test set's or, without one, what was held out.

    Of a run that chooses an epoch it is the test accuracy of the weights that are chosen. What is
    held out cannot judge a choice that was made by it: without a test set, the last epoch counts.

    >>> accuracy_column(["train_loss", "validation_accuracy"])
    'validation_accuracy'
    >>> accuracy_column(["test_accuracy", "test_accuracy_chosen", "validation_accuracy"])
    'test_accuracy_chosen'
    """
    known, judged = set(columns), (CHOSEN_ACCURACY, TEST_ACCURACY, HELD_OUT_ACCURACY)
    return next((name for name in judged if name in known), None)


def with_chosen(row: Row, history: Sequence[Row]) -> Row:
    """A row with the test accuracy of the weights that were chosen so far, where a run chooses.

    Args:
        row: of an epoch; its number is in ``epoch``.
        history: the rows before it.
    """
    if CHOSEN_EPOCH not in row or TEST_ACCURACY not in row:
        return row
    chosen = int(row[CHOSEN_EPOCH])
    of = row if chosen == row["epoch"] else history[chosen - 1]
    return row | {CHOSEN_ACCURACY: of.get(f"{TEST_ACCURACY}_ema", of[TEST_ACCURACY])}


def lacks_chosen(columns: Mapping[str, Any]) -> bool:
    """Whether a run chooses an epoch and an older version did not note what that comes to."""
    return {CHOSEN_EPOCH, TEST_ACCURACY} <= columns.keys() and CHOSEN_ACCURACY not in columns


def with_chosen_column(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Whole columns with the accuracy of what was chosen, where an older version left it out."""
    if not lacks_chosen(columns):
        return columns
    tested = columns.get(f"{TEST_ACCURACY}_ema", columns[TEST_ACCURACY])
    chosen = (math.nan if c is None else c for c in columns[CHOSEN_EPOCH])
    found = [math.nan if math.isnan(c) else tested[int(c) - 1] for c in chosen]
    return columns | {CHOSEN_ACCURACY: found}


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
