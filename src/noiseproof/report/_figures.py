"""The figures of a report in the order of the paper's argument, each with a computed caption."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeVar

from .._files import safe_name
from ..catalogue import CLEAN, GIVEN, dataset_title, is_active_passive, noise_group
from ._curves import (
    MAX_POINTS,
    Curve,
    Measure,
    agreement,
    clean_train_accuracy,
    column,
    final_mean,
    held_out_accuracy,
    judged_accuracy,
    mean_curve,
    rounded,
    sample_indices,
)
from ._study import Condition, Entry, Study
from ._styles import PERCENT, TIMES
from ._words import ACCURACY_WORDS, JudgedOn

TEST_ACCURACY = judged_accuracy
MEMORISED = column("memorised")
ChartType = Literal[
    "epochs", "rates", "accuracy-dots", "held-out-dots", "both-dots", "label-dots", "heatmap"
]
# Of accuracies by what they are of.
ACCURACY_DOTS: dict[JudgedOn, ChartType] = {
    "test": "accuracy-dots", "held-out": "held-out-dots", "both": "both-dots",
}  # fmt: skip
LINE_CHARTS: tuple[ChartType, ...] = ("epochs", "rates")
_MIN_RATES = 3  # of a line
# A page that shows thousands of runs must stay one that can be read: the tables have the rest.
MAX_PANELS = 12  # of a figure
MAX_LINES = 30  # of a figure
_T = TypeVar("_T")


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
    """for links and files; made safe for both"""
    title: str
    caption: str
    panels: list[Panel]
    shared_y: bool = False
    """whether all panels have the same y axis"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", safe_name(self.name))

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


def overview_figures(study: Study) -> Iterator[Figure]:
    """Accuracy against the noise rate, with a panel for each data set and noise.

    A line needs three rates. Losses with fewer are left out where others have them; where no loss
    can have three, dots are drawn in place of lines.
    """
    line_panels: dict[JudgedOn, list[Panel]] = {}
    dot_panels: dict[JudgedOn, list[Panel]] = {}
    for (dataset, noise), noisy in study.by_noise.items():
        if noise == CLEAN:
            continue
        clean = Condition(dataset, CLEAN, 0.0)
        labels = {e.label for condition in noisy for e in study.at(condition)}
        with_clean = any(e.label in labels for e in study.at(clean))
        conditions = [clean, *noisy] if with_clean else noisy
        on = study.judged_on(conditions)
        if noise_group(noise) == "drawn" and len(conditions) >= _MIN_RATES:
            line_panels.setdefault(on, []).append(_rate_panel(study, conditions))
        else:
            dot_panels.setdefault(on, []).append(_ranking_panel(study, conditions, on))
    for on, panels in line_panels.items():
        caption = (
            f"{_capitalized(ACCURACY_WORDS[on])} {study.measured} against the fraction of "
            "labels that are wrong."
        )
        title = f"{_accuracy_title(on)} as the noise grows"
        yield _limited(Figure(_name_by_accuracy("overview", on), title, caption, panels))
    for on, panels in dot_panels.items():
        caption = f"{_capitalized(ACCURACY_WORDS[on])} {study.measured}, the best loss first."
        title = f"{_accuracy_title(on)} by loss"
        yield _limited(Figure(_name_by_accuracy("ranking", on), title, caption, panels))


def _capitalized(words: str) -> str:
    return words[0].upper() + words[1:]


def _accuracy_title(on: JudgedOn) -> str:
    """What a figure's title calls the accuracy: of pictures nothing else says what it is of."""
    return "Accuracy" if on == "test" else _capitalized(ACCURACY_WORDS[on])


def _name_by_accuracy(name: str, on: JudgedOn) -> str:
    return name if on == "test" else f"{name}-{on}"


def _limited(figure: Figure) -> Figure:
    """A figure with no more panels than a page can show; its caption says so."""
    count = len(figure.panels)
    if count <= MAX_PANELS:
        return figure
    caption = f"{figure.caption} {MAX_PANELS} of {count} are drawn; the tables have all."
    return replace(figure, caption=caption, panels=figure.panels[:MAX_PANELS])


def _sample(items: Sequence[_T], num: int) -> list[_T]:
    """At most so many items, evenly spaced."""
    return [items[i] for i in sample_indices(len(items), num)]


def _drawn_labels(
    study: Study, conditions: Iterable[Condition], min_conditions: int = 1
) -> set[str]:
    """The labels that are drawn of some conditions: all, or the best and CE of too many."""
    means: dict[str, list[float]] = {}
    baselines = set()
    for condition in conditions:
        for e in study.at(condition):
            means.setdefault(e.label, []).append(e.cell.mean)
            if e.cell.method == "CE":
                baselines.add(e.label)
    labels = [n for n, found in means.items() if len(found) >= min_conditions] or list(means)
    if len(labels) <= MAX_LINES:
        return set(labels)
    ranked = sorted(labels, key=lambda label: (-sum(means[label]) / len(means[label]), label))
    return {*ranked[:MAX_LINES], *sorted(baselines & set(labels))[:1]}


def _in_tables_alone(study: Study, conditions: Iterable[Condition], drawn: set[str]) -> str:
    """A note of how many losses are not drawn."""
    labels = {e.label for condition in conditions for e in study.at(condition)}
    return f"and {len(labels - drawn)} in the tables alone" if labels - drawn else ""


def _rate_panel(study: Study, conditions: list[Condition]) -> Panel:
    points: dict[str, list[tuple[float, float, float | None]]] = {}
    for condition in conditions:
        for e in study.at(condition):
            d = e.cell.deviation
            point = (condition.rate, rounded(e.cell.mean), rounded(d) if d == d else None)
            points.setdefault(e.label, []).append(point)
    drawn = _drawn_labels(study, conditions, _MIN_RATES)
    curves = []
    for label in (label for label in study.styles if label in drawn):
        x, y, deviation = zip(*_sample(points[label], MAX_POINTS), strict=True)
        curves.append(Curve(label, x, y, deviation))
    omitted = len(points) - len(drawn)
    are_few = all(len(points[n]) < _MIN_RATES for n in points.keys() - drawn)
    note = f"and {omitted} in the tables alone" if omitted else ""
    note += ", of fewer than three rates" if omitted and are_few else ""
    noisy = conditions[-1]
    title = f"{dataset_title(noisy.dataset)}, {study.group_words(noisy.dataset, noisy.noise)}"
    return Panel(title, "rates", curves, note=note)


def _ranking_panel(study: Study, conditions: list[Condition], on: JudgedOn) -> Panel:
    """The accuracy of each loss, the best first, under the first condition and under the last.

    Where they are the same, the filled dot covers the hollow one.
    """
    first, last = conditions[0], conditions[-1]
    noisy = [c for c in conditions if c.noise != CLEAN]
    drawn = _drawn_labels(study, noisy)
    means: dict[str, dict[Condition, float]] = {}
    for condition in conditions:
        for e in study.at(condition):
            if e.label in drawn:
                means.setdefault(e.label, {})[condition] = rounded(e.cell.mean)
    rows: list[dict[str, Any]] = []
    for label, by_condition in means.items():
        numbers = ", ".join(
            f"{study.noise_words(c)} {m:.1f}{PERCENT}" for c, m in by_condition.items()
        )
        rows.append({
            "label": label, "filled": by_condition.get(first), "hollow": by_condition.get(last),
            "caption": f"{label}: {numbers}",
        })  # fmt: skip
    in_both = all(row["hollow"] is not None for row in rows)
    rows.sort(
        key=lambda row: -row["hollow"] if in_both else -max(row["filled"] or 0, row["hollow"] or 0)
    )
    omitted = _in_tables_alone(study, noisy, drawn)
    if first == last:
        return Panel(study.name(first), ACCURACY_DOTS[on], rows=rows, note=omitted)
    marks = f"filled: {study.noise_words(first)}, hollow: {study.noise_words(last)}"
    title = f"{dataset_title(last.dataset)}, {study.group_words(last.dataset, last.noise)}"
    note = ", ".join(filter(None, (marks, omitted)))
    return Panel(title, ACCURACY_DOTS[on], rows=rows, note=note)


_NORMALIZED_PAIRS = (
    ("CE", "NCE"), ("FL", "NFL"), ("GCE", "NGCE"), ("MAE", "NMAE"), ("RCE", "NRCE"),
)  # fmt: skip


def robustness_figures(study: Study) -> Iterator[Figure]:
    """Losses beside their normalized forms (figures 1 and 2 of the paper)."""
    for condition in story_conditions(study):
        entries = _drawn_entries(study, condition)
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
            drops += [f"{c.label} {c.drop_from_best:.1f}" for c in curves]
        if panels:
            accuracy = ACCURACY_WORDS[study.judged_on([condition])]
            caption = (
                f"Does a loss become robust when it is normalized? Points of {accuracy} lost "
                f"from the best epoch to the last: {', '.join(drops)}."
            )
            name, title = f"robust-{condition.dataset}", study.name(condition)
            yield Figure(name, title, caption, panels, shared_y=True)


def _drawn_entries(study: Study, condition: Condition) -> list[Entry]:
    drawn = _drawn_labels(study, [condition])
    return [e for e in study.at(condition) if e.label in drawn]


def underfitting_figures(study: Study) -> Iterator[Figure]:
    """How much was learnt of the right labels, and of the wrong ones.

    Labels as given have a figure where it is known which are wrong.
    """
    for (_, noise), conditions in study.by_noise.items():
        if noise == CLEAN:
            continue
        drawn = _drawn_labels(study, conditions)
        panels = []
        for condition in _sample(conditions, MAX_PANELS):
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
        yield _figure_by_noise(study, "underfitting", conditions, caption, panels)


def _figure_by_noise(
    study: Study,
    name: str,
    conditions: list[Condition],
    caption: str,
    panels: list[Panel],
    heading: str = "",
) -> Figure:
    """A figure with a panel for each rate of a noise, or for some of many."""
    if len(conditions) > MAX_PANELS:
        caption = f"{caption} {len(panels)} of {len(conditions)} rates."
    dataset, noise, _ = conditions[-1]
    title = f"{dataset_title(dataset)}, {study.group_words(dataset, noise)}{heading}"
    return Figure(f"{name}-{dataset}-{noise}", title, caption, panels)


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
                for row in _sample(rows, MAX_LINES)
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
        shown = _drawn_entries(study, condition)
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
        yield _limited(Figure("parameters", "The weights of the two parts", caption, panels))


class EpochMeasure(NamedTuple):
    """A measure that a report plots by epoch for all runs."""

    name: str
    heading: str
    title: str
    measure: Measure
    description: str
    """``{tested}`` stands for what networks are tested on, and ``{clean}`` for whether it is known
    to be clean"""

    def describe(self, study: Study) -> str:
        """The description for these results."""
        tested = {
            "test": "the test set", "held-out": "held-out labels",
            "both": "the test set or, where there is none, on held-out labels",
        }  # fmt: skip
        own = any(condition.noise == GIVEN for condition in study.conditions)
        return self.description.format(
            tested=tested[study.judged_on()], clean="" if own else "clean "
        )


EPOCH_MEASURES = (
    EpochMeasure(
        "accuracy", "Test accuracy", "test accuracy", column("test_accuracy"),
        "On the {clean}test set, %.",
    ),
    EpochMeasure(
        "averaged-accuracy", "Test accuracy of the averaged weights",
        "test accuracy of the averaged weights", column("test_accuracy_ema"),
        "On the {clean}test set, %, of an average of the weights over the last steps.",
    ),
    EpochMeasure(
        "held-out-accuracy", "Accuracy on held-out labels", ACCURACY_WORDS["held-out"],
        held_out_accuracy,
        "On labels as noisy as those trained on, %: the level is not the true accuracy.",
    ),
    EpochMeasure(
        "agreement", "Agreement with the labels", "given labels agreed with", agreement,
        "Of the labels as given, how many the network predicts while it trains, %. Where a part "
        "is wrong, a loss that comes to 100 % has learnt that part by heart.",
    ),
    EpochMeasure(
        "memorised", "Memorisation", "wrong labels memorised", MEMORISED,
        "Of the samples whose label is wrong, how many the network predicts as labelled, %.",
    ),
    EpochMeasure(
        "calibration", "Calibration", "calibration error", column("calibration_error"),
        "How far confidence is from accuracy on {tested}: the expected error in 15 bins, %.",
    ),
)  # fmt: skip


def epoch_figures(study: Study, measure: EpochMeasure) -> Iterator[Figure]:
    """A measure by epoch for every condition, with a figure for each data set and noise."""
    for conditions in _with_clean(study).values():
        drawn = _drawn_labels(study, conditions)
        note = _in_tables_alone(study, conditions, drawn)
        panels = []
        for condition in _sample(conditions, MAX_PANELS):
            entries = [e for e in study.at(condition) if e.label in drawn]
            curves = without_none(mean_curve(e.cell, e.label, measure.measure) for e in entries)
            if curves:
                panels.append(Panel(study.noise_words(condition), "epochs", curves, note=note))
        if panels:
            description = measure.describe(study)
            yield _figure_by_noise(
                study, measure.name, conditions, description, panels, f": {measure.title}"
            )


def _with_clean(study: Study) -> dict[tuple[str, str], list[Condition]]:
    """Conditions by data set and noise; clean labels go with the first noise of their data set."""
    groups: dict[tuple[str, str], list[Condition]] = {}
    cleaned = set()
    for (dataset, noise), conditions in study.by_noise.items():
        clean = Condition(dataset, CLEAN, 0.0)
        if noise == CLEAN:
            continue
        groups[dataset, noise] = conditions
        if dataset not in cleaned and study.at(clean):
            groups[dataset, noise] = [clean, *conditions]
        cleaned.add(dataset)
    for dataset, noise in study.by_noise:
        if noise == CLEAN and dataset not in cleaned:
            groups[dataset, noise] = study.by_noise[dataset, noise]
    return groups
