"""One loss and one way to train with it, for any label noise: what ``auto`` stands for.

Nothing in it depends on the noise or on the data set; the weights of the loss follow from the
number of classes and the learning rate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .. import syntax
from ._setting import Setting

AUTO = "auto"
AUTO_BRINGS: Mapping[str, Any] = {
    "shrink": 4.0, "shrink_schedule": "linear", "shrink_limit": 0.1, "ema_horizon": 0.02,
    "choose_epoch": True,
}  # fmt: skip
"""The settings of a run that it brings, beside the loss, at the learning rate `LR`."""
LR = 0.01
"""The learning rate of SGD that the weights of the loss are for."""


def auto_setting(classes: int, lr: float = LR, optimizer: str = "sgd") -> Setting:
    """The loss and what is trained with it.

    >>> auto_setting(10).loss, auto_setting(100, lr=0.1).loss
    ('5*nce + amse(a=20)', '5*nce + 0.1*amse(a=200)')
    """
    loss, brings = auto_loss(classes, lr, optimizer), auto_brings(lr, optimizer)
    return Setting(loss, "noiseproof", note=auto_note({**brings, "loss": loss}), brings=brings)


def auto_loss(classes: int, lr: float = LR, optimizer: str = "sgd") -> str:
    """The loss of a network that is trained with a learning rate.

    The weights grow with the number of classes: the gradient of NCE shrinks with 1 / (K log K), so
    that 1 / log K remains, and the passive part is 4 (1 - p_y) + ... .
    """
    scale = _scale(lr, optimizer)
    return syntax.canonical(f"{scale * classes / 2:.6g}*nce + {scale:.6g}*amse(a={2 * classes})")


def auto_brings(lr: float = LR, optimizer: str = "sgd") -> dict[str, Any]:
    """`AUTO_BRINGS` for a learning rate: the limit of the penalty keeps its share of the pull.

    >>> auto_brings(lr=0.1)["shrink_limit"]
    0.01
    """
    limit = _scale(lr, optimizer) * AUTO_BRINGS["shrink_limit"]
    return {**AUTO_BRINGS, "shrink_limit": float(f"{limit:.6g}")}


def _scale(lr: float, optimizer: str) -> float:
    """What the loss is multiplied by.

    What SGD does depends on the learning rate times the loss, so at ten times the rate a tenth of
    the loss is the same rule; a smaller rate is a wish for shorter steps, and is left to be one.
    AdamW divides by the size of the gradient, so that it makes no difference there.
    """
    return min(1.0, LR / lr) if lr and optimizer == "sgd" else 1.0


def auto_note(settings: Mapping[str, Any]) -> str:
    """What it stands for in a run with these settings, of which some may have been given."""
    grows = " --shrink-schedule linear" if settings["shrink_schedule"] == "linear" else ""
    grows += f" --shrink-limit {limit:g}" if (limit := settings["shrink_limit"]) else ""
    parts = [f"--shrink {settings['shrink']:g}{grows}" if settings["shrink"] else ""]
    if settings["ema_horizon"]:
        parts.append(f"averaged weights (--ema-horizon {settings['ema_horizon']:g})")
    if settings["choose_epoch"]:
        parts.append("the epoch that does best on held-out labels (--choose-epoch True)")
    parts = [part for part in parts if part]
    listed = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
    return f"auto is {syntax.short(settings['loss'])}" + (f" with {listed}" if listed else "")


def is_auto(loss: str, classes: int | None, lr: float = LR, optimizer: str = "sgd") -> bool:
    """Whether a canonical text is the loss of auto.

    Args:
        loss: the text.
        classes: of the data; None where that is not known, and the text alone tells.
        lr: of the run.
        optimizer: of the run.

    >>> is_auto(auto_setting(7).loss, None), is_auto(auto_setting(7).loss, 10)
    (True, False)
    """
    if classes is None:
        found = re.search(r"amse\(a=(\d+)\)$", loss)
        classes = int(found[1]) // 2 if found else 0
    return classes >= 2 and loss == auto_loss(classes, lr, optimizer)
