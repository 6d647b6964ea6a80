"""Where numbers come from: the settings, versions and machines of runs, each said once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..results import Record
from ._names import dataset_name, noise_name
from ._study import Study

_SHOWN = ("dataset", "noise", "rate", "loss", "protocol", "seed")  # these have columns
_USED = ("weight_decay", "l1", "parameters")  # what the settings came to


@dataclass(frozen=True)
class Origin:
    """A run as a row; its settings and machine by their numbers in the lists."""

    hash: str
    values: list[str]
    settings: int
    machine: int


@dataclass(frozen=True)
class Origins:
    """Every run, and the lists that its row points into."""

    settings: list[str]
    machines: list[str]
    runs: list[Origin]
    heads: tuple[str, ...] = (
        "Run", "Data", "Noise", "Loss", "in full", "Protocol", "Seed", "Accuracy", "Settings",
        "Machine",
    )  # fmt: skip


def origins(study: Study) -> Origins:
    settings: dict[str, int] = {}
    machines: dict[str, int] = {}
    runs = []
    for cell in study.cells:
        for record in [*cell.records, *cell.failed]:
            s = record.settings
            values = [
                dataset_name(cell.dataset), noise_name(cell.noise, cell.rate), s["loss"],
                str(record.about.get("loss", "")), cell.protocol, str(s["seed"]),
                "ended early" if record in cell.failed else f"{record.accuracy:.2%}",
            ]  # fmt: skip
            used = {k: record.about[k] for k in _USED if k in record.about}
            rest = _said({k: v for k, v in {**s, **used}.items() if k not in _SHOWN})
            at = settings.setdefault(rest, len(settings) + 1)
            where = machines.setdefault(_machine(record), len(machines) + 1)
            runs.append(Origin(record.hash, values, at, where))
    return Origins(list(settings), list(machines), runs)


def _machine(record: Record) -> str:
    about = record.about
    machine = {**about.get("machine", {})}
    if "precision" in about:
        machine["precision"] = about["precision"]
    return _said({**machine, **about.get("versions", {})}) or "not recorded"


def _said(values: dict[str, Any]) -> str:
    said = {True: "yes", False: "no"}
    return ", ".join(
        f"{name.replace('_', ' ')} {said[v] if isinstance(v, bool) else v}"
        for name, v in values.items()
        if v is not None
    )
