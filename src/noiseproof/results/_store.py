"""The folder of one run. Files are written beside and renamed: a reader sees all of one or none."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def write_atomically(path: Path, content: bytes) -> None:
    """Put content at path so that it is there whole or not at all, whatever happens meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


class Folder:
    """What is kept of one run.

    ===============  ============================================================
    ``run.json``     the settings, and the versions and the machine that ran them
    ``history.csv``  a row an epoch
    ``result.json``  there once the run has ended: its last row and how it ended
    ===============  ============================================================
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        text = json.dumps(content, indent=1, allow_nan=True) + "\n"
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
            raise ValueError(f"{path} is damaged; delete the folder {self.path} to run it again")
        return content

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
        except (ValueError, TypeError):
            raise ValueError(
                f"{path} is damaged; delete the folder {self.path} to run it again"
            ) from None
