"""A picture of a loss: its value, and its gradient for clean and for wrong labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from . import _vega
from ._errors import UsageError
from ._files import refuse_folder, write_atomically
from .losses import Loss

_BLUE, _GREY, _GREEN, _RED = "#0a4fa3", "#5c6470", "#00795a", "#c2470f"
_WIDTH, _HEIGHT = 320, 220


def curves(loss: Loss, num_classes: int = 10, points: int = 99) -> dict[str, list[dict[str, Any]]]:
    """The numbers that :func:`draw` shows, as rows.

    Args:
        loss: the loss to evaluate.
        num_classes: the number of classes K.
        points: the number of probabilities, from 0.01 to 0.99.

    Returns:
        ``"value"``: the loss and the norm of its gradient with respect to the logits against the
        probability of the label; the other classes share the rest equally. ``"training"``: the
        norm of the gradient for a clean and for a wrong label, against the probability of the true
        class.
    """
    p = torch.linspace(0.01, 0.99, points, dtype=torch.float64)
    values, clean_norms = _evaluate(loss, p, num_classes)
    p_wrong = (1 - p) / (num_classes - 1)  # of a wrong label, when the true class has p
    _, wrong_norms = _evaluate(loss, p_wrong, num_classes, p_true=p)
    columns = (p, values, clean_norms, wrong_norms)
    value, training = [], []
    for x, at, clean, wrong in zip(*(column.tolist() for column in columns), strict=True):
        value += [
            {"p": x, "curve": "value", "y": at},
            {"p": x, "curve": "gradient norm", "y": clean},
        ]
        training += [
            {"p": x, "curve": "clean label", "y": clean},
            {"p": x, "curve": "wrong label", "y": wrong},
        ]
    return {"value": value, "training": training}


def _evaluate(
    loss: Loss, p: Tensor, num_classes: int, p_true: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The loss at label 0 of probability p, and the norm of its gradient by the logits.

    With ``p_true``, class 1 is the true class and has that probability. The remaining classes
    share what is left equally.
    """
    probabilities = ((1 - p) / (num_classes - 1))[:, None].repeat(1, num_classes)
    if p_true is not None:
        probabilities[:, 2:] = ((1 - p_true - p) / max(1, num_classes - 2))[:, None]
        probabilities[:, 1] = p_true
    probabilities[:, 0] = p
    logits = probabilities.clamp(min=1e-12).log().requires_grad_()
    values = loss.per_class(logits)[:, 0]
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    return values.detach(), gradient.norm(dim=1)


def draw(loss: Loss, path: str | Path, num_classes: int = 10) -> None:
    """Write the picture of a loss as png, svg or html; needs ``pip install noiseproof[plot]``.

    Left: the loss and the norm of its gradient against the probability of the label. Right: the
    norm of the gradient for a clean and for a wrong label as the network becomes confident of the
    true class.

    Args:
        loss: the loss to draw.
        path: the file to write; its suffix chooses the format.
        num_classes: the number of classes K.
    """
    path = Path(path)
    refuse_folder(path)
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in _vega.IMAGE_FORMATS:
        raise UsageError(
            f"a picture is written as {', '.join(_vega.IMAGE_FORMATS)}; not as {path.name!r}"
        )
    format = cast(_vega.ImageFormat, suffix)
    title = f"{loss}, {num_classes} classes"
    spec = _chart(curves(loss, num_classes), title, tooltips=format == "html")
    write_atomically(path, _vega.render(spec, format, title))


def _chart(rows: dict[str, list[dict[str, Any]]], title: str, tooltips: bool) -> _vega.Spec:
    value = _panel(
        rows["value"], "Value and gradient norm", "probability of the label, p_y",
        {"value": _BLUE, "gradient norm": _GREY}, tooltips,
    )  # fmt: skip
    training = _panel(
        rows["training"], "Gradient norm of a clean and of a wrong label",
        "probability of the true class, as training goes on",
        {"clean label": _GREEN, "wrong label": _RED}, tooltips,
    )  # fmt: skip
    return {
        "title": {"text": title, "fontSize": 15, "offset": 12},
        "description": f"{title}: its value, and its gradient for clean and for wrong labels",
        "hconcat": [value, training],
        "spacing": 32,
        "resolve": {"scale": {"color": "independent", "strokeDash": "independent"}},
        "config": {**_vega.config(), "background": "white", "padding": 16},
    }


def _panel(
    rows: list[dict[str, Any]], title: str, x_title: str, colours: dict[str, str], tooltips: bool
) -> _vega.Spec:
    """Two lines, the second one dashed. Tooltips need a point for each row, which is invisible."""
    names = list(colours)
    legend = {
        "title": None, "orient": "top", "padding": 0, "offset": 10,
        "symbolType": "stroke", "symbolSize": 500, "symbolOpacity": 1,
    }  # fmt: skip
    x = {
        "field": "p", "type": "quantitative", "title": x_title, "scale": {"domain": [0, 1]},
        "axis": {"tickCount": 5},
    }  # fmt: skip
    mark: _vega.Spec = {"type": "line", "strokeWidth": 2.5, "strokeCap": "butt"}
    encoding: _vega.Spec = {
        "x": x,
        "y": {"field": "y", "type": "quantitative", "title": None, "axis": {"tickCount": 5}},
        "color": {
            "field": "curve", "type": "nominal", "legend": legend,
            "scale": {"domain": names, "range": list(colours.values())},
        },
        "strokeDash": {
            "field": "curve", "type": "nominal", "legend": legend,
            "scale": {"domain": names, "range": [[1, 0], [6, 3]]},
        },
    }  # fmt: skip
    if tooltips:
        mark["point"] = {"opacity": 0, "size": 80}
        encoding["tooltip"] = [
            {"field": "curve", "type": "nominal"},
            {"field": "p", "type": "quantitative", "format": ".2f"},
            {"field": "y", "type": "quantitative", "format": ".4g"},
        ]
    return {
        "title": title, "data": {"values": rows}, "width": _WIDTH, "height": _HEIGHT,
        "mark": mark, "encoding": encoding,
    }  # fmt: skip
