"""The tables of pages that help to choose, from benchmarks/ and results/."""

from __future__ import annotations

import csv
from statistics import fmean

from cells import ROOT, results_of_the_repository, table

from noiseproof import results, syntax
from noiseproof.catalogue import CLEAN, METHODS, Setting
from noiseproof.report import Condition

CONDITIONS = (
    (CLEAN, 0.0), ("symmetric", 0.2), ("symmetric", 0.4), ("symmetric", 0.6), ("asymmetric", 0.4),
)  # fmt: skip
HEAD = ("clean", "20% wrong", "40% wrong", "60% wrong", "40% asymmetric")
REPRODUCED = ("CE", "GCE", "SCE", "MAE", "NCE", "NCE+MAE", "NCE+RCE", "JAL-CE")


def read(name: str) -> list[dict[str, str]]:
    with (ROOT / "benchmarks" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def best(rows: list[tuple[str, list[str]]]) -> list[tuple[str, ...]]:
    """The rows with the greatest number of each column in bold."""
    found = []
    for name, cells in rows:
        shown = []
        for i, cell in enumerate(cells):
            column = [float(c[i].split(" ")[0]) for _, c in rows if c[i]]
            greatest = cell and float(cell.split(" ")[0]) == max(column)
            shown.append(f"**{cell}**" if greatest else cell)
        found.append((name, *shown))
    return found


def accuracy_table(data: str) -> str:
    """Test accuracies of the losses on one of the small sets."""
    measured = {
        (m["loss"], m["noise"], float(m["rate"])): f"{m['accuracy_percent']} ± {m['deviation']}"
        for m in read("which_loss") if m["data"] == data
    }  # fmt: skip
    losses = dict.fromkeys(loss for loss, *_ in measured)
    rows = [
        (
            f"`{loss.replace('1*nce + 1*rce', 'nce + rce')}`",
            [measured[loss, *c] for c in CONDITIONS],
        )
        for loss in losses
    ]
    return "\n".join(table(("loss", *HEAD), best(rows))).rstrip()


def noisy_text_table() -> str:
    """Losses on texts with people's mistakes, and cross entropy on the true labels."""
    read_ = results.read(ROOT / "benchmarks" / "noisy_text.jsonl")
    assert not read_.problems
    rows = []
    for cell in sorted(results.cells(read_.records), key=_true_labels_last):
        curves = [record.column("test_accuracy") for record in cell.records]
        peaks = [max(curve) for curve in curves]
        epochs = sorted(1 + curve.index(max(curve)) for curve in curves)
        known = not _true_labels_last(cell)[0]
        parts = (
            [mean_of(cell, name) for name in ("memorised", "wrong_accuracy")] if known else ["", ""]
        )
        rows.append((
            cell.method if known else f"{cell.method} on the true labels",
            f"{cell.mean:.1f} ± {cell.deviation:.1f}",
            f"{100 * fmean(peaks):.1f} (epoch {epochs[0]} to {epochs[-1]})",
            *parts,
        ))  # fmt: skip
    head = ("loss", "last epoch", "best epoch", "wrong labels memorised", "seen through")
    return "\n".join(table(head, rows)).rstrip()


def _true_labels_last(cell: results.Cell) -> tuple[bool, int]:
    ranks = [method.label for method in METHODS.values()]
    return cell.records[0].about.get("noise_rate") is None, ranks.index(cell.method)


def mean_of(cell: results.Cell, column: str) -> str:
    return f"{100 * fmean(record.column(column)[-1] for record in cell.records):.0f} %"


def reproduced_table(dataset: str) -> str:
    """What the reproduction measured with the paper's settings."""
    found = results_of_the_repository()
    rows = []
    for method in REPRODUCED:
        cells = [found.find(Condition(dataset, *c), method) for c in CONDITIONS]
        shown = ["" if c is None or c.ours is None else f"{c.ours.cell.mean:.2f}" for c in cells]
        if any(shown):
            rows.append((f"{method}, `{_text(method, dataset)}`", shown))
    return "\n".join(table(("loss", *HEAD), best(rows))).rstrip()


def _text(method: str, dataset: str) -> str:
    setting = METHODS[method.lower()].paper.get(dataset) if method.lower() in METHODS else None
    return syntax.short(setting.loss) if isinstance(setting, Setting) else method.lower()


def imbalance_table(data: str) -> str:
    """What was measured of rare classes, with class weights and without."""
    measured: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    for m in read("imbalance"):
        if m["data"] == data:
            cells = measured.setdefault((m["loss"], m["weighted"]), {})
            cells[m["what"], m["rate"]] = f"{float(m['percent']):.1f}"
    found = list(dict.fromkeys(c for cells in measured.values() for c in cells))
    kinds = dict.fromkeys(what for what, _ in found)
    columns = [c for what in kinds for c in found if c[0] == what]
    rows = [
        (f"`{loss}`", weighted, *(cells[c] for c in columns))
        for (loss, weighted), cells in measured.items()
    ]
    head = (
        "loss",
        "class weights",
        *(f"{what}, {float(rate):.0%} wrong" for what, rate in columns),
    )
    return "\n".join(table(head, rows, left=2)).rstrip()


def sklearn_table(data: str) -> str:
    """RobustClassifier and scikit-learn's own classifiers on one of the tables."""
    measured = [m for m in read("sklearn_tables") if m["data"] == data]
    times = {m["classifier"]: m["times_mlp"] for m in measured}
    accuracies: dict[str, list[str]] = {}
    for m in measured:
        cell = f"{m['accuracy_percent']} ± {m['deviation']}"
        accuracies.setdefault(m["classifier"], []).append(cell)
    rows = [(f"`{name}`", *cells, times[name]) for name, *cells in best(list(accuracies.items()))]
    return "\n".join(table(("classifier", *HEAD[:3], "time"), rows)).rstrip()
