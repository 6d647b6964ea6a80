"""Pictures of a choice and of a study."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .. import _vega
from .._errors import UsageError
from .._files import refuse_folder, write_atomically

if TYPE_CHECKING:
    from ._choose import Choice
    from ._tune import Tuning

_BLUE, _GREY, _ORANGE = "#0a4fa3", "#5c6470", "#c2470f"
_COLOURS = ["#0a4fa3", "#c2470f", "#00795a", "#8a3ffc", "#b8860b", "#5c6470", "#d02670", "#007d79"]
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
        "title": f"{choice.measure.capitalize()} in %, each seed", "width": _WIDTH,
        "height": {"step": _STEP}, "data": {"values": accuracies},
        "mark": {"type": "point", "filled": True, "size": 60, "opacity": 0.8, "tooltip": True},
        "encoding": {
            "y": y | {"axis": {"grid": True, "labelLimit": 260}},
            "x": {
                "field": "accuracy", "type": "quantitative", "title": None,
                "scale": {"zero": False, "padding": 10}, "axis": {"tickCount": 6},
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
                "mark": {"type": "point", "filled": True, "size": 70, "tooltip": True},
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


def draw_tuning(tuning: Tuning, path: Path) -> None:
    """Left the trials in their order with the best so far, right by their learning rate."""
    write_chart(tuning_chart(tuning), path, f"{len(tuning.trials)} trials")


def tuning_chart(tuning: Tuning) -> _vega.Spec:
    rows: list[dict[str, Any]] = []
    best: list[dict[str, Any]] = []
    for trial in tuning.trials:
        if trial.state == "fail":
            continue
        rows.append(
            {
                "trial": trial.number, "accuracy": 100 * trial.accuracy, "lr": trial.lr,
                "state": trial.state, "weight decay": trial.weight_decay,
                "loss": re.sub(r"[0-9.e+-]+\*", "", trial.loss), "text": trial.loss,
            }
        )  # fmt: skip
        if trial.state == "complete":
            highest = max([100 * trial.accuracy, *(row["accuracy"] for row in best)])
            best.append({"trial": trial.number, "accuracy": highest})
    names = sorted({row["loss"] for row in rows})
    y = {
        "field": "accuracy", "type": "quantitative", "title": "held out, as given, in %",
        "scale": {"zero": False},
    }  # fmt: skip
    points: _vega.Spec = {
        "mark": {"type": "point", "filled": True, "size": 60},
        "encoding": {
            "y": y,
            "color": {
                "field": "loss", "type": "nominal", "title": None,
                "scale": {"domain": names, "range": _COLOURS[: len(names)]},
                "legend": {"orient": "right", "symbolOpacity": 1},
            },
            "opacity": {
                "field": "state", "type": "nominal", "legend": None,
                "scale": {"domain": ["complete", "pruned"], "range": [0.95, 0.3]},
            },
            "tooltip": [
                {"field": name, "type": "nominal"} for name in ("trial", "text", "lr", "accuracy")
            ],
        },
    }  # fmt: skip
    number = {
        "field": "trial", "type": "quantitative", "title": "trial; pruned ones are pale",
        "axis": {"tickMinStep": 1},
    }  # fmt: skip
    rate = {
        "field": "lr", "type": "quantitative", "title": "learning rate", "scale": {"type": "log"},
    }  # fmt: skip
    encoding = points["encoding"]
    return {
        "title": {"text": textwrap.wrap(tuning.sure, 110), "fontSize": 13, "offset": 14},
        "description": tuning.sure,
        "spacing": 36,
        "hconcat": [
            {
                "width": _WIDTH, "height": 220, "layer": [
                    {
                        "data": {"values": best},
                        "mark": {"type": "line", "interpolate": "step-after", "color": _GREY},
                        "encoding": {"x": number, "y": y},
                    },
                    points | {
                        "data": {"values": rows}, "encoding": encoding | {"x": number},
                    },
                ],
            },
            points | {
                "width": _WIDTH, "height": 220, "data": {"values": rows},
                "encoding": encoding | {"x": rate},
            },
        ],
        "config": {**_vega.config(), "background": "white", "padding": 16},
    }  # fmt: skip
