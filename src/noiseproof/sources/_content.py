"""What is in a source: inputs and labels as arrays, texts or files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import Kind


@dataclass(frozen=True, eq=False)
class Part:
    """The samples to train on, or those to test on.

    Attributes:
        inputs: an array with a row for each sample, or a list of texts or of image files.
        labels: the number of each sample's class, as given.
        truth: the number of its true class, where that is known.
        places: of each sample, what to call it in a message: its file or its line.
    """

    inputs: NDArray[Any] | list[str] | list[Path]
    labels: NDArray[np.int64]
    truth: NDArray[np.int64] | None
    places: list[str]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Content:
    """What is in a source.

    Attributes:
        name: of the source, with a digest of all that was read: ``reviews.csv@3fa9c1d2e4``.
        kind: what is classified: an image, a text, a row of features, a row of token ids.
        shape: of one input; empty for texts, whose number of words differs.
        classes: the name of each class.
        columns: of a table, those that the inputs come from.
        train: the samples to train on.
        test: the samples to test on, if there are any.
        left_out: a line on each sample that could not be read.
    """

    name: str
    kind: Kind
    shape: tuple[int, ...]
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    train: Part
    test: Part | None
    left_out: tuple[str, ...] = field(default=())
