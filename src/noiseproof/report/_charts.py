"""The charts of a report as Vega-Lite: lines, dots and heat maps, in a light and a dark theme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .. import _vega
from .._vega import THEMES, Spec
from ._figure import ACCURACY_DOTS, ChartType, Panel
from ._styles import Style
from ._words import ACCURACY_WORDS

HEIGHT = 210
RATES_HEIGHT = 300
_ROW_HEIGHT = 19  # of a dot plot
_AXIS_HEIGHT = 46  # labels and title of the x axis
_HALF_LABEL = 6  # of a y axis, above the plot
X_TITLES = {"epochs": "epoch", "rates": "noise rate"}  # of the line charts
# The page sets both to hide lines, and to fade all but one. Pictures keep these values.
PARAMS = [{"name": "hidden", "value": []}, {"name": "focus", "value": ""}]
_NOT_HIDDEN = {"filter": "indexof(hidden, datum.label) < 0"}
_IN_FOCUS = "focus === '' || focus === datum.label"
_FOCUS_OPACITY = {"condition": {"test": _IN_FOCUS, "value": 1}, "value": 0.15}
_LEGEND = {"title": None, "symbolType": "stroke", "symbolSize": 500, "symbolOpacity": 1}


def config(theme: str) -> Spec:
    """The theme of a report's charts."""
    return {**_vega.config(theme), "aria": False}  # the page has an alternative text for each


def panel_spec(
    chart: ChartType,
    styles: Mapping[str, Style],
    theme: str,
    *,
    standalone: bool = False,
    rows: Sequence[str] = (),
) -> Spec:
    """The Vega-Lite of a panel, without its data.

    Args:
        chart: what it shows.
        styles: the style of each label.
        theme: ``"light"`` or ``"dark"``.
        standalone: whether it needs a legend and a y title, because no page explains it.
        rows: the labels of dots from top to bottom; the page fills them in.
    """
    if chart == "label-dots":
        return dot_plot(styles, theme, rows, x="% of the labels", full_scale=True)
    for on, dots in ACCURACY_DOTS.items():
        if chart == dots:
            return dot_plot(styles, theme, rows, x=f"{ACCURACY_WORDS[on]}, %", full_scale=False)
    if chart == "heatmap":
        return {**heatmap(theme, "beta", "alpha"), "height": HEIGHT}
    rates = chart == "rates"
    y = "%" if standalone else None
    spec = line_plot(styles, theme, x=X_TITLES[chart], y=y, points=rates, legend=standalone)
    return {**spec, "height": RATES_HEIGHT if rates and not standalone else HEIGHT}


def plot_height(panel: Panel) -> int:
    """The pixels that the page keeps for a chart before it is drawn."""
    if panel.chart == "label-dots" or panel.chart in ACCURACY_DOTS.values():
        return _ROW_HEIGHT * len(panel.rows) + _AXIS_HEIGHT
    if panel.chart == "heatmap":
        return HEIGHT + _AXIS_HEIGHT
    return (RATES_HEIGHT if panel.chart == "rates" else HEIGHT) + _AXIS_HEIGHT + _HALF_LABEL


def line_plot(
    styles: Mapping[str, Style],
    theme: str,
    *,
    x: str,
    y: str | None,
    points: bool = False,
    legend: bool = False,
) -> Spec:
    """Lines with a band of the deviation. The page draws the cursor that reads them off."""
    x_encoding = {"field": "x", "type": "quantitative", "title": x,
                  "scale": {"nice": False, "padding": 8 if points else 0},
                  "axis": {"tickCount": 5}}  # fmt: skip
    y_encoding = {
        "type": "quantitative", "title": y, "scale": {"zero": False}, "axis": {"tickCount": 5},
    }  # fmt: skip
    colour = _colour(styles, theme, legend)
    mark: Spec = {"type": "line", "clip": True, "strokeWidth": 2, "strokeJoin": "round"}
    if points:
        mark["point"] = {"size": 28, "filled": True}
    band_opacity = {"condition": {"test": _IN_FOCUS, "value": 0.13}, "value": 0.02}
    return {
        "params": PARAMS,
        "transform": [_NOT_HIDDEN],
        "layer": [
            {
                "transform": [
                    {"calculate": "max(0, datum.y - (datum.deviation || 0))", "as": "low"},
                    {"calculate": "min(100, datum.y + (datum.deviation || 0))", "as": "high"},
                ],
                "mark": {"type": "area", "clip": True},
                "encoding": {
                    "x": x_encoding, "y": {**y_encoding, "field": "low"}, "y2": {"field": "high"},
                    "color": colour, "opacity": band_opacity,
                },
            },
            {
                "params": [
                    {
                        "name": "zoom",
                        "bind": "scales",
                        "select": {
                            "type": "interval",
                            "zoom": "wheel![event.ctrlKey || event.shiftKey || event.metaKey]",
                        },
                    }
                ],
                "mark": mark,
                "encoding": {
                    "x": x_encoding, "y": {**y_encoding, "field": "y"}, "color": colour,
                    "strokeDash": _dash(styles, legend), "opacity": _FOCUS_OPACITY,
                },
            },
        ],
    }  # fmt: skip


def dot_plot(
    styles: Mapping[str, Style], theme: str, rows: Sequence[str], *, x: str, full_scale: bool
) -> Spec:
    """A row for each label with a filled and a hollow dot.

    The x axis is from 0 to 100 with ``full_scale``, and fitted to the data without.
    """
    axis = {"grid": True, "labelColor": THEMES[theme]["ink"], "labelLimit": 170}
    y_encoding = {
        "field": "label", "type": "nominal", "title": None, "axis": axis,
        "scale": {"domain": list(rows) or [""]},
    }  # fmt: skip
    scale: Spec = {"domain": [0, 100]} if full_scale else {"zero": False, "padding": 10}
    x_encoding = {"type": "quantitative", "scale": scale, "title": x, "axis": {"tickCount": 5}}
    filled, hollow = ({**x_encoding, "field": field} for field in ("filled", "hollow"))
    colour = _colour(styles, theme, legend=False)
    dot: Spec = {"type": "point", "size": 80, "opacity": 1, "strokeWidth": 2}
    common = {
        "y": y_encoding, "color": colour, "tooltip": {"field": "caption"},
        "opacity": _FOCUS_OPACITY,
    }  # fmt: skip
    return {
        "params": PARAMS,
        "transform": [_NOT_HIDDEN],
        "height": {"step": _ROW_HEIGHT},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.45},
                "encoding": {"y": y_encoding, "x": hollow, "x2": {"field": "filled"},
                             "color": colour},
            },
            {
                "mark": {**dot, "filled": False, "fill": THEMES[theme]["page"]},
                "encoding": {"x": hollow, **common},
            },
            {
                "mark": {**dot, "filled": True},
                "encoding": {"x": filled, **common},
            },
        ],
    }  # fmt: skip


def heatmap(theme: str, x: str, y: str) -> Spec:
    """A number for every pair of two parameters."""
    x_encoding = {"field": "x", "type": "ordinal", "title": x, "axis": {"labelAngle": 0}}
    y_encoding = {"field": "y", "type": "ordinal", "title": y, "sort": "descending"}
    colours = ["#eef3f8", "#0a4fa3"] if theme == "light" else ["#1f2630", "#7db2ff"]
    on_low, on_high = ("#1c2128", "#ffffff") if theme == "light" else ("#e8ebef", "#10141a")
    return {
        "params": PARAMS,
        "transform": [
            {"joinaggregate": [{"op": "min", "field": "value", "as": "least"},
                               {"op": "max", "field": "value", "as": "most"}]},
        ],
        "encoding": {"x": x_encoding, "y": y_encoding},
        "layer": [
            {
                "mark": {"type": "rect", "cornerRadius": 3, "stroke": THEMES[theme]["page"],
                         "strokeWidth": 3},
                "encoding": {
                    "color": {"field": "value", "type": "quantitative", "legend": None,
                              "scale": {"range": colours, "zero": False}},
                    "tooltip": {"field": "caption"},
                },
            },
            {
                "mark": {"type": "text", "fontSize": 12},
                "encoding": {
                    "text": {"field": "value", "format": ".1f"},
                    "color": {"condition": {"test": "datum.value > (datum.least + datum.most) / 2",
                                            "value": on_high}, "value": on_low},
                    "tooltip": {"field": "caption"},
                },
            },
        ],
    }  # fmt: skip


def _colour(styles: Mapping[str, Style], theme: str, legend: bool) -> Spec:
    return _by_label(styles, [getattr(style, theme) for style in styles.values()], legend)


def _dash(styles: Mapping[str, Style], legend: bool) -> Spec:
    return _by_label(styles, [list(style.dash) or [1, 0] for style in styles.values()], legend)


def _by_label(styles: Mapping[str, Style], values: list[object], legend: bool) -> Spec:
    scale = {"domain": list(styles), "range": values}
    shown = _LEGEND if legend else None
    return {"field": "label", "type": "nominal", "scale": scale, "legend": shown}
