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


def accuracy_column(columns: Iterable[str]) -> str | None:
    """The column by which a run is judged: the test set's or, without one, what was held out.

    >>> accuracy_column(["train_loss", "validation_accuracy"])
    'validation_accuracy'
    """
    known = list(columns)
    return next((name for name in (TEST_ACCURACY, HELD_OUT_ACCURACY) if name in known), None)


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
