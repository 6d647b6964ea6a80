"""Results chosen and written out: a row a run, as CSV or Parquet."""

from __future__ import annotations

import csv
import importlib
import io
import math
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from ._cells import cell_of
from ._methods import method_of
from ._records import Record
from ._store import write_atomically


def select(records: Iterable[Record], **wanted: Collection[Any]) -> list[Record]:
    """Those records whose settings are among the wanted values; an empty choice takes all.

    A loss is wanted by its text or by its name in the papers, noise and rate as a cell has them
    (`setting_of`).

    >>> from noiseproof import results
    >>> len(results.select([], dataset=["mnist"], loss=["NCE+RCE"], seed=[]))
    0
    """
    kept = list(records)
    for name, values in wanted.items():
        if not values:
            continue
        known = {key for r in kept for key in r.settings}
        if kept and name not in known:
            raise ValueError(f"runs have no setting {name!r}; they have {', '.join(known)}")
        wanted_values = {method_of(v) for v in values} if name == "loss" else values
        kept = [r for r in kept if setting_of(r, name) in wanted_values]
    return kept


def setting_of(record: Record, name: str) -> Any:
    """A setting as runs are chosen by it: the loss by its name in the papers, noise and rate as a
    cell has them.
    """
    if name == "loss":
        return method_of(record.settings["loss"])
    if name in ("noise", "rate"):
        return cell_of(record)[1 if name == "noise" else 2]
    return record.settings.get(name)


def table(records: Iterable[Record]) -> list[dict[str, Any]]:
    """A flat row a run: its hash, settings, what they came to, and its last epoch.

    Columns of the last epoch begin with ``last_``, since a run has an ``epoch`` and ``epochs``.
    """
    rows = []
    for record in records:
        about = dict(record.about)
        about["full_loss"] = about.pop("loss", None)
        for name in ("weight_decay", "l1", "precision"):  # what the run's None came to
            about[f"used_{name}"] = about.pop(name, None)
        for group in ("versions", "machine"):
            about |= {f"{group}_{k}": v for k, v in about.pop(group, {}).items()}
        last = {f"last_{k}": v for k, v in (record.history[-1] if record.history else {}).items()}
        seconds = sum(v for v in record.column("seconds") if not math.isnan(v))
        method = {"hash": record.hash, "method": method_of(record.settings["loss"])}
        rows.append(
            method | record.settings | about | last | {"seconds": seconds, "error": record.error}
        )
    return rows


def _columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def write_csv(path: Path | str, records: Iterable[Record]) -> None:
    """A row a run, for a spreadsheet."""
    rows = table(records)
    out = io.StringIO()
    writer = csv.DictWriter(out, _columns(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(Path(path), out.getvalue().encode())


def write_parquet(path: Path | str, records: Iterable[Record]) -> None:
    """A row a run, for data frames; needs pyarrow."""
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise ValueError(
            'Parquet needs pyarrow: pip install "noiseproof[parquet]", or write a CSV file'
        ) from None
    rows = table(records)
    content = {name: [row.get(name) for row in rows] for name in _columns(rows)}
    out = arrow.BufferOutputStream()
    parquet.write_table(arrow.table(content), out)
    write_atomically(Path(path), out.getvalue().to_pybytes())
