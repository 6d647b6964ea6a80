"""The tables of docs/which-loss.md, docs/imbalance.md and docs/find-wrong-labels.md."""

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
RANKINGS = ("posterior", "p(given)", "margin")
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


def human_audit_table() -> str:
    """How many wrong labels audits of CIFAR-10N worst find."""
    found: dict[tuple[str, str, str], dict[str, dict[str, str]]] = {}
    for m in read("audit"):
        if m["data"] == "CIFAR-10N worst":
            by_first = found.setdefault((m["how"], m["loss"], m["epochs"]), {})
            by_first[f"{m['ranking']} {m['first']}"] = m
    rows = []
    for (how, loss, epochs), cells in found.items():
        for ranking, name in (("posterior", "noiseproof"), ("cleanlab", "cleanlab")):
            first, more = (cells[f"{ranking} {n}"] for n in (10_000, 20_000))
            rows.append((
                f"`{loss}`, {epochs} epochs", how if how == "votes" else "5 folds", name,
                _tenth(first["precision_percent"]), _tenth(more["precision_percent"]),
                _tenth(more["recall_percent"]), _tenth(more["suggestion_right_percent"]),
                _tenth(more["estimated_percent"]),
            ))  # fmt: skip
    head = (
        "network", "probabilities", "ranking", "right of the first 10,000", "of the first 20,000",
        "found in 20,000", "suggestion right", "estimated wrong",
    )  # fmt: skip
    return "\n".join(table(head, rows, left=3)).rstrip()


def small_audit_table() -> str:
    """The same on small sets, of as many suspects as labels are wrong."""
    found: dict[tuple[str, ...], dict[str, dict[str, str]]] = {}
    for m in read("audit"):
        if m["data"] != "CIFAR-10N worst":
            key = (m["data"], m["noise"], m["how"], m["loss"])
            found.setdefault(key, {})[m["ranking"]] = m
    rows = []
    for (data, noise, how, loss), by_ranking in found.items():
        ours = by_ranking["posterior"]
        rows.append((
            f"{data}, {noise}", f"`{loss}`", how if how == "votes" else "5 folds",
            *(_tenth(by_ranking[r]["precision_percent"]) for r in RANKINGS),
            _tenth(ours["wrong_percent"]), _tenth(ours["estimated_percent"]),
            _tenth(by_ranking["cleanlab"]["estimated_percent"]),
        ))  # fmt: skip
    head = (
        "labels", "loss", "probabilities", "posterior", "p(given)", "margin", "wrong", "estimated",
        "by cleanlab",
    )  # fmt: skip
    return "\n".join(table(head, rows, left=3)).rstrip()


def _tenth(number: str) -> str:
    return f"{float(number):.1f}"
