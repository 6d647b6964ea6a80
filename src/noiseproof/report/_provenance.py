"""Where the numbers come from: the settings, the machine and the versions of every run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..catalogue import dataset_title, noise_title
from ..results import Record
from ._study import Study

_WITH_COLUMN = ("dataset", "noise", "rate", "loss", "protocol", "seed")


@dataclass(frozen=True)
class ProvenanceRow:
    """A run."""

    hash: str
    values: list[str]
    settings: int
    """its number in :attr:`Provenance.settings`, counted from 1"""
    machine: int
    """its number in :attr:`Provenance.machines`, counted from 1"""


@dataclass(frozen=True)
class Provenance:
    """Every run. What many runs share is written once, and their rows refer to it."""

    settings: list[str]
    machines: list[str]
    rows: list[ProvenanceRow]
    headers: tuple[str, ...] = (
        "Run", "Data", "Noise", "Loss", "in full", "Protocol", "Seed", "Accuracy", "Settings",
        "Machine",
    )  # fmt: skip


def make_provenance(study: Study) -> Provenance:
    settings: dict[str, int] = {}
    machines: dict[str, int] = {}
    rows = []
    for cell in study.cells:
        for record in [*cell.records, *cell.failed]:
            run = record.run
            values = [
                dataset_title(cell.dataset), noise_title(cell.noise, cell.rate), cell.method,
                run.loss, cell.protocol, str(run.seed),
                "ended early" if record in cell.failed else f"{record.accuracy:.2%}",
            ]  # fmt: skip
            rest = {k: v for k, v in run.settings().items() if k not in _WITH_COLUMN and v != []}
            rest |= {k: record.about[k] for k in ("parameters",) if k in record.about}
            settings_number = settings.setdefault(_format_values(rest), len(settings) + 1)
            machine_number = machines.setdefault(_format_machine(record), len(machines) + 1)
            rows.append(ProvenanceRow(record.hash, values, settings_number, machine_number))
    return Provenance(list(settings), list(machines), rows)


def _format_machine(record: Record) -> str:
    about = record.about
    machine, versions = about.get("machine", {}), about.get("versions", {})
    return _format_values({**machine, **versions}) or "not recorded"


def _format_values(values: dict[str, Any]) -> str:
    words = {True: "yes", False: "no"}
    return ", ".join(
        f"{name.replace('_', ' ')} {words[v] if isinstance(v, bool) else v}"
        for name, v in values.items()
        if v is not None and v != ""
    )
