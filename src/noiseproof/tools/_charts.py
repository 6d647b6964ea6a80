"""Pictures of a choice and of a study."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .. import _vega
from .._errors import UsageError
from .._files import refuse_folder, write_atomically

if TYPE_CHECKING:
    from ._choose import Choice

_BLUE, _GREY, _ORANGE = "#0a4fa3", "#5c6470", "#c2470f"
_WIDTH, _STEP = 300, 26


def write_chart(spec: _vega.Spec, path: Path, title: str) -> None:
    """Write a chart to a file whose suffix is its format."""
    refuse_folder(path)
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in _vega.IMAGE_FORMATS:
        raise UsageError(
            f"a picture is written as {', '.join(_vega.IMAGE_FORMATS)}; not as {path.name!r}"
        )
    write_atomically(path, _vega.render(spec, cast(_vega.ImageFormat, suffix), title))


def draw_choice(choice: Choice, path: Path) -> None:
    """Left the accuracy of each loss, right how far it is behind the best and how sure that is."""
    write_chart(choice_chart(choice), path, f"{choice.loss} and others on held-out labels")


def choice_chart(choice: Choice) -> _vega.Spec:
    trained = [option for option in choice.options if option.held_out]
    order = [option.loss for option in trained]
    level = choice.level
    accuracies: list[dict[str, Any]] = []
    behind: list[dict[str, Any]] = []
    for option in trained:
        accuracies += [
            {"loss": option.loss, "what": "held out, as given", "accuracy": 100 * value}
            for value in option.held_out
        ]
        accuracies += [
            {"loss": option.loss, "what": "test", "accuracy": 100 * value} for value in option.test
        ]
        if (found := option.behind) is not None:
            behind.append(
                {
                    "loss": option.loss, "points": found.points,
                    "low": found.points - found.margin, "high": found.points + found.margin,
                    "told": "cannot be told apart" if option.loss in level else "behind",
                }
            )  # fmt: skip
    tested = any(option.test for option in trained)
    names = {"held out, as given": _BLUE, **({"test": _GREY} if tested else {})}
    legend = {"title": None, "orient": "top", "padding": 0, "offset": 8}
    y = {"field": "loss", "type": "nominal", "sort": order, "title": None}
    left = {
        "title": "Accuracy in %, each seed", "width": _WIDTH, "height": {"step": _STEP},
        "data": {"values": accuracies},
        "mark": {"type": "point", "filled": True, "size": 60, "opacity": 0.8},
        "encoding": {
            "y": y | {"axis": {"grid": True, "labelLimit": 260}},
            "x": {
                "field": "accuracy", "type": "quantitative", "title": None,
                "scale": {"zero": False, "nice": True}, "axis": {"tickCount": 6},
            },
            "color": {
                "field": "what", "type": "nominal", "legend": legend,
                "scale": {"domain": list(names), "range": list(names.values())},
            },
        },
    }  # fmt: skip
    x = {"type": "quantitative", "title": None, "axis": {"tickCount": 6}}
    colour = {
        "field": "told",
        "type": "nominal",
        "legend": legend,
        "scale": {"domain": ["cannot be told apart", "behind"], "range": [_ORANGE, _GREY]},
    }
    shared = {"y": y | {"scale": {"domain": order}, "axis": {"grid": True, "labels": False}}}
    right = {
        "title": f"Points behind {choice.loss} on held-out labels, 95 % interval",
        "width": _WIDTH, "height": {"step": _STEP}, "data": {"values": behind},
        "layer": [
            {
                "data": {"values": [{"zero": 0}]}, "mark": {"type": "rule", "strokeDash": [3, 3]},
                "encoding": {"x": {"field": "zero", **x}},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 2.5},
                "encoding": shared | {
                    "x": {"field": "low", **x}, "x2": {"field": "high"}, "color": colour,
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70},
                "encoding": shared | {"x": {"field": "points", **x}, "color": colour},
            },
        ],
    }  # fmt: skip
    return {
        "title": {"text": textwrap.wrap(choice.sure, 110), "fontSize": 13, "offset": 14},
        "description": choice.sure,
        "hconcat": [left, right],
        "spacing": 36,
        "resolve": {"scale": {"color": "independent"}},
        "config": {**_vega.config(), "background": "white", "padding": 16},
    }
