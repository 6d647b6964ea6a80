"""The figures of a report in the order of the paper's argument, each with a computed caption."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ..catalogue import CLEAN, dataset_title, is_active_passive, noise_group, noise_title
from ._curves import Curve, Measure, clean_train_accuracy, column, final_mean, mean_curve
from ._study import Condition, Entry, Study, condition_name
from ._styles import PERCENT, TIMES

TEST_ACCURACY = column("test_accuracy")
MEMORISED = column("memorised")
ChartType = Literal["epochs", "rates", "accuracy-dots", "label-dots", "heatmap"]
LINE_CHARTS: tuple[ChartType, ...] = ("epochs", "rates")
_MIN_RATES = 3  # of a line


@dataclass(frozen=True)
class Panel:
    """One plot: curves, or else rows of numbers.

    Rows of dots have ``label``, ``filled``, ``hollow`` and ``caption``; those of a heat map ``x``,
    ``y``, ``value`` and ``caption``.
    """

    title: str
    chart: ChartType
    curves: list[Curve] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    note: str = ""
    """shown after the title, such as what is missing"""

    @property
    def labels(self) -> list[str]:
        return [c.label for c in self.curves] or [r["label"] for r in self.rows if "label" in r]


@dataclass(frozen=True)
class Figure:
    """Panels with charts of one type under one caption."""

    name: str
    title: str
    caption: str
    panels: list[Panel]
    shared_y: bool = False
    """whether all panels have the same y axis"""

    @property
    def y_domain(self) -> tuple[float, float] | None:
        """The range of the shared y axis."""
        curves = [c for panel in self.panels for c in panel.curves] if self.shared_y else []
        ys = [y for c in curves for y in c.y if y is not None]
        return (min(ys), max(ys)) if ys else None

    @property
    def chart(self) -> ChartType:
        return self.panels[0].chart

    @property
    def labels(self) -> list[str]:
        """The labels of all panels, each once."""
        return list(dict.fromkeys(label for panel in self.panels for label in panel.labels))


def without_none(curves: Iterable[Curve | None]) -> list[Curve]:
    return [c for c in curves if c is not None]


def story_conditions(study: Study) -> list[Condition]:
    """One noisy condition for each data set: symmetric noise of 0.6, or the nearest to it."""
    found: dict[str, Condition] = {}
    for condition in study.conditions:
        if condition.noise == CLEAN:
            continue
        best = found.get(condition.dataset)
        if best is None or _distance(condition) < _distance(best):
            found[condition.dataset] = condition
    return list(found.values())


def _distance(condition: Condition) -> tuple[bool, float]:
    return condition.noise != "symmetric", abs(condition.rate - 0.6)


def overview_figures(study: Study) -> list[Figure]:
    """Accuracy against the noise rate, with a panel for each data set and noise.

    A line needs three rates. Losses with fewer are left out where others have them; where no loss
    can have three, dots are drawn in place of lines.
    """
    line_panels, dot_panels = [], []
    groups = dict.fromkeys(
        (c.dataset, c.noise) for c in study.conditions if noise_group(c.noise) == "drawn"
    )
    for dataset, noise in groups:
        conditions = [
            c for c in study.conditions if c.dataset == dataset and c.noise in (noise, CLEAN)
        ]
        conditions.sort(key=lambda c: c.rate)
        title = f"{dataset_title(dataset)}, {noise}"
        if len(conditions) >= _MIN_RATES:
            line_panels.append(_rate_panel(study, title, conditions))
        elif rows := _ranking_rows(study, conditions):
            marks = ("filled", "hollow")[: len(conditions)]
            note = ", ".join(
                f"{mark}: {_noise_of(c)}" for mark, c in zip(marks, conditions, strict=True)
            )
            dot_panels.append(Panel(title, "accuracy-dots", rows=rows, note=note))
    figures = []
    if line_panels:
        caption = (
            "Test accuracy after the last epoch against the fraction of labels that are wrong."
        )
        figures.append(Figure("overview", "Accuracy as the noise grows", caption, line_panels))
    if dot_panels:
        caption = "Test accuracy after the last epoch, the best loss first."
        figures.append(Figure("ranking", "Accuracy by loss", caption, dot_panels))
    return figures


def _rate_panel(study: Study, title: str, conditions: list[Condition]) -> Panel:
    points: dict[str, list[tuple[float, float, float | None]]] = {}
    for condition in conditions:
        for e in study.at(condition):
            d = e.cell.deviation
            point = (condition.rate, round(e.cell.mean, 2), round(d, 2) if d == d else None)
            points.setdefault(e.label, []).append(point)
    labels = sorted(points, key=list(study.styles).index)
    drawn = [label for label in labels if len(points[label]) >= _MIN_RATES] or labels
    curves = [Curve(n, *(tuple(part) for part in zip(*points[n], strict=True))) for n in drawn]
    omitted = len(labels) - len(drawn)
    note = f"and {omitted} in the tables alone, of fewer than three rates" if omitted else ""
    return Panel(title, "rates", curves, note=note)


def _noise_of(condition: Condition) -> str:
    return noise_title(condition.noise, condition.rate)


def _ranking_rows(study: Study, conditions: list[Condition]) -> list[dict[str, Any]]:
    """The accuracy of each loss under the first condition and under the last, the best first."""
    means: dict[str, dict[Condition, float]] = {}
    for condition in conditions:
        for e in study.at(condition):
            means.setdefault(e.label, {})[condition] = round(e.cell.mean, 2)
    rows: list[dict[str, Any]] = []
    for label, by_condition in means.items():
        numbers = ", ".join(f"{_noise_of(c)} {m:.1f}{PERCENT}" for c, m in by_condition.items())
        first, last = by_condition.get(conditions[0]), by_condition.get(conditions[-1])
        caption = f"{label}: {numbers}"
        rows.append({"label": label, "filled": first, "hollow": last, "caption": caption})
    return sorted(rows, key=lambda row: -max(row["filled"] or 0, row["hollow"] or 0))


_NORMALIZED_PAIRS = (
    ("CE", "NCE"), ("FL", "NFL"), ("GCE", "NGCE"), ("MAE", "NMAE"), ("RCE", "NRCE"),
)  # fmt: skip


def robustness_figures(study: Study) -> list[Figure]:
    """Losses beside their normalised forms (figures 1 and 2 of the paper)."""
    figures = []
    for condition in story_conditions(study):
        entries = study.at(condition)
        panels, drops = [], []
        for plain, normalized in _NORMALIZED_PAIRS:
            pair = [e for e in entries if e.cell.method in (plain, normalized)]
            curves = without_none(mean_curve(e.cell, e.label, TEST_ACCURACY) for e in pair)
            ran = {e.cell.method for e in pair}
            missing = [m for m in (plain, normalized) if m not in ran]
            if not curves or (plain in missing and plain not in ("CE", "FL")):
                continue
            note = f"{' and '.join(missing)} not run" if missing else ""
            title = " and ".join(m for m in (plain, normalized) if m in ran)
            panels.append(Panel(title, "epochs", curves, note=note))
            drops += [f"{c.label} {c.drop_from_best:.1f}" for c in curves]
        if panels:
            caption = (
                "Does a loss become robust when it is normalised? Points of test accuracy lost "
                f"from the best epoch to the last: {', '.join(drops)}."
            )
            name, title = f"robust-{condition.dataset}", condition_name(condition)
            figures.append(Figure(name, title, caption, panels, shared_y=True))
    return figures


def underfitting_figures(study: Study) -> list[Figure]:
    """How much was learnt of the right labels, and of the wrong ones."""
    figures = []
    noisy = [c for c in study.conditions if c.noise != CLEAN]
    for dataset, noise in dict.fromkeys((c.dataset, c.noise) for c in noisy):
        panels = []
        for condition in (c for c in noisy if (c.dataset, c.noise) == (dataset, noise)):
            rows = [row for e in study.at(condition) if (row := _learnt_row(e))]
            if rows:
                panels.append(Panel(_noise_of(condition), "label-dots", rows=rows))
        if not panels:
            continue
        rows = [row for panel in panels for row in panel.rows]
        least = min(rows, key=lambda row: row["filled"])
        most = max(rows, key=lambda row: row["hollow"])
        caption = (
            "Robust is not enough: a loss must also learn. Filled: right labels learnt; "
            "hollow: wrong labels memorised. "
            f"Least learnt: {least['label']}, {least['filled']:.0f}{PERCENT}; "
            f"most memorised: {most['label']}, {most['hollow']:.0f}{PERCENT}."
        )
        title = f"{dataset_title(dataset)}, {noise_title(noise)}"
        figures.append(Figure(f"underfitting-{dataset}-{noise}", title, caption, panels))
    return figures


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


def scaling_figures(study: Study) -> list[Figure]:
    """Losses times a factor (figure 3 of the paper)."""
    figures = []
    for condition, cells in study.scaled.items():
        panels, best_factors = [], []
        for method in dict.fromkeys(row.method for row in cells):
            rows = [row for row in cells if row.method == method and row.cell.records]
            curves = without_none(
                mean_curve(row.cell, f"{TIMES}{row.factor:g}", TEST_ACCURACY) for row in rows
            )
            if len(curves) > 1:
                panels.append(Panel(method, "epochs", curves))
                best = _best_at_the_end(curves)
                best_factors.append(f"{method} {best.label} ({best.last:.1f}{PERCENT})")
        if panels:
            caption = (
                "Does a larger loss learn more? Best factor at the last epoch: "
                f"{', '.join(best_factors)}."
            )
            name = f"scaling-{condition.dataset}-{condition.noise}-{condition.rate:g}"
            title = condition_name(condition)
            figures.append(Figure(name, title, caption, panels, shared_y=True))
    return figures


def _best_at_the_end(curves: list[Curve]) -> Curve:
    return max(curves, key=lambda c: c.last or 0)


def active_passive_figures(study: Study) -> list[Figure]:
    """One robust loss alone, and two together (figure 4 of the paper)."""
    figures = []
    for condition in story_conditions(study):
        groups: tuple[tuple[str, Callable[[str], bool]], ...] = (
            ("One loss alone", ("NCE", "NFL", "NGCE", "MAE", "RCE").__contains__),
            ("Active + passive", is_active_passive),
            ("Two of a kind", ("NFL+NCE", "MAE+RCE").__contains__),
        )
        panels, best_losses = [], []
        for title, belongs in groups:
            entries = [e for e in study.at(condition) if belongs(e.cell.method)]
            curves = without_none(mean_curve(e.cell, e.label, TEST_ACCURACY) for e in entries)
            if curves:
                panels.append(Panel(title, "epochs", curves))
                best = _best_at_the_end(curves)
                best_losses.append(f"{title.lower()}: {best.label} {best.last:.1f}{PERCENT}")
        if any(panel.title == "Active + passive" for panel in panels):
            caption = f"Are two better than one? Best at the last epoch, {'; '.join(best_losses)}."
            name, title = f"active-passive-{condition.dataset}", condition_name(condition)
            figures.append(Figure(name, title, caption, panels, shared_y=True))
    return figures


def parameter_figures(study: Study) -> list[Figure]:
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
            title = condition_name(condition)
            panels.append(Panel(title, "heatmap", rows=rows))
            best = max(rows, key=lambda row: row["value"])
            best_weights.append(f"{title}: {best['caption']}")
    if not panels:
        return []
    caption = (
        "Accuracy on held-out, noisy labels of alpha NCE + beta RCE after the last epoch. "
        f"Best on {'; '.join(best_weights)}."
    )
    return [Figure("parameters", "The weights of the two parts", caption, panels)]


class EpochMeasure(NamedTuple):
    """A measure that a report plots by epoch for all runs."""

    name: str
    heading: str
    title: str
    measure: Measure
    description: str


EPOCH_MEASURES = (
    EpochMeasure(
        "accuracy", "Test accuracy", "test accuracy", TEST_ACCURACY, "On the clean test set, %."
    ),
    EpochMeasure(
        "memorised", "Memorisation", "wrong labels memorised", MEMORISED,
        "Of the samples whose label is wrong, how many the network predicts as labelled, %.",
    ),
    EpochMeasure(
        "calibration", "Calibration", "calibration error", column("calibration_error"),
        "How far confidence is from accuracy on the test set: the expected error in 15 bins, %.",
    ),
)  # fmt: skip


def epoch_figures(study: Study, measure: EpochMeasure) -> list[Figure]:
    """A measure by epoch for every condition, with a figure for each data set and noise."""
    figures = []
    for (dataset, noise), conditions in _conditions_by_noise(study).items():
        panels = []
        for condition in conditions:
            curves = without_none(
                mean_curve(e.cell, e.label, measure.measure) for e in study.at(condition)
            )
            if curves:
                panels.append(Panel(_noise_of(condition), "epochs", curves))
        if panels:
            name = f"{measure.name}-{dataset}-{noise}"
            title = f"{dataset_title(dataset)}, {noise_title(noise)}: {measure.title}"
            figures.append(Figure(name, title, measure.description, panels))
    return figures


def _conditions_by_noise(study: Study) -> dict[tuple[str, str], list[Condition]]:
    """Conditions by data set and noise; clean labels go with the first noise of their data set."""
    first_noise = {c.dataset: c.noise for c in reversed(study.conditions) if c.noise != CLEAN}
    groups: dict[tuple[str, str], list[Condition]] = {}
    for c in study.conditions:
        noise = first_noise.get(c.dataset, CLEAN) if c.noise == CLEAN else c.noise
        groups.setdefault((c.dataset, noise), []).append(c)
    return groups
