"""Vega-Lite charts: their theme, and their conversion to Vega, SVG, PNG and HTML.

A chart is a Vega-Lite specification, a plain dict. vl-convert compiles it; no browser is needed.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, get_args

from ._errors import UsageError, require
from ._escape import printable

Spec = dict[str, Any]
ImageFormat = Literal["png", "svg", "html"]
IMAGE_FORMATS: tuple[str, ...] = get_args(ImageFormat)
FONT = "Inter, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"
THEMES = {
    "light": {"ink": "#1c2128", "muted": "#5b6470", "line": "#e3e6ea", "page": "#ffffff"},
    "dark": {"ink": "#e8ebef", "muted": "#a3adba", "line": "#2f3640", "page": "#15181d"},
}
PPI = 144


def config(theme: str = "light") -> Spec:
    """The Vega-Lite ``config`` that all charts of a theme share."""
    c = THEMES[theme]
    axis = {
        "domain": False, "ticks": False, "gridColor": c["line"], "labelColor": c["muted"],
        "titleColor": c["muted"], "labelFontSize": 11, "titleFontSize": 11,
        "titleFontWeight": "normal", "labelPadding": 6, "titlePadding": 8,
    }  # fmt: skip
    return {
        "background": "transparent",
        "font": FONT,
        "view": {"stroke": None},
        "axis": axis,
        "axisX": {"grid": False, "domain": True, "domainColor": c["line"]},
        "title": {"color": c["ink"], "fontSize": 13, "fontWeight": 600, "anchor": "start"},
        "legend": {"labelColor": c["ink"], "titleColor": c["muted"], "labelFontSize": 11},
        "rule": {"color": c["muted"]},
        "text": {"color": c["ink"]},
    }


def to_vega(spec: Spec, config: Spec) -> Spec:
    """Compile Vega-Lite to Vega."""
    vega: Spec = _vl_convert().vegalite_to_vega(spec, config=config)
    vega.pop("$schema", None)
    return vega


def render(spec: Spec, format: ImageFormat, title: str = "") -> bytes:
    """Render a chart as a PNG, an SVG or a self-contained HTML page.

    Args:
        spec: a Vega-Lite specification with its data.
        format: ``"png"``, ``"svg"`` or ``"html"``.
        title: the title of the HTML page; images do not show it.
    """
    spec = plain(spec)
    if format == "png":
        return bytes(_vl_convert().vegalite_to_png(spec, ppi=PPI))
    if format == "svg":
        return _renumber_ids(str(_vl_convert().vegalite_to_svg(spec))).encode()
    if format == "html":
        content = {
            "title": html.escape(printable(title)),
            "library": javascript(),
            "spec": to_json(spec),
        }
        return re.sub(r"\$(\w+)\$", lambda match: content[match[1]], _PAGE).encode()
    raise UsageError(f"a chart is written as {', '.join(IMAGE_FORMATS)}; not as {format!r}")


@cache
def javascript() -> str:
    """Vega, Vega-Lite and vega-embed as the text of a ``<script>`` that sets ``vegaEmbed``."""
    bundle = str(_vl_convert().javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    return bundle.replace("</script", "<\\/script")


def to_json(content: Any) -> str:
    """JSON that is safe inside a ``<script>``: nothing in it can end the element.

    It is that of the :func:`plain` content.
    """
    text = json.dumps(plain(content), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def plain(content: Any) -> Any:
    """What JSON can hold and a chart can draw: None for NaN and infinity, no control characters.

    >>> plain({"y": [1.5, float("nan")]})
    {'y': [1.5, None]}
    """
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, str):
        return printable(content)
    if isinstance(content, Mapping):
        return {plain(name): plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [plain(value) for value in content]
    return content


def _vl_convert() -> Any:
    return require("vl_convert", "plot", "a chart")


def _renumber_ids(svg: str) -> str:
    """Number the ids of an SVG from 0, so that the same chart always gives the same bytes.

    vl-convert counts them on from one chart to the next.
    """
    seen: dict[str, int] = {}
    return re.sub(
        r"\b(clip|gradient_)(\d+)\b", lambda m: f"{m[1]}{seen.setdefault(m[0], len(seen))}", svg
    )


_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title$</title>
</head>
<body>
<div id="chart"></div>
<script>
$library$
</script>
<script>
vegaEmbed("#chart", $spec$, {mode: "vega-lite", renderer: "svg", actions: {export: true}});
</script>
</body>
</html>
"""
