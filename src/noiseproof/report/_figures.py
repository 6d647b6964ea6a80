"""The figures in the order of the paper's story, each with what it shows in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from ._curves import Curve, column, curve, final, fitted
from ._names import CLEAN, DRAWN, PERCENT, TIMES, dataset_name, is_apl, noise_name
from ._study import Entry, Study, Where, place_name

TEST = column("test_accuracy")
MEMORISED = column("memorised")
Kind = Literal["epochs", "rates", "drops", "pairs", "grid"]


@dataclass(frozen=True)
class Panel:
    """One plot: curves, or rows of numbers with the words for each."""

    title: str
    kind: Kind
    curves: list[Curve] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    note: str = ""
    """what is missing in it"""

    @property
    def labels(self) -> list[str]:
        return [c.label for c in self.curves] or [r["l"] for r in self.rows if "l" in r]


@dataclass(frozen=True)
class Figure:
    """Panels of one kind under one caption."""

    name: str
    title: str
    said: str
    """what it shows, computed"""
    panels: list[Panel]
    shared: bool = False
    """whether its panels have one scale"""

    @property
    def span(self) -> tuple[float, float] | None:
        """From the least to the greatest number of panels that share a scale."""
        every = [c for panel in self.panels for c in panel.curves] if self.shared else []
        ys = [y for c in every for y in c.y if y is not None]
        return (min(ys), max(ys)) if ys else None

    @property
    def kind(self) -> Kind:
        return self.panels[0].kind

    @property
    def labels(self) -> list[str]:
        """Every line's, in the order of the panels."""
        return list(dict.fromkeys(label for panel in self.panels for label in panel.labels))


def known(curves: Iterable[Curve | None]) -> list[Curve]:
    return [c for c in curves if c is not None]


def story_places(study: Study) -> list[Where]:
    """For each data set the noise that the story is told at: symmetric 0.6, or what is nearest."""
    found: dict[str, Where] = {}
    for where in study.places:
        if where[1] == CLEAN:
            continue
        best = found.get(where[0])
        if best is None or _distance(where) < _distance(best):
            found[where[0]] = where
    return list(found.values())


def _distance(where: Where) -> tuple[bool, float]:
    return where[1] != "symmetric", abs(where[2] - 0.6)


def overview(study: Study) -> list[Figure]:
    """Accuracy as the noise grows: a panel for each data set and kind of noise.

    Lines need three rates. Where there are only one or two, dots say more; what was run at fewer
    rates than the losses beside it is left to the tables.
    """
    panels, dots, order = [], [], list(study.styles)
    groups = dict.fromkeys(w[:2] for w in study.places if w[1] in DRAWN)
    for dataset, noise in groups:
        places = [w for w in study.places if w[0] == dataset and w[1] in (noise, CLEAN)]
        places.sort(key=lambda w: w[2])
        title = f"{dataset_name(dataset)}, {noise}"
        if len(places) < 3:
            rows = _drops(study, places)
            ends = ("filled", "hollow")[: len(places)]
            note = ", ".join(f"{end}: {_at(w)}" for end, w in zip(ends, places, strict=True))
            dots += [Panel(title, "drops", rows=rows, note=note)] if rows else []
            continue
        lines: dict[str, list[tuple[float, float, float | None]]] = {}
        for where in places:
            for e in study.at(where):
                d = e.cell.deviation
                at = (where[2], round(e.cell.mean, 2), round(d, 2) if d == d else None)
                lines.setdefault(e.label, []).append(at)
        labels = sorted(lines, key=order.index)
        short = [label for label in labels if len(lines[label]) < 3]
        drawn = [label for label in labels if label not in short] or labels
        curves = [Curve(n, *(tuple(part) for part in zip(*lines[n], strict=True))) for n in drawn]
        aside = len(labels) - len(drawn)
        note = f"and {aside} in the tables alone, of fewer than three rates" if aside else ""
        panels.append(Panel(title, "rates", curves, note=note))
    said = "Test accuracy after the last epoch against the fraction of labels that are wrong."
    figures = [Figure("overview", "Accuracy as the noise grows", said, panels)] if panels else []
    said = "Test accuracy after the last epoch, the best loss first."
    return figures + ([Figure("ranking", "Accuracy by loss", said, dots)] if dots else [])


def _at(where: Where) -> str:
    return noise_name(where[1], where[2])


def _drops(study: Study, places: list[Where]) -> list[dict[str, Any]]:
    """Each loss under the least noise and the most, the best first."""
    found: dict[str, dict[Where, float]] = {}
    for where in places:
        for e in study.at(where):
            found.setdefault(e.label, {})[where] = round(e.cell.mean, 2)
    rows: list[dict[str, Any]] = []
    for label, at in found.items():
        numbers = ", ".join(f"{_at(where)} {value:.1f}{PERCENT}" for where, value in at.items())
        ends = {"right": at.get(places[0]), "wrong": at.get(places[-1])}
        rows.append({"l": label, **ends, "said": f"{label}: {numbers}"})
    return sorted(rows, key=lambda row: -max(row["right"] or 0, row["wrong"] or 0))


_PAIRS = (("CE", "NCE"), ("FL", "NFL"), ("GCE", "NGCE"), ("MAE", "NMAE"), ("RCE", "NRCE"))


def robust(study: Study) -> list[Figure]:
    """Losses beside their normalised forms (the paper's figures 1 and 2)."""
    figures = []
    for where in story_places(study):
        entries = study.at(where)
        panels, said = [], []
        for plain, normal in _PAIRS:
            both = [e for e in entries if e.cell.method in (plain, normal)]
            curves = known(curve(e.cell, e.label, TEST) for e in both)
            absent = [m for m in (plain, normal) if not any(e.cell.method == m for e in both)]
            if not curves or (plain in absent and plain not in ("CE", "FL")):
                continue
            note = f"{' and '.join(absent)} not run" if absent else ""
            title = " and ".join(m for m in (plain, normal) if m not in absent)
            panels.append(Panel(title, "epochs", curves, note=note))
            said += [f"{c.label} {c.drop:.1f}" for c in curves]
        if panels:
            text = (
                "Does a loss become robust when it is normalised? Points of test accuracy lost "
                f"from the best epoch to the last: {', '.join(said)}."
            )
            figures.append(Figure(f"robust-{where[0]}", place_name(where), text, panels, True))
    return figures


def underfitting(study: Study) -> list[Figure]:
    """What was learnt of the right labels, and of the wrong."""
    figures = []
    for dataset, noise in dict.fromkeys(w[:2] for w in study.places if w[1] != CLEAN):
        panels = []
        for where in (w for w in study.places if w[:2] == (dataset, noise)):
            rows = [row for e in study.at(where) if (row := _learnt(e))]
            if rows:
                panels.append(Panel(noise_name(where[1], where[2]), "pairs", rows=rows))
        if not panels:
            continue
        least = min((row for p in panels for row in p.rows), key=lambda row: row["right"])
        most = max((row for p in panels for row in p.rows), key=lambda row: row["wrong"])
        text = (
            "Robust is not enough: a loss must also learn. Filled: right labels learnt; "
            "hollow: wrong labels memorised. "
            f"Least learnt: {least['l']}, {least['right']:.0f}{PERCENT}; "
            f"most memorised: {most['l']}, {most['wrong']:.0f}{PERCENT}."
        )
        title = f"{dataset_name(dataset)}, {noise_name(noise, 0) if noise not in DRAWN else noise}"
        figures.append(Figure(f"underfitting-{dataset}-{noise}", title, text, panels))
    return figures


def _learnt(entry: Entry) -> dict[str, Any] | None:
    right, wrong = final(entry.cell, fitted), final(entry.cell, MEMORISED)
    if right is None or wrong is None:
        return None
    said = (
        f"{entry.label}: {right:.1f}{PERCENT} of the right labels learnt, "
        f"{wrong:.1f}{PERCENT} of the wrong"
    )
    return {"l": entry.label, "right": right, "wrong": wrong, "said": said}


def scaling(study: Study) -> list[Figure]:
    """Losses times a factor (the paper's figure 3)."""
    figures = []
    for where, rows in study.scaled.items():
        panels, said = [], []
        for base in dict.fromkeys(base for base, _, _ in rows):
            own = [(s, cell) for b, s, cell in rows if b == base and cell.records]
            curves = known(curve(cell, f"{TIMES}{s:g}", TEST) for s, cell in own)
            if len(curves) > 1:
                panels.append(Panel(base, "epochs", curves))
                best = max(curves, key=lambda c: c.last or 0)
                said.append(f"{base} {best.label} ({best.last:.1f}{PERCENT})")
        if panels:
            text = (
                f"Does a larger loss learn more? Best factor at the last epoch: {', '.join(said)}."
            )
            name = f"scaling-{where[0]}-{where[1]}-{where[2]:g}"
            figures.append(Figure(name, place_name(where), text, panels, True))
    return figures


def active_passive(study: Study) -> list[Figure]:
    """One robust loss alone, and two together (the paper's figure 4)."""
    figures = []
    for where in story_places(study):
        sides: tuple[tuple[str, Callable[[str], bool]], ...] = (
            ("One loss alone", ("NCE", "NFL", "NGCE", "MAE", "RCE").__contains__),
            ("Active + passive", is_apl),
            ("Two of a kind", ("NFL+NCE", "MAE+RCE").__contains__),
        )
        panels, said = [], []
        for title, belongs in sides:
            entries = [e for e in study.at(where) if belongs(e.cell.method)]
            curves = known(curve(e.cell, e.label, TEST) for e in entries)
            if curves:
                panels.append(Panel(title, "epochs", curves))
                best = max(curves, key=lambda c: c.last or 0)
                said.append(f"{title.lower()}: {best.label} {best.last:.1f}{PERCENT}")
        if any(panel.title == "Active + passive" for panel in panels):
            text = f"Are two better than one? Best at the last epoch, {'; '.join(said)}."
            figures.append(
                Figure(f"active-passive-{where[0]}", place_name(where), text, panels, True)
            )
    return figures


def parameters(study: Study) -> list[Figure]:
    """The grid of alpha and beta (the paper's figure 5)."""
    panels, said = [], []
    for where, cells in study.grid.items():
        rows: list[dict[str, Any]] = []
        for alpha, beta, cell in cells:
            value = final(cell, column("validation_accuracy"))
            if value is not None:
                words = f"alpha {alpha:g}, beta {beta:g}: {value:.1f}{PERCENT}"
                rows.append({"x": beta, "y": alpha, "v": value, "said": words})
        if rows:
            panels.append(Panel(place_name(where), "grid", rows=rows))
            best = max(rows, key=lambda row: row["v"])
            said.append(f"{place_name(where)}: {best['said']}")
    if not panels:
        return []
    text = (
        "Accuracy on held-out, noisy labels of alpha NCE + beta RCE after the last epoch. "
        f"Best on {'; '.join(said)}."
    )
    return [Figure("parameters", "The weights of the two parts", text, panels)]


MEASURES = (
    ("accuracy", "test accuracy", TEST, "On the clean test set, %."),
    ("memorised", "wrong labels memorised", MEMORISED,
     "Of the samples whose label is wrong, how many the network predicts as labelled, %."),
    ("calibration", "calibration error", column("calibration_error"),
     "How far confidence is from accuracy on the test set: the expected error in 15 bins, %."),
)  # fmt: skip


def all_curves(study: Study) -> dict[str, list[Figure]]:
    """Every measure by epoch, for every data set, noise and rate."""
    found: dict[str, list[Figure]] = {}
    for name, words, measure, text in MEASURES:
        for (dataset, noise), places in _by_noise(study).items():
            panels = []
            for where in places:
                curves = known(curve(e.cell, e.label, measure) for e in study.at(where))
                if curves:
                    panels.append(Panel(noise_name(where[1], where[2]), "epochs", curves))
            if panels:
                kind = noise if noise in DRAWN else noise_name(noise, 0)
                title = f"{dataset_name(dataset)}, {kind}: {words}"
                figure = Figure(f"{name}-{dataset}-{noise}", title, text, panels)
                found.setdefault(name, []).append(figure)
    return found


def _by_noise(study: Study) -> dict[tuple[str, str], list[Where]]:
    """Places by data set and noise; clean labels go with the first noise of their data set."""
    groups: dict[tuple[str, str], list[Where]] = {}
    noisy = {dataset: noise for dataset, noise, _ in reversed(study.places) if noise != CLEAN}
    for where in study.places:
        dataset, noise, _ = where
        kind = noisy.get(dataset, CLEAN) if noise == CLEAN else noise
        groups.setdefault((dataset, kind), []).append(where)
    return groups
