"""Results chosen and written out: a row a run, as CSV or Parquet."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from .._errors import UsageError, require
from .._escape import csv_text
from .._files import write_atomically
from .._hints import match_name
from .._imports import without_digest
from ..catalogue import DATASETS, NETWORKS, NOISES, PROTOCOLS
from ._records import Record


def select(records: Iterable[Record], **wanted: Collection[Any]) -> list[Record]:
    """Those records whose settings are among the wanted values; an empty choice takes all.

    A loss is wanted by its text or by its name in the papers, in any order and case, and data,
    noise and networks by their names or titles: CIFAR-10 is cifar10.

    >>> from noiseproof import results
    >>> len(results.select([], dataset=["mnist"], loss=["NCE+RCE"], seed=[]))
    0
    """
    kept = list(records)
    for name, values in wanted.items():
        if values:
            kept = [r for r in kept if any(has_setting(r, name, value) for value in values)]
    return kept


def has_setting(record: Record, name: str, value: Any) -> bool:
    """Whether a run has a setting of this value; its loss in whatever way it is written."""
    if name == "loss":
        return record.run.means(value)
    if not hasattr(record.run, name):
        known = ", ".join(record.run.settings())
        raise UsageError(f"runs have no setting {name!r}; they have {known}")
    found = getattr(record.run, name)
    if isinstance(value, str) and isinstance(found, str) and without_digest(found) == value:
        return True
    return bool(found == value) or (name in _TITLES and found == _named(name, value))


_TITLES = {
    "dataset": {text: name for name, d in DATASETS.items() for text in (name, d.title)},
    "noise": {text: name for name, n in NOISES.items() for text in (name, n.title)},
    "model": {name: name for name in NETWORKS},
    "protocol": {name: name for name in PROTOCOLS},
}


@functools.lru_cache(maxsize=1 << 10)
def _named(setting: str, text: str) -> str | None:
    """What papers or users write in other ways, by its name here: CIFAR-10 is cifar10."""
    known = _TITLES[setting]
    try:
        return known[match_name(text, known, setting)]
    except UsageError:
        return None


def table(records: Iterable[Record]) -> list[dict[str, Any]]:
    """A flat row a run: its hash, its method, its settings, versions, machine, its last epoch.

    Columns of the last epoch begin with ``last_``, since a run has an ``epoch`` and ``epochs``.
    Accuracies are fractions from 0 to 1, as in ``history.csv``; a column of percents says so in its
    name, as those of ``noiseproof report --format csv`` do.
    """
    rows = []
    for record in records:
        about = dict(record.about)
        for group in ("versions", "machine"):
            about |= {f"{group}_{k}": v for k, v in about.pop(group, {}).items()}
        digests = about.pop("overrides", None) or {}
        settings = {
            k: " ".join(v) if isinstance(v, list) else v for k, v in record.run.settings().items()
        }
        about |= {f"digest_{part}": digest for part, digest in digests.items()}
        last = {f"last_{k}": v for k, v in (record.history[-1] if record.history else {}).items()}
        seconds = sum(v for v in record.column("seconds") if not math.isnan(v))
        rows.append(
            {"hash": record.hash, "method": record.run.method}
            | settings | about | last | {"seconds": seconds, "error": record.error}
        )  # fmt: skip
    return rows


def _columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def write_csv(path: Path | str, records: Iterable[Record]) -> None:
    """A row a run, for a spreadsheet; accuracies are fractions, as in :func:`table`."""
    rows = table(records)
    columns = _columns(rows)
    text = csv_text([columns, *([row.get(name) for name in columns] for row in rows)])
    write_atomically(path, text.encode())


def write_parquet(path: Path | str, records: Iterable[Record]) -> None:
    """A row a run, for data frames; needs pyarrow."""
    arrow = require("pyarrow", "parquet", "a Parquet file")
    parquet = require("pyarrow.parquet", "parquet", "a Parquet file")
    rows = table(records)
    content = {name: [row.get(name) for row in rows] for name in _columns(rows)}
    out = arrow.BufferOutputStream()
    parquet.write_table(arrow.table(content), out)
    write_atomically(path, out.getvalue().to_pybytes())
