"""The accuracy of every loss against the noise, and which is best."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..catalogue import CLEAN, dataset_title, noise_group
from ._curves import MAX_POINTS, Curve, rounded
from ._entries import Condition
from ._figure import (
    ACCURACY_DOTS,
    Figure,
    Panel,
    drawn_labels,
    in_tables_alone,
    limited,
    sample,
)
from ._study import Study
from ._styles import PERCENT
from ._words import ACCURACY_WORDS, JudgedOn

_MIN_RATES = 3  # of a line


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
        yield limited(Figure(_name_by_accuracy("overview", on), title, caption, panels))
    for on, panels in dot_panels.items():
        caption = f"{_capitalized(ACCURACY_WORDS[on])} {study.measured}, the best loss first."
        title = f"{_accuracy_title(on)} by loss"
        yield limited(Figure(_name_by_accuracy("ranking", on), title, caption, panels))


def _capitalized(words: str) -> str:
    return words[0].upper() + words[1:]


def _accuracy_title(on: JudgedOn) -> str:
    """What a figure's title calls the accuracy: of pictures nothing else says what it is of."""
    return "Accuracy" if on == "test" else _capitalized(ACCURACY_WORDS[on])


def _name_by_accuracy(name: str, on: JudgedOn) -> str:
    return name if on == "test" else f"{name}-{on}"


def _rate_panel(study: Study, conditions: list[Condition]) -> Panel:
    points: dict[str, list[tuple[float, float, float | None]]] = {}
    for condition in conditions:
        for e in study.at(condition):
            d = e.cell.deviation
            point = (condition.rate, rounded(e.cell.mean), rounded(d) if d == d else None)
            points.setdefault(e.label, []).append(point)
    drawn = drawn_labels(study, conditions, _MIN_RATES)
    curves = []
    for label in (label for label in study.styles if label in drawn):
        x, y, deviation = zip(*sample(points[label], MAX_POINTS), strict=True)
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
    drawn = drawn_labels(study, noisy)
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
    omitted = in_tables_alone(study, noisy, drawn)
    if first == last:
        return Panel(study.name(first), ACCURACY_DOTS[on], rows=rows, note=omitted)
    marks = f"filled: {study.noise_words(first)}, hollow: {study.noise_words(last)}"
    title = f"{dataset_title(last.dataset)}, {study.group_words(last.dataset, last.noise)}"
    note = ", ".join(filter(None, (marks, omitted)))
    return Panel(title, ACCURACY_DOTS[on], rows=rows, note=note)
