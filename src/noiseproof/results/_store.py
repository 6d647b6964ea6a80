"""The folder of one run. Files are written beside and renamed: a reader sees all of one or none."""

from __future__ import annotations

import csv
import functools
import io
import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .._errors import UsageError

FORMAT = 2  # of records: run.json and the lines of bundles
ERROR = "error.json"
_BESIDE = ".part"


def write_atomically(path: Path, content: bytes) -> None:
    """Put content at path so that it is there whole or not at all, whatever happens meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(_BESIDE, f".{path.name}.", path.parent)
    os.chmod(beside, 0o666 & ~_umask())  # as any other file, and not for its owner alone
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException as error:
        Path(beside).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(
                error.errno, f"{path} could not be written and is as it was: {error.strerror}"
            ) from error
        raise


@functools.cache
def _umask() -> int:
    now = os.umask(0o022)  # it can be read only by setting it
    os.umask(now)
    return now


def _is_not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


class Folder:
    """What is kept of one run.

    ===============  ============================================================
    ``run.json``     the settings, and the versions and the machine that ran them
    ``history.csv``  a row an epoch
    ``result.json``  there once the run has ended: its last row and how it ended
    ``error.json``   there while the run could not be trained: why
    ===============  ============================================================
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Numbers that are not finite become null, which every reader of JSON knows."""
        plain = {k: None if _is_not_finite(v) else v for k, v in content.items()}
        text = json.dumps(plain, indent=1) + "\n"
        write_atomically(self.path / name, text.encode())

    def read_json(self, name: str) -> dict[str, Any] | None:
        """The content of a file, or None where there is none; a damaged one is an error."""
        path = self.path / name
        try:
            content = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        except (ValueError, UnicodeDecodeError):
            content = None
        if not isinstance(content, dict):
            raise self.damaged(name)
        return content

    def damaged(self, name: str) -> UsageError:
        return UsageError(
            f"{self.path / name} is damaged; delete the folder {self.path} to run it again"
        )

    def tidy(self) -> None:
        """Remove what writers left that were killed at it."""
        for beside in self.path.glob(f".*{_BESIDE}"):
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
        path = self.path / "history.csv"
        if not path.exists():
            return []
        try:
            with path.open(newline="") as file:
                return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]
        except (ValueError, TypeError, csv.Error):
            raise self.damaged(path.name) from None
