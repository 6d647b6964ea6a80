"""Vega-Lite to what is shown: Vega for the page, whole figures for pictures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from . import _charts
from ._figures import Figure, Panel
from ._names import Style

ACROSS = {"epochs": "epoch", "rates": "noise rate"}


def _vl() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise ValueError(
            "a report's charts need vl-convert: pip install 'noiseproof[report]'"
        ) from None
    return vl_convert


def chart(
    kind: str, looks: Mapping[str, Style], theme: str, *, alone: bool = False
) -> _charts.Spec:
    """The Vega-Lite of one kind of panel; ``alone`` in a picture, where no page explains it."""
    if kind == "pairs":
        return _charts.pairs(looks, theme, x="% of the labels", whole=True)
    if kind == "drops":
        return _charts.pairs(looks, theme, x="test accuracy, %", whole=False)
    if kind == "grid":
        return {**_charts.grid(theme, "beta", "alpha"), "height": _charts.HEIGHT}
    rates = kind == "rates"
    spec = _charts.lines(
        looks, theme, x=ACROSS[kind], y="%" if alone else None, dots=rates, legend=alone
    )
    return {**spec, "height": 300 if rates and not alone else _charts.HEIGHT}


def for_page(kinds: list[str], looks: Mapping[str, Style]) -> dict[str, dict[str, Any]]:
    """By theme and kind: a Vega specification that lacks only its rows."""
    found: dict[str, dict[str, Any]] = {}
    for theme in _charts.THEMES:
        for kind in kinds:
            spec = {
                **chart(kind, looks, theme),
                "data": {"name": "rows"},
                "width": "container",
                "autosize": {"type": "fit-x", "contains": "padding"},
            }
            vega = _vl().vegalite_to_vega(spec, config=_charts.config(theme))
            vega.pop("$schema", None)
            found.setdefault(theme, {})[kind] = vega
    return found


@cache
def library() -> str:
    """Vega itself, for a page without a network."""
    return str(_vl().javascript_bundle("window.vegaEmbed = vegaEmbed;")).replace(
        "</script", "<\\/script"
    )


def rows(panel: Panel) -> list[dict[str, Any]]:
    """A panel's numbers as its chart reads them."""
    return panel.rows or [
        {"l": c.label, "x": x, "y": y, "d": d}
        for c in panel.curves
        for x, y, d in zip(c.x, c.y, c.deviation, strict=True)
    ]


def picture(figure: Figure, looks: Mapping[str, Style], kind: str) -> bytes:
    """A figure as png or svg."""
    seen = {label: look for label, look in looks.items() if label in figure.labels}
    panels = []
    for i, panel in enumerate(figure.panels):
        spec = chart(figure.kind, seen, "light", alone=True)
        # names are of the whole picture, and nothing in it moves
        spec = _still(spec) | {"title": panel.title, "width": 260}
        panels.append({**spec, "data": {"name": f"rows{i}", "values": rows(panel)}})
    whole = {
        "title": {"text": figure.title, "fontSize": 15, "offset": 12},
        "concat": panels,
        "columns": 2 if len(panels) == 4 else min(3, len(panels)),
        "spacing": 24,
        "params": [{"name": "hidden", "value": []}, {"name": "focus", "value": ""}],
        "resolve": {"scale": {"y": "shared" if figure.shared else "independent"}},
        "config": {**_charts.config("light"), "background": "white", "padding": 16},
    }  # fmt: skip
    if kind == "svg":
        return _renumbered(str(_vl().vegalite_to_svg(whole))).encode()
    return bytes(_vl().vegalite_to_png(whole, ppi=144))


def _renumbered(svg: str) -> str:
    """Ids count on from picture to picture; numbered anew, the same picture has the same bytes."""
    seen: dict[str, int] = {}
    return re.sub(
        r"\b(clip|gradient_)(\d+)\b", lambda m: f"{m[1]}{seen.setdefault(m[0], len(seen))}", svg
    )


def _still(spec: _charts.Spec) -> _charts.Spec:
    layers = [{k: v for k, v in layer.items() if k != "params"} for layer in spec["layer"]]
    return {k: v for k, v in spec.items() if k != "params"} | {"layer": layers}
