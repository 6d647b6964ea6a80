"""The table of a benchmark, kept beside its script."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def save(script: str, rows: Sequence[Mapping[str, Any]], *, beside: str | None = None) -> None:
    """Write rows to the CSV file of a script.

    ``beside`` names a column: rows of the file with other values there, such as those of another
    machine, stay.
    """
    path = Path(script).with_suffix(".csv")
    kept: list[Mapping[str, Any]] = []
    if beside is not None and path.exists():
        with path.open(newline="") as file:
            mine = {str(row[beside]) for row in rows}
            kept = [row for row in csv.DictReader(file) if row[beside] not in mine]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows([*kept, *rows])
    print(f"\nwritten to {path}")
