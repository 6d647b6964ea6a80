"""What papers report, as data: the cells to hold one's own results against."""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from importlib import resources

from .._errors import UsageError


@dataclass(frozen=True)
class Published:
    """One figure of a published table. Accuracies are in percent, as they were printed."""

    table: str
    """the bench that makes it: table-symmetric, table-asymmetric, table-ngce, table-webvision,
    successors or human-noise"""
    dataset: str
    """as a run names it: mnist, cifar10, cifar100, webvision"""
    method: str
    """as the paper prints it: CE, NCE+RCE, ..."""
    noise: str
    """as a run names it: none, symmetric, asymmetric, cifar10n-worst, cifar100n; or real, the
    noise of WebVision itself"""
    rate: float
    """0 where there is none to choose"""
    mean: float
    std: float | None
    """None where none was reported"""
    top_two: bool
    """whether it is in bold in the paper's table"""
    source: str
    """the paper and the table that it is from"""


@functools.cache
def _published() -> tuple[Published, ...]:
    with (resources.files(__package__) / "published.csv").open(encoding="utf-8") as file:
        return tuple(
            Published(
                table=row["table"],
                dataset=row["dataset"],
                method=row["method"],
                noise=row["noise"],
                rate=float(row["rate"]),
                mean=float(row["mean"]),
                std=float(row["std"]) if row["std"] else None,
                top_two=row["top_two"] == "1",
                source=row["source"],
            )
            for row in csv.DictReader(file)
        )


def published(table: str | None = None) -> list[Published]:
    """The published figures, those of one table or all.

    >>> cell = published("table-symmetric")[0]
    >>> cell.dataset, cell.method, cell.noise, cell.mean, cell.std
    ('mnist', 'CE', 'none', 99.25, 0.08)
    """
    found = [cell for cell in _published() if table in (None, cell.table)]
    if not found:
        known = ", ".join(dict.fromkeys(cell.table for cell in _published()))
        raise UsageError(f"no figures are known of {table!r}; they are of {known}")
    return found
