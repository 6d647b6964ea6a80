"""The tables of pages that choose or audit, from benchmarks/ and results/."""

from __future__ import annotations

import csv
import re
from itertools import product
from statistics import correlation, fmean

from cells import ROOT, results_of_the_repository, share_of, table

from noiseproof import results, syntax
from noiseproof.catalogue import CLEAN, DATASETS, METHODS, Setting, method_named
from noiseproof.report import Condition

CONDITIONS = (
    (CLEAN, 0.0), ("symmetric", 0.2), ("symmetric", 0.4), ("symmetric", 0.6), ("asymmetric", 0.4),
)  # fmt: skip
HEAD = ("clean", "20% wrong", "40% wrong", "60% wrong", "40% asymmetric")
RANKINGS = ("posterior", "p(given)", "margin")
_METHODS = ("CE", "GCE", "SCE", "MAE", "NCE", "NCE+MAE", "NCE+RCE", "JAL-CE")
REPRODUCED = {  # by data set: methods, and the protocol whose settings are meant
    "mnist": [(method, "paper") for method in _METHODS],
    "cifar10": [(method, "paper") for method in _METHODS],
    # ResNet-34 with both: the A of RCE is worth ten points there
    "cifar100": [*((method, "paper") for method in _METHODS), ("NCE+RCE", "authors")],
}


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


def noisy_text_table(name: str) -> str:
    """Losses on texts with people's mistakes, and cross entropy on the true labels."""
    read_ = results.read(ROOT / "benchmarks" / f"{name}.jsonl")
    assert not read_.problems
    rows = []
    for cell in sorted(results.cells(read_.records), key=_true_labels_last):
        curves = [record.column("test_accuracy") for record in cell.records]
        peaks = [max(curve) for curve in curves]
        epochs = sorted(1 + curve.index(max(curve)) for curve in curves)
        known = not _true_labels_last(cell)[0]
        parts = (
            [share_of(cell, name) for name in ("memorised", "wrong_accuracy")]
            if known
            else ["", ""]
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


def reproduced_table(dataset: str) -> str:
    """What the reproduction measured with published settings."""
    found = results_of_the_repository()
    rows = []
    for method, protocol in REPRODUCED[dataset]:
        cells = [found.find(Condition(dataset, *c), method, protocol) for c in CONDITIONS]
        shown = ["" if c is None or c.ours is None else f"{c.ours.cell.mean:.2f}" for c in cells]
        if any(shown):
            text, penalty = (of(method, dataset, protocol) for of in (_text, _penalty))
            rows.append((f"{method}, `{text}`" + f", L1 {penalty:g}" * bool(penalty), shown))
    return "\n".join(table(("loss", *HEAD), best(rows))).rstrip()


def _setting(method: str, dataset: str, protocol: str) -> Setting | None:
    entry = METHODS[method.lower()]
    settings = entry.authors if protocol == "authors" else entry.paper
    setting = (settings or {}).get(dataset)
    return setting if isinstance(setting, Setting) else None


def _text(method: str, dataset: str, protocol: str) -> str:
    setting = _setting(method, dataset, protocol)
    text = syntax.short(setting.loss) if setting else method.lower()
    return re.sub(r"\d+\.\d{5,}", lambda found: f"{float(found[0]):.4g}", text)  # log 1e-4: -9.21


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


def evidence() -> str:
    """What `noiseproof.recommend` goes by: accuracies and recalls, each with where it is from."""
    columns = (
        "data", "classes", "samples", "noise", "rate", "loss", "ratio", "class_weight", "percent",
        "source",
    )  # fmt: skip
    lines = [",".join(columns)]

    def add(**values: object) -> None:
        lines.append(",".join(str(values.get(name, "")) for name in columns))

    sizes = {"digits": (10, 1437), "features": (20, 4000)}
    for m in read("which_loss"):
        if m["data"] not in sizes:
            continue  # vectors of an encoder: MAE is best there, which elsewhere may learn nothing
        classes, samples = sizes[m["data"]]
        add(
            data=m["data"], classes=classes, samples=samples, noise=m["noise"], rate=m["rate"],
            loss=m["loss"], percent=m["accuracy_percent"], source="benchmarks/which_loss.csv",
        )  # fmt: skip
    found = results_of_the_repository()
    for dataset, methods in REPRODUCED.items():
        entry = DATASETS[dataset]
        for (method, protocol), (noise, nominal) in product(methods, CONDITIONS):
            cell = found.find(Condition(dataset, noise, nominal), method, protocol)
            if cell is None or cell.ours is None or _penalty(method, dataset, protocol):
                continue
            add(
                data=entry.title, classes=entry.num_classes, samples=entry.sizes[0], noise=noise,
                rate=f"{nominal:g}", loss=_exact(method, dataset, protocol),
                percent=f"{cell.ours.cell.mean:.2f}", source=f"results/{dataset}.jsonl",
            )  # fmt: skip
    conditions: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    for m in read("choose"):
        if m["data"] != "digits":  # which are trained as in the other table
            conditions.setdefault((m["data"], m["noise"], m["rate"]), []).append(m)
    for (data, noise, rate), runs in conditions.items():
        name = "features with AdamW"
        if data in DATASETS:
            entry = DATASETS[data]
            name = f"{entry.title} in {runs[0]['epochs']} epochs"
            sizes[data] = (entry.num_classes, entry.sizes[0])
        for loss, percent in means(runs, "test_percent").items():
            add(
                data=name, classes=sizes[data][0], samples=sizes[data][1], noise=noise, rate=rate,
                loss=loss, percent=f"{percent:.2f}", source="benchmarks/choose.csv",
            )  # fmt: skip
    for ratio, weighted, percent in _worst_recalls():
        add(
            ratio=ratio, class_weight="balanced" if weighted == "yes" else "none",
            percent=f"{percent:.2f}", source="benchmarks/imbalance.csv",
        )  # fmt: skip
    return "\n".join(lines) + "\n"


def _penalty(method: str, dataset: str, protocol: str) -> float:
    """Its L1: such a method is more than its loss, which alone `noiseproof.recommend` names."""
    setting = _setting(method, dataset, protocol)
    return 0.0 if setting is None else setting.l1 or 0.0


def _exact(method: str, dataset: str, protocol: str) -> str:
    """A text that is no name, which would bring other weights on other data."""
    text = _text(method, dataset, protocol)
    if text == "nce + rce":
        return "1*nce + 1*rce"
    return text if "(" in text or method_named(text) in (None, text) else f"1*{text}"


def _worst_recalls() -> list[tuple[str, str, float]]:
    """By ratio of class sizes and by weights, the recall of the worst class over the rates."""
    found: dict[tuple[str, str], list[float]] = {}
    for m in read("imbalance"):
        ratio = m["data"].removeprefix("ratio ") if m["data"] != "features" else "25"
        if m["data"] != "segmentation" and (m["loss"], m["what"]) == ("nce + rce", "least recall"):
            found.setdefault((ratio, m["weighted"]), []).append(float(m["percent"]))
    ordered = sorted(found, key=lambda key: (float(key[0]), key[1]))
    return [(ratio, weighted, fmean(found[ratio, weighted])) for ratio, weighted in ordered]


_NAMES = {"digits": "Digits", "features": "20 classes of features"}
_NOISES = {
    "none": "clean", "symmetric": "symmetric", "asymmetric": "asymmetric",
    "instance": "by instance", "annotator": "an annotator's", "cifar10n-worst": "people's",
}  # fmt: skip
_ORDER = ("digits", "features", "mnist", "cifar10")


def choose_table() -> str:
    """How held-out noisy labels rank the losses, beside how clean ones do."""
    head = (
        "data", "noise", "wrong", "rank correlation", "chosen", "best", "lost", "lost, one seed",
        "`ce` loses", "`nce + rce` loses", "level", "cost",
    )  # fmt: skip
    rows = []
    measured = {m["data"] for m in read("choose")}
    for name in (name for name in _ORDER if name in measured):
        for summary in summaries(name):
            rows.append(tuple(summary[column] for column in head))
    return "\n".join(table(head, rows, left=2)).rstrip()


def summaries(data: str) -> list[dict[str, str]]:
    """A row for each condition of a data set in benchmarks/choose.csv."""
    conditions: dict[tuple[str, str], list[dict[str, str]]] = {}
    for m in read("choose"):
        if m["data"] == data:
            conditions.setdefault((m["noise"], m["rate"]), []).append(m)
    found = []
    for (noise, _), runs in conditions.items():
        held_out, test = means(runs, "held_out_percent"), means(runs, "test_percent")
        chosen, best = max(held_out, key=held_out.__getitem__), max(test, key=test.__getitem__)
        seeds = sorted({m["seed"] for m in runs})
        seconds = [float(m["seconds"]) for m in runs]
        found.append({
            "data": _NAMES.get(data) or DATASETS[data].title,
            "noise": _NOISES[noise],
            "wrong": f"{fmean(float(m['wrong_percent']) for m in runs):.0f} %",
            "rank correlation": f"{rank_correlation(held_out, test):.2f}",
            "chosen": f"`{_plain(chosen)}` {test[chosen]:.1f}",
            "best": f"`{_plain(best)}` {test[best]:.1f}",
            "lost": f"{test[best] - test[chosen]:.1f}",
            "lost, one seed": f"{fmean(_lost(runs, seed) for seed in seeds):.1f}",
            "`ce` loses": f"{test[best] - test['ce']:.1f}",
            "`nce + rce` loses": f"{test[best] - test['1*nce + 1*rce']:.1f}",
            "level": str(len({m["loss"] for m in runs if m["level"] == "yes"})),
            "cost": f"{sum(seconds) / fmean(seconds):.0f}",
        })  # fmt: skip
    return found


def means(runs: list[dict[str, str]], column: str) -> dict[str, float]:
    """By loss, over the seeds."""
    losses = dict.fromkeys(m["loss"] for m in runs)
    return {loss: fmean(float(m[column]) for m in runs if m["loss"] == loss) for loss in losses}


def _lost(runs: list[dict[str, str]], seed: str) -> float:
    """By whoever chooses with this seed alone, on the test set over all seeds."""
    held_out = means([m for m in runs if m["seed"] == seed], "held_out_percent")
    test = means(runs, "test_percent")
    return max(test.values()) - test[max(held_out, key=held_out.__getitem__)]


def rank_correlation(a: dict[str, float], b: dict[str, float]) -> float:
    """Spearman's."""

    def ranks(of: dict[str, float]) -> dict[str, float]:
        return {
            k: sum(w < v for w in of.values()) + sum(w == v for w in of.values()) / 2
            for k, v in of.items()
        }

    first, second = ranks(a), ranks(b)
    return correlation([first[k] for k in a], [second[k] for k in a])


def _plain(loss: str) -> str:
    return loss.replace("1*nce + 1*rce", "nce + rce")


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
