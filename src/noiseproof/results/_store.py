"""The folder of one run. Files are written beside and renamed: a reader sees all of one or none."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .._errors import UsageError
from .._files import PART, write_atomically
from ._history import with_chosen_column

FORMAT = 2  # of records: run.json and the lines of bundles
ERROR = "error.json"
EXAMPLES = "examples.json"
HELD_OUT = "held_out.json"
_FILES = (
    "run.json", "history.csv", "result.json", ERROR, "checkpoint.pt", "model.pt", "model-ema.pt",
    "model-chosen.pt", "model.json", EXAMPLES, HELD_OUT,
)  # fmt: skip
EXPORTED = tuple(
    f"model{kind}.{end}"
    for kind in ("", "-ema", "-last", "-chosen")  # the last is an older version's
    for end in ("safetensors", "pt2", "onnx")
)
"""What `noiseproof export` writes beside a run; it is removed with what it was made from."""


def _is_not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


class Folder:
    """What is kept of one run.

    =================  ============================================================
    ``run.json``       the settings, and the versions and the machine that ran them
    ``history.csv``    a row an epoch
    ``result.json``    there once the run has ended: its last row and how it ended
    ``error.json``     there while the run could not be trained: why
    ``examples.json``  a few images with a wrong label, and what the network says of them
    ``held_out.json``  what the network says of the samples that were held out
    =================  ============================================================
    """

    def __init__(self, path: Path | str) -> None:
        self.path = path if isinstance(path, Path) else Path(path)

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Numbers that are not finite become null, which every reader of JSON knows."""
        plain = {k: None if _is_not_finite(v) else v for k, v in content.items()}
        text = json.dumps(plain, indent=1) + "\n"
        write_atomically(self.path / name, text.encode())

    def read_json(self, name: str) -> dict[str, Any] | None:
        """The content of a file, or None where there is none; a damaged one is an error."""
        try:
            with open(os.path.join(self.path, name), "rb") as file:
                content = json.loads(file.read())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, UnicodeDecodeError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise self.damaged(name)
        return content

    def damaged(self, name: str) -> UsageError:
        return UsageError(
            f"{self.path / name} is damaged; delete the folder {self.path} to run it again"
        )

    def check_ours(self) -> None:
        """Refuse a folder that holds something else than a run."""
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return
        if names and not any(name in _FILES or name.endswith(PART) for name in names):
            raise UsageError(
                f"{self.path} holds {names[0]} and no run; give another name or folder"
            )

    def clear(self) -> None:
        """Remove what was kept of the run, and nothing else."""
        for path in (self.path / name for name in (*_FILES, *EXPORTED)):
            path.unlink(missing_ok=True)
        for pattern in ("events.out.tfevents.*", f".*{PART}"):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not there, or something of the user's is in it
            self.path.rmdir()

    def tidy(self) -> None:
        """Remove what writers left that were killed at it."""
        for beside in self.path.glob(f".*{PART}"):
            beside.unlink(missing_ok=True)

    def write_history(self, rows: Sequence[Mapping[str, Any]]) -> None:
        out = io.StringIO()
        columns = list(rows[0]) if rows else ["epoch"]
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
        write_atomically(self.path / "history.csv", out.getvalue().encode())

    def read_history(self) -> list[dict[str, float]]:
        columns = self.read_columns()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def read_columns(self) -> dict[str, list[float]]:
        """The history by column."""
        path = self.path / "history.csv"
        if not path.exists():
            return {}
        try:
            with path.open(newline="") as file:
                header, *rows = csv.reader(file)
            if any(len(row) != len(header) for row in rows):
                raise ValueError
            columns = {name: [float(row[i]) for row in rows] for i, name in enumerate(header)}
            return with_chosen_column(columns)
        except (ValueError, TypeError, IndexError, OverflowError, csv.Error):
            raise self.damaged(path.name) from None
