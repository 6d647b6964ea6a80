"""The paper's argument in figures, in its order, each with a computed caption."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..catalogue import CLEAN, GIVEN, is_active_passive
from ._curves import (
    Curve,
    clean_train_accuracy,
    column,
    drop_from_best,
    final_mean,
    mean_curve,
)
from ._entries import Condition, Entry
from ._figure import (
    MAX_LINES,
    MAX_PANELS,
    MEMORISED,
    TEST_ACCURACY,
    Figure,
    Panel,
    drawn_entries,
    drawn_labels,
    figure_by_noise,
    limited,
    sample,
    without_none,
)
from ._study import Study
from ._styles import PERCENT, TIMES
from ._words import ACCURACY_WORDS

_NORMALIZED_PAIRS = (
    ("CE", "NCE"), ("FL", "NFL"), ("GCE", "NGCE"), ("MAE", "NMAE"), ("RCE", "NRCE"),
)  # fmt: skip


def story_conditions(study: Study) -> list[Condition]:
    """One noisy condition for each data set: symmetric noise of 0.6, or the nearest to it.

    Labels as given are not among them: their losses were chosen to find the best, not for the
    paper's argument.
    """
    found: dict[str, Condition] = {}
    for condition in study.conditions:
        if condition.noise in (CLEAN, GIVEN):
            continue
        best = found.get(condition.dataset)
        if best is None or _distance(condition) < _distance(best):
            found[condition.dataset] = condition
    return list(found.values())


def _distance(condition: Condition) -> tuple[bool, float]:
    return condition.noise != "symmetric", abs(condition.rate - 0.6)


def robustness_figures(study: Study) -> Iterator[Figure]:
    """Losses beside their normalized forms (figures 1 and 2 of the paper)."""
    for condition in story_conditions(study):
        entries = drawn_entries(study, condition)
        panels, drops = [], []
        for plain, normalized in _NORMALIZED_PAIRS:
            pair = [e for e in entries if e.cell.method in (plain, normalized)]
            curves = without_none(mean_curve(e.cell, e.label, TEST_ACCURACY) for e in pair)
            ran = {e.cell.method for e in pair}
            missing = [m for m in (plain, normalized) if m not in ran]
            if not curves or (missing and plain not in ("CE", "FL")):
                continue
            note = f"{' and '.join(missing)} not run" if missing else ""
            title = " and ".join(m for m in (plain, normalized) if m in ran)
            panels.append(Panel(title, "epochs", curves, note=note))
            drops += [
                f"{e.label} {drop_from_best(e.cell, TEST_ACCURACY):.1f}"
                for e in pair
                if e.label in {c.label for c in curves}
            ]
        if panels:
            accuracy = ACCURACY_WORDS[study.judged_on([condition])]
            caption = (
                f"Does a loss become robust when it is normalized? Points of {accuracy} lost "
                f"from the best epoch to the last: {', '.join(drops)}."
            )
            name, title = f"robust-{condition.dataset}", study.name(condition)
            yield Figure(name, title, caption, panels, shared_y=True)


def underfitting_figures(study: Study) -> Iterator[Figure]:
    """How much was learnt of the right labels, and of the wrong ones.

    Labels as given have a figure where it is known which are wrong.
    """
    for (_, noise), conditions in study.by_noise.items():
        if noise == CLEAN:
            continue
        drawn = drawn_labels(study, conditions)
        panels = []
        for condition in sample(conditions, MAX_PANELS):
            entries = [e for e in study.at(condition) if e.label in drawn]
            rows = [row for e in entries if (row := _learnt_row(e))]
            if rows:
                panels.append(Panel(study.noise_words(condition), "label-dots", rows=rows))
        if not panels:
            continue
        rows = [row for panel in panels for row in panel.rows]
        least = min(rows, key=lambda row: row["filled"])
        most = max(rows, key=lambda row: row["hollow"])
        argument = "" if noise == GIVEN else "Robust is not enough: a loss must also learn. "
        caption = (
            f"{argument}Filled: right labels learnt; hollow: wrong labels memorised. "
            f"Least learnt: {least['label']}, {least['filled']:.0f}{PERCENT}; "
            f"most memorised: {most['label']}, {most['hollow']:.0f}{PERCENT}."
        )
        yield figure_by_noise(study, "underfitting", conditions, caption, panels)


def _learnt_row(entry: Entry) -> dict[str, Any] | None:
    right = final_mean(entry.cell, clean_train_accuracy)
    wrong = final_mean(entry.cell, MEMORISED)
    if right is None or wrong is None:
        return None
    caption = (
        f"{entry.label}: {right:.1f}{PERCENT} of the right labels learnt, "
        f"{wrong:.1f}{PERCENT} of the wrong"
    )
    return {"label": entry.label, "filled": right, "hollow": wrong, "caption": caption}


def scaling_figures(study: Study) -> Iterator[Figure]:
    """Losses times a factor (figure 3 of the paper)."""
    for condition, cells in study.scaled.items():
        panels, best_factors = [], []
        for method in dict.fromkeys(row.method for row in cells):
            rows = [row for row in cells if row.method == method and row.cell.records]
            curves = without_none(
                mean_curve(row.cell, f"{TIMES}{row.factor:g}", TEST_ACCURACY)
                for row in sample(rows, MAX_LINES)
            )
            if len(curves) > 1:
                panels.append(Panel(method, "epochs", curves))
                best = _best_at_the_end(curves)
                best_factors.append(f"{method} {best.label} ({best.last or 0:.1f}{PERCENT})")
        if panels:
            caption = (
                "Does a larger loss learn more? Best factor at the last epoch: "
                f"{', '.join(best_factors)}."
            )
            name = f"scaling-{condition.dataset}-{condition.noise}-{condition.rate:g}"
            title = study.name(condition)
            yield Figure(name, title, caption, panels, shared_y=True)


def _best_at_the_end(curves: list[Curve]) -> Curve:
    return max(curves, key=lambda c: c.last or 0)


def active_passive_figures(study: Study) -> Iterator[Figure]:
    """One robust loss alone, and two together (figure 4 of the paper)."""
    groups: tuple[tuple[str, Callable[[str], bool]], ...] = (
        ("One loss alone", ("NCE", "NFL", "NGCE", "MAE", "RCE").__contains__),
        ("Active + passive", is_active_passive),
        ("Two of a kind", ("NFL+NCE", "MAE+RCE").__contains__),
    )
    for condition in story_conditions(study):
        panels, best_losses = [], []
        shown = drawn_entries(study, condition)
        for title, belongs in groups:
            entries = [e for e in shown if belongs(e.cell.method)]
            curves = without_none(mean_curve(e.cell, e.label, TEST_ACCURACY) for e in entries)
            if curves:
                panels.append(Panel(title, "epochs", curves))
                best = _best_at_the_end(curves)
                best_losses.append(f"{title.lower()}: {best.label} {best.last or 0:.1f}{PERCENT}")
        if any(panel.title == "Active + passive" for panel in panels):
            caption = f"Are two better than one? Best at the last epoch, {'; '.join(best_losses)}."
            name, title = f"active-passive-{condition.dataset}", study.name(condition)
            yield Figure(name, title, caption, panels, shared_y=True)


def parameter_figures(study: Study) -> Iterator[Figure]:
    """Accuracy by the weights alpha and beta (figure 5 of the paper)."""
    panels, best_weights = [], []
    for condition, cells in study.grid.items():
        rows: list[dict[str, Any]] = []
        for alpha, beta, cell in cells:
            value = final_mean(cell, column("validation_accuracy"))
            if value is not None:
                caption = f"alpha {alpha:g}, beta {beta:g}: {value:.1f}{PERCENT}"
                rows.append({"x": beta, "y": alpha, "value": value, "caption": caption})
        if rows:
            title = study.name(condition)
            panels.append(Panel(title, "heatmap", rows=rows))
            best = max(rows, key=lambda row: row["value"])
            best_weights.append(f"{title}: {best['caption']}")
    if panels:
        caption = (
            "Accuracy on held-out, noisy labels of alpha NCE + beta RCE after the last epoch. "
            f"Best on {'; '.join(best_weights[:MAX_PANELS])}."
        )
        yield limited(Figure("parameters", "The weights of the two parts", caption, panels))
