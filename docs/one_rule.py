"""The tables of docs/one-rule.md, from the runs under benchmarks/rule/."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean, stdev
from typing import Any

from cells import ROOT, table

from noiseproof._imports import without_digest
from noiseproof.catalogue import CLEAN, GIVEN, noise_title
from noiseproof.results import TEST_ACCURACY, Record, read
from noiseproof.runs import Run

sys.path.insert(0, str(ROOT / "benchmarks"))

import rule

MISSING = "not measured"
_SETS = {"cifar10": "CIFAR-10", "pairs": "pairs of digits", "small": "CIFAR-10"}
NO_LIMIT = "auto, no limit"
HELD_OUT = ", held out"
READ = {"": "", ", averaged": "_ema", HELD_OUT: "_chosen"}  # the column of each reading of a run
_NEWS = "train.csv.gz"  # what NoisyAG-News is called by its file


def committed(kind: str) -> dict[str, Record]:
    """The runs of a kind, by hash."""
    path = rule.COMMITTED / f"{kind}.jsonl"
    reading = read(*([path] if path.exists() else []))
    if reading.problems:
        raise ValueError("; ".join(reading.problems))
    return {record.hash: record for record in reading.records}


def found(runs: Iterable[Run], records: Mapping[str, Record]) -> list[Record]:
    """Those of the runs that are there, whatever precision they had."""
    hashes = [[r.hash for r in run.resolutions()] for run in runs]
    return [records[h] for alike in hashes for h in alike if h in records][: len(hashes)]


def mean(percents: Sequence[float]) -> str:
    if not percents:
        return MISSING
    spread = f" ± {stdev(percents):.1f}" if len(percents) > 1 else ""
    return f"{fmean(percents):.1f}{spread}"


def cell_title(cell: Mapping[str, Any]) -> str:
    noise, rate = cell.get("noise", GIVEN), cell.get("rate", 0.0)
    return "clean" if noise == CLEAN else noise_title(noise, rate)


def parts_table(name: str) -> str:
    """What each part adds: the whole, and the whole without it."""
    records, seeds = committed("parts"), sorted({r.run.seed for r in committed("parts").values()})
    cells = rule.PARTS_ON[name]
    runs = iter(rule.parts(name, [0]))
    at = {(part, i): next(runs) for i in range(len(cells)) for part in rule.PARTS}
    rows = []
    for part in rule.PARTS:
        texts = []
        for i in range(len(cells)):
            alike = [replace(at[part, i], seed=seed) for seed in seeds]
            texts.append(mean([100 * _ends_with(r) for r in found(alike, records)]))
        rows.append((f"`{part}`" if part == "auto" else part, *texts))
    regrets = []
    for i in range(len(cells)):
        there = found([replace(at["auto", i], seed=seed) for seed in seeds], records)
        regrets.append(mean([_regret(r) for r in there]))
    rows.append(("regret of `auto`", *regrets))
    return "\n".join(table(("", *map(cell_title, cells)), rows)).rstrip()


def choice_table(*names: str) -> str:
    """What was tried, by the clean labels of images set aside; means over the seeds."""
    groups: dict[tuple[str, str, str], dict[tuple[str, float], list[Record]]] = {}
    for record in committed("choose").values():
        run = record.run
        name = rule.set_of(run)
        if name not in names:
            continue
        weigh = next(
            key for key, of in rule.WEIGHTS.items()
            if Run(loss=of(rule.CLASSES[name])).resolve().loss == run.loss
        )  # fmt: skip
        what = [f"horizon {run.ema_horizon:g}"] if run.ema_horizon != rule.HORIZON else []
        what += ["growing"] * (run.shrink_schedule == "linear")
        what += [f"floor {run.lr_floor / run.lr:g}"] * (run.lr_floor > 0)
        what += [f"lr {run.lr:g}"] * (run.lr != rule.SETS[name]["lr"])
        key = (weigh, f"{run.shrink:g}", ", ".join(what))
        groups.setdefault(key, {}).setdefault((name, run.rate), []).append(record)
    at = [(name, rate) for name in names for rate in rule.SETS[name]["rates"]]
    rows = []
    for key, cells in sorted(groups.items(), key=lambda kv: (kv[0][0], float(kv[0][1]), kv[0][2])):
        texts = []
        for place in at:
            alike = cells.get(place, [])
            best = [100 * max(r.column(f"{TEST_ACCURACY}_ema")) for r in alike]
            chosen = mean([100 * _chosen(r) for r in alike])
            texts.append(f"{chosen} ({fmean(best):.1f})" if alike else MISSING)
        weigh, shrink, changed = key
        rows.append((f"`{weigh}`", shrink, changed, *texts))
    head = [f"{_SETS[name]}, {rate:g}" for name, rate in at]
    return "\n".join(table(("weights", "penalty", "", *head), rows, left=3)).rstrip()


def proof_table(name: str) -> str:
    """The rule beside published settings: last epoch, averaged, and with an epoch chosen."""
    dataset = _NEWS if name == "news" else name
    records = [
        r for r in committed("proof").values() if without_digest(r.run.dataset) == dataset
    ]  # fmt: skip
    if not records:
        return f"Not measured yet: `python benchmarks/rule.py proof {name}`."
    by_cell = [_of_cell(records, cell) for cell in rule.CELLS[name]]
    ours = [[r for r in alike if r.run.method == "auto"] for alike in by_cell]
    rows = [("`auto`", *(mean([100 * _ends_with(r) for r in of]) for of in ours))]
    for rival, (reading, column) in product(rule.RIVALS[name], READ.items()):
        wanted = (rival, 0.0, reading == HELD_OUT)
        texts = []
        for alike in by_cell:
            of = [r for r in alike if (r.run.method, r.run.shrink, r.run.choose_epoch) == wanted]
            texts.append(mean([100 * r.column(TEST_ACCURACY + column)[-1] for r in of]))
        if set(texts) != {MISSING}:
            rows.append((f"{rival}{reading}", *texts))
    rows.append(("regret of `auto`", *(mean([_regret(r) for r in of]) for of in ours)))
    return "\n".join(table(("", *map(cell_title, rule.CELLS[name])), rows)).rstrip()


def _of_cell(records: Iterable[Record], cell: Mapping[str, Any]) -> list[Record]:
    labels = (cell.get("noise", GIVEN), cell.get("rate", 0.0))
    return [r for r in records if (r.run.noise, r.run.rate) == labels]


def limits_table() -> str:
    """Tables by the limit of the penalty: means over all cells, also of the last epoch."""
    rows = [r for r in _of_tables("choose") if r["setting"].startswith("auto")]
    limits = list(dict.fromkeys(row["setting"] for row in rows))

    def shown(of: Sequence[Mapping[str, str]]) -> list[str]:
        by_limit = [[row for row in of if row["setting"] == limit] for limit in limits]
        return [
            f"{fmean(float(row['ends_with']) for row in alike):.1f} "
            f"({fmean(float(row['last']) for row in alike):.1f})"
            for alike in by_limit
        ]

    names = dict.fromkeys(row["table"] for row in rows)
    found = [(name, *shown([row for row in rows if row["table"] == name])) for name in names]
    head = ("table", *(limit.removeprefix("auto, ") for limit in limits))
    return "\n".join(table(head, [*found, ("mean", *shown(rows))])).rstrip()


def tables_table() -> str:
    """auto beside other losses on the tables that it was not chosen on."""
    rows = _of_tables("proof")
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    cells: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for row in rows:
        cell = cells.setdefault((row["table"], row["noise"], row["rate"]), {})
        cell.setdefault(row["setting"], []).append(float(row["ends_with"]))
    found = []
    for (name, noise, rate), of in cells.items():
        title = cell_title({"noise": noise, "rate": float(rate)})
        found.append((name, title, *(mean(of[setting]) for setting in settings)))
    means = (f"{fmean(fmean(of[setting]) for of in cells.values()):.1f}" for setting in settings)
    found.append(("mean", "", *means))
    head = (
        "table",
        "labels",
        *(f"`{s}`" if s != NO_LIMIT else "`auto`, no limit" for s in settings),
    )
    return "\n".join(table(head, found, left=2)).rstrip()


def _of_tables(part: str) -> list[dict[str, str]]:
    with (rule.COMMITTED.parent / "rule_tables.csv").open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["part"] == part]


def _regret(record: Record) -> float:
    """How far the chosen epoch is from the best one by test accuracy, in points."""
    return 100 * (max(record.column(f"{TEST_ACCURACY}_ema")) - _chosen(record))


def _ends_with(record: Record) -> float:
    """The accuracy at the chosen epoch; where none is chosen, of the average in the end."""
    averaged = record.run.ema_horizon and not record.run.choose_epoch
    return record.column(f"{TEST_ACCURACY}_ema")[-1] if averaged else record.accuracy


def _chosen(record: Record) -> float:
    """The accuracy of the epoch that was chosen; also of runs that do not have the column."""
    chosen = int(record.column("chosen_epoch")[-1])
    return record.column(f"{TEST_ACCURACY}_ema")[chosen - 1]
