"""What a figure is, and how much of the results is drawn: a page must stay one that can be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from .._files import safe_name
from ..catalogue import CLEAN, dataset_title
from ._curves import Curve, column, judged_accuracy, sample_indices
from ._entries import Condition, Entry
from ._study import Study
from ._words import JudgedOn

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


def limited(figure: Figure) -> Figure:
    """A figure with no more panels than a page can show; its caption says so."""
    count = len(figure.panels)
    if count <= MAX_PANELS:
        return figure
    caption = f"{figure.caption} {MAX_PANELS} of {count} are drawn; the tables have all."
    return replace(figure, caption=caption, panels=figure.panels[:MAX_PANELS])


def sample(items: Sequence[_T], num: int) -> list[_T]:
    """At most so many items, evenly spaced."""
    return [items[i] for i in sample_indices(len(items), num)]


def drawn_labels(
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


def in_tables_alone(study: Study, conditions: Iterable[Condition], drawn: set[str]) -> str:
    """A note of how many losses are not drawn."""
    labels = {e.label for condition in conditions for e in study.at(condition)}
    return f"and {len(labels - drawn)} in the tables alone" if labels - drawn else ""


def drawn_entries(study: Study, condition: Condition) -> list[Entry]:
    drawn = drawn_labels(study, [condition])
    return [e for e in study.at(condition) if e.label in drawn]


def figure_by_noise(
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


def with_clean(study: Study) -> dict[tuple[str, str], list[Condition]]:
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
