"""A picture of a loss: its value, its gradient, and whom the gradient listens to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .losses import Loss

WRITTEN = ("png", "svg", "html")


def curves(loss: Loss, num_classes: int = 10, points: int = 99) -> dict[str, list[dict[str, Any]]]:
    """What the picture shows, as rows of numbers.

    ``value``: L against p_y, the rest even, and the length of its gradient by the logits.
    ``training``: the length of the gradient for a clean label and for a wrong one, as the network
    grows sure of the true class.
    """
    u = torch.linspace(0.01, 0.99, points, dtype=torch.float64)
    values, gradients = _along(loss, u, num_classes)
    wrong = (1 - u) / (num_classes - 1)  # what is left for a wrong label when the true class has u
    _, of_wrong = _along(loss, wrong, num_classes, sure=u)
    rows = zip(u.tolist(), values.tolist(), gradients.tolist(), of_wrong.tolist(), strict=True)
    value, training = [], []
    for p, at, clean, noisy in rows:
        value += [
            {"p": p, "what": "value", "number": at},
            {"p": p, "what": "gradient", "number": clean},
        ]
        training += [
            {"p": p, "label": "clean", "gradient": clean},
            {"p": p, "label": "wrong", "gradient": noisy},
        ]
    return {"value": value, "training": training}


def _along(
    loss: Loss, u: Tensor, num_classes: int, sure: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The loss at label 0 of probability u, and the length of its gradient by the logits.

    The rest is even, or, where the network is ``sure`` of class 1, what it leaves.
    """
    p = ((1 - u) / (num_classes - 1))[:, None].repeat(1, num_classes)
    if sure is not None:
        p[:, 2:] = ((1 - sure - u) / max(1, num_classes - 2))[:, None]
        p[:, 1] = sure
    p[:, 0] = u
    logits = p.clamp(min=1e-12).log().requires_grad_()
    values = loss.per_class(logits)[:, 0]
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    return values.detach(), gradient.norm(dim=1)


def _rows(values: list[dict[str, Any]]) -> Any:
    import altair as alt

    return alt.Data(values=values)  # type: ignore[no-untyped-call]


def draw(loss: Loss, path: str | Path, num_classes: int = 10) -> None:
    """Write the picture of a loss as png, svg or html; needs ``pip install noiseproof[plot]``."""
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in WRITTEN:
        raise ValueError(f"a picture is written as {', '.join(WRITTEN)}; not as {path.name!r}")
    try:
        import altair as alt
    except ImportError:
        raise ValueError(
            "pictures need altair and vl-convert: pip install 'noiseproof[plot]'"
        ) from None
    data = curves(loss, num_classes)
    colours = alt.Scale(domain=["value", "gradient"], range=["#1f77b4", "#7f7f7f"])
    left = (
        alt.Chart(_rows(data["value"]), title="value and length of the gradient")
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("p:Q", title="probability of the label, p_y", scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("number:Q", title=None),
            color=alt.Color("what:N", title=None, scale=colours),
            tooltip=["p:Q", "what:N", "number:Q"],
        )
    )
    colours = alt.Scale(domain=["clean", "wrong"], range=["#2ca02c", "#d62728"])
    right = (
        alt.Chart(_rows(data["training"]), title="gradient of clean and of wrong labels")
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X(
                "p:Q",
                title="probability of the true class, as training goes on",
                scale=alt.Scale(domain=[0, 1]),
            ),
            y=alt.Y("gradient:Q", title=None),
            color=alt.Color("label:N", title="label", scale=colours),
            tooltip=["p:Q", "label:N", "gradient:Q"],
        )
    )
    both = alt.hconcat(
        left.properties(width=320, height=240), right.properties(width=320, height=240)
    ).resolve_scale(color="independent")
    picture = both.properties(title=f"{loss}, {num_classes} classes")
    beside = path.with_name(f".{path.name}.part.{kind}")
    options: dict[str, Any] = {"inline": True} if kind == "html" else {}
    options |= {"ppi": 144} if kind == "png" else {}
    picture.save(str(beside), format=kind, **options)
    os.replace(beside, path)  # written beside and renamed: a reader never sees half a picture
