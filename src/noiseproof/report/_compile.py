"""Figures to what is shown: Vega for the page, PNG and SVG pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .. import _vega
from .._vega import Spec
from ._charts import PARAMS, config, panel_spec
from ._figure import ChartType, Figure, Panel
from ._styles import Style


def page_specs(charts: list[ChartType]) -> dict[str, dict[ChartType, Spec]]:
    """The Vega of each chart by theme. The page fills in the data, and the style of each label."""
    styles = {"label": Style("", "")}
    found: dict[str, dict[ChartType, Spec]] = {}
    for theme in _vega.THEMES:
        for chart in charts:
            spec = {
                **panel_spec(chart, styles, theme),
                "data": {"name": "rows"},
                "width": "container",
                "autosize": {"type": "fit-x", "contains": "padding"},
            }
            found.setdefault(theme, {})[chart] = _vega.to_vega(spec, config(theme))
    return found


def panel_rows(panel: Panel) -> list[dict[str, Any]]:
    """The data of a panel's chart."""
    return panel.rows or [
        {"label": c.label, "x": x, "y": y, "deviation": d}
        for c in panel.curves
        for x, y, d in zip(c.x, c.y, c.deviation, strict=True)
    ]


def picture(figure: Figure, styles: Mapping[str, Style], format: Literal["png", "svg"]) -> bytes:
    """Draw a figure.

    Args:
        figure: one of :attr:`Report.figures`.
        styles: the style of each label, :attr:`Study.styles`.
        format: ``"png"`` or ``"svg"``.
    """
    used = {label: style for label, style in styles.items() if label in figure.labels}
    panels = []
    for i, panel in enumerate(figure.panels):
        spec = _without_params(
            panel_spec(figure.chart, used, "light", standalone=True, rows=panel.labels)
        )
        data = {"name": f"rows{i}", "values": panel_rows(panel)}
        panels.append({**spec, "title": panel.title, "width": 260, "data": data})
    whole = {
        "title": {"text": figure.title, "fontSize": 15, "offset": 12},
        "concat": panels,
        "columns": 2 if len(panels) == 4 else min(3, len(panels)),
        "spacing": 24,
        "params": PARAMS,
        "resolve": {"scale": {"y": "shared" if figure.shared_y else "independent"}},
        "config": {
            **config("light"),
            # A label above the axis would lift the title of its panel above those beside it.
            "axisY": {"labelFlush": True},
            "background": "white",
            "padding": 16,
        },
    }
    return _vega.render(whole, format)


def _without_params(spec: Spec) -> Spec:
    """Without interaction. A parameter may be defined only once in a picture of many panels."""
    layers = [{k: v for k, v in layer.items() if k != "params"} for layer in spec["layer"]]
    return {k: v for k, v in spec.items() if k != "params"} | {"layer": layers}
