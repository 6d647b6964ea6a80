"""The charts as Vega-Lite: three kinds, drawn in a light and a dark theme."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._names import Style

Spec = dict[str, Any]
FONT = "Inter, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"
THEMES = {
    "light": {"ink": "#1c2128", "muted": "#5b6470", "line": "#e3e6ea", "page": "#ffffff"},
    "dark": {"ink": "#e8ebef", "muted": "#a3adba", "line": "#2f3640", "page": "#15181d"},
}
HEIGHT = 210


def config(theme: str) -> Spec:
    """What all charts of a theme share."""
    c = THEMES[theme]
    axis = {
        "domain": False, "ticks": False, "gridColor": c["line"], "labelColor": c["muted"],
        "titleColor": c["muted"], "labelFontSize": 11, "titleFontSize": 11,
        "titleFontWeight": "normal", "labelPadding": 6, "titlePadding": 8,
    }  # fmt: skip
    return {
        "background": "transparent",
        "font": FONT,
        "aria": False,  # the page says what a chart shows, in words
        "view": {"stroke": None},
        "axis": axis,
        "axisX": {"grid": False, "domain": True, "domainColor": c["line"]},
        "title": {"color": c["ink"], "fontSize": 13, "fontWeight": 600, "anchor": "start"},
        "legend": {"labelColor": c["ink"], "titleColor": c["muted"], "labelFontSize": 11},
        "rule": {"color": c["muted"]},
        "text": {"color": c["ink"]},
    }


_LEGEND = {"title": None, "symbolType": "stroke", "symbolSize": 500, "symbolOpacity": 1}


def _colour(looks: Mapping[str, Style], theme: str, legend: bool) -> Spec:
    scale = {"domain": list(looks), "range": [getattr(s, theme) for s in looks.values()]}
    return {"field": "l", "type": "nominal", "scale": scale, "legend": _LEGEND if legend else None}


def _dash(looks: Mapping[str, Style], legend: bool) -> Spec:
    scale = {"domain": list(looks), "range": [list(s.dash) or [1, 0] for s in looks.values()]}
    return {"field": "l", "type": "nominal", "scale": scale, "legend": _LEGEND if legend else None}


_FOCUS = {"condition": {"test": "focus === '' || focus === datum.l", "value": 1}, "value": 0.15}
_PARAMS = [{"name": "hidden", "value": []}, {"name": "focus", "value": ""}]
_SEEN = {"filter": "indexof(hidden, datum.l) < 0"}


def lines(
    looks: Mapping[str, Style], theme: str, *, x: str, y: str | None, dots: bool = False,
    legend: bool = False,
) -> Spec:  # fmt: skip
    """Lines with a band of the deviation. The page itself draws what is read off them."""
    across = {"field": "x", "type": "quantitative", "title": x,
              "scale": {"nice": False, "padding": 8 if dots else 0},
              "axis": {"tickCount": 5}}  # fmt: skip
    up = {"type": "quantitative", "title": y, "scale": {"zero": False}, "axis": {"tickCount": 5}}
    colour = _colour(looks, theme, legend)
    mark: Spec = {"type": "line", "clip": True, "strokeWidth": 2, "strokeJoin": "round"}
    if dots:
        mark["point"] = {"size": 28, "filled": True}
    return {
        "params": _PARAMS,
        "transform": [_SEEN],
        "layer": [
            {
                "transform": [
                    {"calculate": "max(0, datum.y - (datum.d || 0))", "as": "low"},
                    {"calculate": "min(100, datum.y + (datum.d || 0))", "as": "high"},
                ],
                "mark": {"type": "area", "clip": True},
                "encoding": {
                    "x": across, "y": {**up, "field": "low"}, "y2": {"field": "high"},
                    "color": colour,
                    "opacity": {"condition": {"test": "focus === '' || focus === datum.l",
                                              "value": 0.13}, "value": 0.02},
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
                    "x": across, "y": {**up, "field": "y"}, "color": colour,
                    "strokeDash": _dash(looks, legend), "opacity": _FOCUS,
                },
            },
        ],
    }  # fmt: skip


def pairs(looks: Mapping[str, Style], theme: str, *, x: str, whole: bool) -> Spec:
    """Two numbers of each loss on one line, ``right`` filled and ``wrong`` hollow, in the order
    of the rows; on the ``whole`` scale of percent, or what of it there is.
    """
    axis = {"grid": True, "labelColor": THEMES[theme]["ink"], "labelLimit": 170}
    down = {"field": "l", "type": "nominal", "title": None, "sort": None, "axis": axis}
    scale: Spec = {"domain": [0, 100]} if whole else {"zero": False, "padding": 10}
    across = {"type": "quantitative", "scale": scale, "title": x, "axis": {"tickCount": 5}}
    colour = _colour(looks, theme, False)
    dot: Spec = {"type": "point", "size": 80, "opacity": 1, "strokeWidth": 2}
    return {
        "params": _PARAMS,
        "transform": [_SEEN],
        "height": {"step": 19},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.45},
                "encoding": {"y": down, "x": {**across, "field": "wrong"}, "x2": {"field": "right"},
                             "color": colour},
            },
            {
                "mark": {**dot, "filled": False, "fill": THEMES[theme]["page"]},
                "encoding": {"y": down, "x": {**across, "field": "wrong"}, "color": colour,
                             "tooltip": {"field": "said"}, "opacity": _FOCUS},
            },
            {
                "mark": {**dot, "filled": True},
                "encoding": {"y": down, "x": {**across, "field": "right"}, "color": colour,
                             "tooltip": {"field": "said"}, "opacity": _FOCUS},
            },
        ],
    }  # fmt: skip


def grid(theme: str, x: str, y: str) -> Spec:
    """A number for every pair of two parameters, as a heat map."""
    across = {"field": "x", "type": "ordinal", "title": x, "axis": {"labelAngle": 0}}
    down = {"field": "y", "type": "ordinal", "title": y, "sort": "descending"}
    ramp = ["#eef3f8", "#0a4fa3"] if theme == "light" else ["#1f2630", "#7db2ff"]
    ink = ["#1c2128", "#ffffff"] if theme == "light" else ["#e8ebef", "#10141a"]
    return {
        "params": _PARAMS,
        "transform": [
            {"joinaggregate": [{"op": "min", "field": "v", "as": "least"},
                               {"op": "max", "field": "v", "as": "most"}]},
        ],
        "encoding": {"x": across, "y": down},
        "layer": [
            {
                "mark": {"type": "rect", "cornerRadius": 3, "stroke": THEMES[theme]["page"],
                         "strokeWidth": 3},
                "encoding": {
                    "color": {"field": "v", "type": "quantitative", "legend": None,
                              "scale": {"range": ramp, "zero": False}},
                    "tooltip": {"field": "said"},
                },
            },
            {
                "mark": {"type": "text", "fontSize": 12},
                "encoding": {
                    "text": {"field": "v", "format": ".1f"},
                    "color": {"condition": {"test": "datum.v > (datum.least + datum.most) / 2",
                                            "value": ink[1]}, "value": ink[0]},
                    "tooltip": {"field": "said"},
                },
            },
        ],
    }  # fmt: skip
