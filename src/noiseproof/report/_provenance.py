"""Where the numbers come from: the settings, the machine and the versions of every run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..catalogue import dataset_title
from ..results import Cell, Record, missing
from ._curves import rounded
from ._entries import condition_of
from ._study import Study
from ._words import protocol_title

_WITH_COLUMN = ("dataset", "noise", "rate", "loss", "protocol", "seed", "name")
HEADERS = (
    "Run", "Data", "Noise", "Loss", "in full", "Protocol", "Seed", "Accuracy, %", "Settings",
    "Machine",
)  # fmt: skip


@dataclass(frozen=True)
class Provenance:
    """Every run. What many runs share is written once, and their rows refer to it."""

    settings: list[str]
    """the first in full, the others by how they differ from it"""
    machines: list[str]
    words: list[str]
    """what rows name: data sets, noises, losses, protocols"""
    rows: list[list[Any]]
    """for each run: its name or hash; the indices of data set, noise, loss, loss in full and
    protocol in ``words``; seed; accuracy in percent, or why there is none; the numbers of settings
    and machine, counted from 1"""


def make_provenance(study: Study) -> Provenance:
    settings: dict[str, int] = {}
    machines: dict[str, int] = {}
    words: dict[str, int] = {}
    base: dict[str, Any] = {}
    rows = []
    for cell in study.cells:
        columns = [words.setdefault(text, len(words)) for text in _columns(study, cell)]
        for record in [*cell.records, *cell.failed]:
            used = _settings(cell, record)
            base = base or used
            text = _format_values(used) if used == base else _difference(used, base)
            rows.append([
                record.run.folder, *columns, record.run.seed, _accuracy(record),
                settings.setdefault(text, len(settings) + 1),
                machines.setdefault(_format_machine(record), len(machines) + 1),
            ])  # fmt: skip
    return Provenance(list(settings), list(machines), list(words), rows)


def _columns(study: Study, cell: Cell) -> tuple[str, ...]:
    return (
        dataset_title(cell.dataset), study.noise_words(condition_of(cell)), cell.method,
        cell.settings["loss"], protocol_title(cell.protocol, cell.dataset),
    )  # fmt: skip


def _accuracy(record: Record) -> float | str:
    if record.error is None and math.isfinite(100 * record.accuracy):
        return rounded(100 * record.accuracy)
    return missing(record)


def _settings(cell: Cell, record: Record) -> dict[str, Any]:
    """The settings that have no column."""
    found = {k: v for k, v in cell.settings.items() if k not in _WITH_COLUMN and v != []}
    found |= {k: record.about[k] for k in ("parameters",) if k in record.about}
    if left_out := record.about.get("left_out"):
        found["left_out"] = f"{left_out['count']:,} that cannot be read ({left_out['digest']})"
    return found


def _difference(used: dict[str, Any], base: dict[str, Any]) -> str:
    changed = {name: value for name, value in used.items() if base.get(name) != value}
    without = [f"no {name.replace('_', ' ')}" for name in base if name not in used]
    return f"as S1, but {', '.join([*filter(None, [_format_values(changed)]), *without])}"


def _format_machine(record: Record) -> str:
    about = record.about
    machine, versions = about.get("machine") or {}, about.get("versions") or {}
    return _format_values({**machine, **versions}) or "not recorded"


def _format_values(values: dict[str, Any]) -> str:
    words = {True: "yes", False: "no"}
    return ", ".join(
        f"{name.replace('_', ' ')} {words[v] if isinstance(v, bool) else v}"
        for name, v in values.items()
        if v is not None and v != ""
    )
