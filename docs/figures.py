"""Figures 2, 4 and 5 of the paper drawn from the runs under results/, and what they show."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import replace

from cells import Results
from claims import (
    FIGURES,
    MAX_DROP,
    NORMALIZED,
    ROBUST,
    TWO_OF_A_KIND,
    Claim,
    best_weights,
    claims_table,
    curve,
    drop,
    equal_weights,
    measured,
    validation_accuracy,
    verdict,
    where,
)

from noiseproof import report
from noiseproof.catalogue import DATASETS, dataset_title
from noiseproof.report import Condition, Figure, condition_name
from noiseproof.report._compile import panel_rows
from noiseproof.report._curves import clean_train_accuracy, final_mean, mean_curve
from noiseproof.report._figure import TEST_ACCURACY, Panel, without_none
from noiseproof.results import Cell

CIFAR10 = FIGURES[0]
OVERFITS_FROM = 25  # the epoch that the paper names
PAPER_A, AUTHORS_A = -4.0, math.log(1e-4)
PUBLISHED_WEIGHTS = {"cifar10": (1.0, 1.0), "cifar100": (10.0, 0.1)}


def figures(results: Results) -> dict[str, Figure]:
    """The figures that there are runs for, by the name of their file."""
    found = {"figure-2": figure_2(results), "figure-4": figure_4(results)}
    found["figure-5"] = figure_5(results)
    return {name: figure for name, figure in found.items() if figure is not None}


def svg(results: Results, figure: Figure) -> str:
    drawn = report.picture(figure, results.report.study.styles, "svg").decode().rstrip()
    return drawn + origin(figure)


def origin(figure: Figure) -> str:
    """Ends a picture: the digest of its numbers. Its lines depend on the machine's fonts as well.

    It tells that a picture is out of date.
    """
    shown = [(panel.title, panel_rows(panel)) for panel in figure.panels]
    text = json.dumps([figure.title, shown], sort_keys=True)
    return f"\n<!-- of numbers with the sha256 {hashlib.sha256(text.encode()).hexdigest()} -->\n"


def epochs_panel(title: str, cells: dict[str, Cell]) -> Panel:
    curves = (mean_curve(cell, method, TEST_ACCURACY) for method, cell in cells.items())
    return Panel(title, "epochs", without_none(curves))


def normalized_pairs(results: Results) -> dict[str, tuple[Cell, Cell]]:
    """A loss and its normalized form on CIFAR-10, by the name of the loss."""
    found = {}
    for plain, normalized in NORMALIZED.items():
        cells = results.cell(CIFAR10, plain), results.cell(CIFAR10, normalized)
        if cells[0] is not None and cells[1] is not None:
            found[plain] = cells[0], cells[1]
    return found


def figure_2(results: Results) -> Figure | None:
    panels = [
        epochs_panel(f"{plain} and {NORMALIZED[plain]}", {plain: cell, NORMALIZED[plain]: other})
        for plain, (cell, other) in normalized_pairs(results).items()
    ]
    title = f"Test accuracy by epoch, {condition_name(CIFAR10)}"
    return Figure("figure-2", title, "", panels, shared_y=True) if panels else None


def combinations(results: Results) -> list[tuple[Condition, dict[str, Cell]]]:
    return measured(results, (*ROBUST, *TWO_OF_A_KIND), equal_weights)


def figure_4(results: Results) -> Figure | None:
    panels = [epochs_panel(condition_name(c), cells) for c, cells in combinations(results)]
    title = "Test accuracy by epoch of two losses added"
    return Figure("figure-4", title, "", panels) if panels else None


def figure_5(results: Results) -> Figure | None:
    title = "Validation accuracy by the weights of NCE + RCE"
    if not best_weights(results):
        return None
    found = next(f for f in results.report.figures if f.name == "parameters")
    return replace(found, name="figure-5", title=title)


def overfit_from(results: Results) -> Claim:
    parts, holds, of = [], 0, 0
    for plain in ("CE", "FL"):
        if (cell := results.cell(CIFAR10, plain)) is None:
            continue
        values = curve(cell)
        best, then, last = max(values), values[OVERFITS_FROM - 1], values[-1]
        of += 1
        holds += best - then <= MAX_DROP < then - last
        parts.append(
            f"{plain} is best at epoch {values.index(best) + 1} ({best:.1f}), has {then:.1f} at "
            f"epoch {OVERFITS_FROM} and ends at {last:.1f}"
        )
    text = f"CE and FL overfit strongly after epoch {OVERFITS_FROM}"
    return Claim(text, verdict(holds, of), "; ".join(parts))


def stays(text: str, cells: Iterable[tuple[str, Cell]]) -> Claim:
    """That losses do not fall far from their best epoch."""
    drops = {method: drop(cell) for method, cell in cells}
    holds = sum(lost <= MAX_DROP for lost in drops.values())
    shown = ", ".join(f"{method} {lost:.1f}" for method, lost in drops.items())
    evidence = f"points lost from the best epoch to the last: {shown}" * bool(drops)
    return Claim(text, verdict(holds, len(drops)), evidence)


def normalized_learn_less(results: Results) -> Claim:
    pairs = {m: cells for m, cells in normalized_pairs(results).items() if m in ("MAE", "RCE")}
    holds = sum(other.mean < cell.mean - 1 for cell, other in pairs.values())
    shown = (
        f"{NORMALIZED[m]} {other.mean:.1f}, {m} {cell.mean:.1f}"
        for m, (cell, other) in pairs.items()
    )
    text = "NMAE and NRCE underfit more than MAE and RCE, of which they are multiples"
    return Claim(text, verdict(holds, len(pairs)), "; ".join(shown))


def more_noise(results: Results) -> Claim:
    """Whether CE and FL lose the more, the more labels are wrong."""
    parts, holds, of = [], 0, 0
    for dataset in ("mnist", "cifar10", "cifar100"):
        for method in ("CE", "FL"):
            conditions = (Condition(dataset, "symmetric", rate) for rate in (0.2, 0.4, 0.6, 0.8))
            cells = [cell for c in conditions if (cell := results.cell(c, method))]
            if len(cells) < 4:
                continue
            lost = [drop(cell) for cell in cells]
            of += 1
            holds += lost == sorted(lost)
            shown = ", ".join(f"{d:.1f}" for d in lost)
            parts.append(f"{dataset_title(dataset)}, {method}: {shown}")
    evidence = "points lost at 0.2, 0.4, 0.6 and 0.8: " + "; ".join(parts)
    return Claim("The more noise, the more they overfit", verdict(holds, of), evidence * bool(of))


def ahead(results: Results) -> Claim:
    parts, holds, of = [], 0, 0
    for condition, cells in combinations(results):
        low = min(ROBUST, key=lambda m: cells[m].mean)
        high = max(TWO_OF_A_KIND, key=lambda m: cells[m].mean)
        gap = cells[low].mean - cells[high].mean
        of += 1
        holds += gap > 1
        parts.append(
            f"{where(condition)}: the last of the four, {low}, ends at {cells[low].mean:.1f}, the "
            f"first of the two, {high}, at {cells[high].mean:.1f} ({gap:+.1f})"
        )
    return Claim("All four end clearly above both", verdict(holds, of), "; ".join(parts))


def learn_less(results: Results) -> Claim:
    """Of the training images whose label is right, how many were learnt."""
    parts, holds, of = [], 0, 0
    for condition, cells in combinations(results):
        learnt = {m: final_mean(cell, clean_train_accuracy) or 0.0 for m, cell in cells.items()}
        least = min(learnt[m] for m in ROBUST)
        of += len(TWO_OF_A_KIND)
        holds += sum(learnt[m] < least for m in TWO_OF_A_KIND)
        shown = ", ".join(f"{m} {share:.1f}" for m, share in learnt.items())
        parts.append(f"{where(condition)}: {shown}")
    evidence = "right labels learnt in training, %: " + "; ".join(parts)
    return Claim("But they underfit", verdict(holds, of), evidence * bool(of))


def best_pair(results: Results) -> Claim:
    """Whether the weights that the paper chose are the best of its grid.

    They hold in part where the best is no more than two standard errors ahead.
    """
    parts, holds, near, of = [], 0, 0, 0
    for condition in FIGURES:
        cells = results.report.study.grid.get(condition, [])
        if condition.dataset not in best_weights(results):
            continue
        runs = {(c.alpha, c.beta): c.cell.records[0] for c in cells}
        validation = {(c.alpha, c.beta): validation_accuracy(c) for c in cells}
        theirs = PUBLISHED_WEIGHTS[condition.dataset]
        best = max(validation, key=validation.__getitem__)
        held_out = DATASETS[condition.dataset].sizes[0] * runs[best].run.holdout
        share = validation[best] / 100
        error = 100 * math.sqrt(2 * share * (1 - share) / held_out)
        behind = validation[best] - validation[theirs]
        rank = sorted(validation.values(), reverse=True).index(validation[theirs]) + 1
        test = {w: 100 * r.accuracy for w, r in runs.items()}
        top = max(test, key=test.__getitem__)
        of += 1
        holds += theirs == best
        near += theirs != best and behind <= 2 * error
        parts.append(
            f"{where(condition)}: best at {pair(best)} ({validation[best]:.1f}), and "
            f"{pair(theirs)} is number {rank} of {len(runs)} ({validation[theirs]:.1f}), "
            f"{behind:.2f} behind with a standard error of {error:.2f}; on the clean test set the "
            f"best is {pair(top)} ({test[top]:.1f}), and {pair(theirs)} has {test[theirs]:.1f}"
        )
    absent = [where(c) for c in FIGURES if c.dataset not in best_weights(results)]
    parts += [f"{', '.join(absent)}: no grid"] * bool(absent)
    result = "holds in part" if near and holds + near == of else verdict(holds, of)
    chosen = " and ".join(
        f"{pair(weights)} on {dataset_title(d)}" for d, weights in PUBLISHED_WEIGHTS.items()
    )
    return Claim(f"The best weights are {chosen}", result, "; ".join(parts))


def elsewhere(results: Results) -> list[str]:
    """How the weights that the paper chose for CIFAR-100 do on CIFAR-10."""
    cells = results.report.study.grid.get(CIFAR10, [])
    validation = {(c.alpha, c.beta): validation_accuracy(c) for c in cells}
    theirs = PUBLISHED_WEIGHTS["cifar100"]
    if theirs not in validation:
        return []
    rank = sorted(validation.values(), reverse=True).index(validation[theirs]) + 1
    return [
        f"On CIFAR-10 the weights for CIFAR-100, {pair(theirs)}, are number {rank} of "
        f"{len(validation)} ({validation[theirs]:.1f}).", "",
    ]  # fmt: skip


def pair(weights: tuple[float, float]) -> str:
    return "alpha {:g}, beta {:g}".format(*weights)


def missing(results: Results) -> list[str]:
    """What of the paper's figures has no runs."""
    study, drawn = results.report.study, figures(results)
    absent = [f"figure {n}" for n in (2, 4, 5) if f"figure-{n}" not in drawn]
    if not all(results.cell(FIGURES[1], m) for pair in NORMALIZED.items() for m in pair):
        absent.append("figure 1 (figure 2 on CIFAR-100)")
    if not any(c.dataset == "cifar100" for c in study.scaled):
        absent.append("figure 3 (scaled losses on CIFAR-100)")
    if "figure-4" in drawn and FIGURES[1] not in dict(combinations(results)):
        absent.append("CIFAR-100's half of figure 4")
    if "figure-5" in drawn and "cifar100" not in best_weights(results):
        absent.append("CIFAR-100's half of figure 5")
    return [f"Not measured: {', '.join(absent)}.", ""] if absent else []


def section(results: Results) -> list[str]:
    """Each figure: what the paper shows, ours, and whether it shows the same."""
    drawn = figures(results)
    lines: list[str] = []
    if "figure-2" in drawn:
        pairs = normalized_pairs(results)
        alone = [("NCE", pairs["CE"][1]), ("NFL", pairs["FL"][1])] if "CE" in pairs else []
        lines += [
            "### Figure 2: each loss beside its normalized form", "",
            "The paper trains with CE, FL, MAE and RCE and with their normalized forms on "
            "CIFAR-10. One should see CE and FL rise and then fall, as the network memorises the "
            "wrong labels, and their normalized forms keep what they reach; MAE and RCE are "
            "robust already, and stay so.", "",
            *image(drawn["figure-2"]),
            *claims_table([
                overfit_from(results),
                stays("NCE and NFL never overfit", alone),
                stays(
                    "Normalized, MAE and RCE stay robust",
                    ((NORMALIZED[m], pairs[m][1]) for m in ("MAE", "RCE") if m in pairs),
                ),
                normalized_learn_less(results),
                more_noise(results),
            ]),
        ]  # fmt: skip
    if "figure-4" in drawn:
        kinds = [(f"{where(c)}, {m}", cells[m]) for c, cells in combinations(results)
                 for m in TWO_OF_A_KIND]  # fmt: skip
        lines += [
            "### Figure 4: active plus passive, and two of a kind", "",
            "The paper adds two robust losses with weights of 1: an active and a passive one in "
            "four ways, two active (NFL+NCE), two passive (MAE+RCE). One should see all six "
            "curves keep what they reach, and the four reach clearly more.", "",
            *image(drawn["figure-4"]),
            *claims_table([
                ahead(results), stays("Two of a kind are robust", kinds), learn_less(results),
            ]),
        ]  # fmt: skip
    if "figure-5" in drawn:
        lines += [
            "### Figure 5: the weights of NCE and RCE", "",
            "The paper trains alpha NCE + beta RCE on four fifths of the noisy training set and "
            "chooses the weights by the accuracy on the rest, whose labels are as noisy: whoever "
            f"knew all true classes would have {100 * (1 - CIFAR10.rate):.0f} %. One should see "
            "the best weights be 1 and 1 on CIFAR-10, and more active and less passive on "
            "CIFAR-100.", "",
            *image(drawn["figure-5"]),
            *claims_table([best_pair(results)]),
            *elsewhere(results),
            "It holds in part where the best is no more than two standard errors (those of a "
            "difference of two such accuracies) ahead. "
            f"A is {PAPER_A:g} here. With that of the authors' code, {AUTHORS_A:.2f}, weights of 1 "
            f"and 1 would be alpha 1, beta {AUTHORS_A / PAPER_A:.1f} of this grid.", "",
        ]  # fmt: skip
    return [*lines, *missing(results)]


def image(figure: Figure) -> list[str]:
    return [f"![{figure.title}](pictures/{figure.name}.svg)", ""]
