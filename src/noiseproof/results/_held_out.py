"""What a trained network says of the samples that were held out of its training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .._errors import UsageError
from .._files import write_atomically
from ._store import HELD_OUT, Folder


@dataclass(frozen=True)
class HeldOut:
    """The held-out samples of a run, each at the same place of all three.

    With them two runs are compared sample by sample, which is far surer than their accuracies.
    """

    index: Sequence[int]
    """in the training set before anything was held out"""
    given: Sequence[int]
    """the class that the label says, right or wrong"""
    predicted: Sequence[int]
    """the class that the trained network says"""

    def __post_init__(self) -> None:
        for name, values in vars(self).items():
            if not isinstance(values, list | tuple) or any(type(v) is not int for v in values):
                raise UsageError(f"{name} is no list of integers")
        if not len(self.index) == len(self.given) == len(self.predicted):
            raise UsageError("its lists differ in length")

    @property
    def correct(self) -> dict[int, bool]:
        """Of each sample, whether the network says what its label says."""
        answers = zip(self.index, self.given, self.predicted, strict=True)
        return {index: given == predicted for index, given, predicted in answers}


def write_held_out(folder: Folder, held_out: HeldOut) -> None:
    """Keep it in the folder of its run; bundles leave it out."""
    content = json.dumps(asdict(held_out), separators=(",", ":"))
    write_atomically(folder.path / HELD_OUT, content.encode())


def read_held_out(source: Path) -> HeldOut | None:
    """That of a run's folder; None where nothing was held out, and for a bundle.

    Raises:
        UsageError: the file is damaged.
    """
    content: Any = Folder(source).read_json(HELD_OUT)
    if content is None:
        return None
    try:
        return HeldOut(**content)
    except (TypeError, UsageError) as error:
        why = f" ({error})" if isinstance(error, UsageError) else ""
        raise UsageError(f"{source / HELD_OUT} is damaged{why}; delete the file") from None
