"""The page: one HTML file that holds everything it shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .. import __version__
from . import _figures
from ._compile import ACROSS, for_page, library
from ._conclude import conclusions
from ._figures import Figure, Panel
from ._names import Style, dataset_name
from ._origins import origins
from ._study import Study
from ._tables import tables

STORY = (
    ("robust", "Robust", _figures.robust, "noiseproof bench figure-2"),
    ("underfitting", "Underfitting", _figures.underfitting, "noiseproof bench figure-1"),
    ("scaling", "Scaling", _figures.scaling, "noiseproof bench figure-3"),
    ("active-passive", "Active + passive", _figures.active_passive, "noiseproof bench figure-4"),
    ("parameters", "Parameters", _figures.parameters, "noiseproof bench figure-5"),
)
_CURVES = {"accuracy": "Test accuracy", "memorised": "Memorisation", "calibration": "Calibration"}


def figures(study: Study) -> list[Figure]:
    """Every figure of a report, in its order."""
    found = _figures.overview(study)
    for _, _, make, _ in STORY:
        found += make(study)
    for group in _figures.all_curves(study).values():
        found += group
    return found


def html(study: Study, title: str | None = None, beside: Study | None = None) -> str:
    """The report as one self-contained page.

    What is shown ``beside`` it, such as a reference that others measured, has a section of its own
    that says so, and no part in the conclusion.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise ValueError("a report needs jinja2: pip install 'noiseproof[report]'") from None
    environment = Environment(
        loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined,
        trim_blocks=False, keep_trailing_newline=True,
    )  # fmt: skip
    looks = {**(beside.styles if beside else {}), **study.styles}
    environment.globals.update(
        looks=looks, words=_words, last=_last, signed=_signed, columns=_columns
    )
    loader = environment.loader
    assert loader is not None
    shown, every = tables(study), figures(study)
    other = _beside(beside) if beside else None
    texts = {name: text for name, _, _, text in _figures.MEASURES}
    made = origins(study)
    return environment.get_template("page.html.j2").render(
        title=title or "Training on wrong labels",
        lines=("epochs", "rates"),
        conclusions=conclusions(study),
        facts=_facts(study),
        problems=study.problems + (beside.problems if beside else []),
        beside=other,
        overview=_figures.overview(study),
        tables=shown,
        compared=any(table.sources for table in shown),
        story=[
            {"anchor": anchor, "title": words, "figures": make(study), "command": command}
            for anchor, words, make, command in STORY
        ],
        curves=[
            {"anchor": f"curves-{name}", "title": _CURVES[name], "text": texts[name], "figures": f}
            for name, f in _figures.all_curves(study).items()
        ],
        origins=made,
        contents=_contents(study, bool(shown), bool(every), bool(other)),
        version=__version__,
        css=Markup(loader.get_source(environment, "style.css")[0]),
        script=Markup(loader.get_source(environment, "script.js")[0]),
        vega=Markup(library()),
        data=Markup(_json(_data(looks, every + (other["figures"] if other else [])))),
    )


def _beside(study: Study) -> dict[str, Any]:
    """Results that are not the report's own: where they are from, and what they come to."""
    places = dict.fromkeys(str(r.source) for cell in study.cells for r in cell.records)
    return {
        "from": ", ".join(places),
        "facts": _facts(study),
        "conclusion": conclusions(study)[0],
        "figures": [replace(f, name=f"beside-{f.name}") for f in _figures.overview(study)],
        "tables": tables(study),
    }


def _contents(
    study: Study, with_tables: bool, with_figures: bool, with_others: bool
) -> list[tuple[str, str]]:
    found = [("conclusion", "Conclusion")]
    found += [("tables", "Tables")] if with_tables else []
    found += [(anchor, words) for anchor, words, _, _ in STORY]
    found += [("curves", "By epoch")] if with_figures else []
    found += [("beside", "For comparison")] if with_others else []
    found += [("problems", "Problems")] if study.problems else []
    return [*found, ("runs", "Settings and runs")]


def _facts(study: Study) -> list[tuple[str, str]]:
    records = [r for cell in study.cells for r in cell.records]
    names = dict.fromkeys(dataset_name(cell.dataset) for cell in study.cells)
    seeds = sorted({r.settings["seed"] for r in records})
    ways = [e.way for e in study.entries]
    compared = {e.cell.protocol for e in study.entries}
    ways += [cell.protocol for cell in study.cells if cell.protocol not in compared]
    return [
        ("Runs", str(len(records))),
        ("Data sets", ", ".join(names)),
        ("Losses", str(len({e.cell.method for e in study.entries}))),
        ("Seeds", ", ".join(map(str, seeds))),
        ("Protocol", "; ".join(dict.fromkeys(ways))),
        ("Machine", ", ".join(dict.fromkeys(
            str(r.about.get("machine", {}).get("device", "not recorded")) for r in records))),
    ]  # fmt: skip


def _data(looks: Mapping[str, Style], every: list[Figure]) -> dict[str, Any]:
    """What the charts show: lines as columns, the places on their x axis shared."""
    labels = list(looks)
    grids: dict[tuple[float, ...], int] = {}
    shown: dict[str, list[dict[str, Any]]] = {}
    for figure in every:
        for panel in figure.panels:
            content: dict[str, Any] = {"kind": panel.kind}
            if panel.curves:
                content["lines"] = [
                    [labels.index(c.label), grids.setdefault(c.x, len(grids)), c.y,
                     c.deviation if any(d is not None for d in c.deviation) else None]
                    for c in panel.curves
                ]  # fmt: skip
            else:
                content["rows"] = panel.rows
            if figure.span:
                content["y"] = figure.span
            shown.setdefault(figure.name, []).append(content)
    kinds = list(dict.fromkeys(figure.kind for figure in every))
    charts = for_page(list(kinds), looks)
    return {
        "labels": labels, "xs": list(grids), "figures": shown, "charts": charts,
        "across": {kind: words.capitalize() for kind, words in ACROSS.items()},
    }  # fmt: skip


def _json(content: Any) -> str:
    """JSON that cannot end the script element that it stands in."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _words(figure: Figure, panel: Panel) -> str:
    """A panel for those who do not see it."""
    if panel.rows:
        return f"{figure.title}, {panel.title}. " + "; ".join(r["said"] for r in panel.rows) + "."
    ends = sorted(panel.curves, key=lambda c: -(c.last or 0))
    said = ", ".join(f"{c.label} {c.last:.1f}" for c in ends if c.last is not None)
    return f"Line chart. {figure.title}, {panel.title}. At the last {ACROSS[panel.kind]}: {said}."


def _columns(figure: Figure) -> int:
    """How many panels a wide page shows side by side, so that the last row is not left bare."""
    count = len(figure.panels)
    if figure.kind in ("rates", "drops") or count < 3:
        return 2
    return 4 if count % 4 == 0 or count == 7 else 3


def _last(panel: Panel, label: str) -> str:
    found = [c.last for c in panel.curves if c.label == label]
    return f"{found[0]:.2f}" if found and found[0] is not None else "\N{EN DASH}"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")
