"""One loss and one way to train with it, for any label noise: what ``auto`` stands for.

Nothing in it depends on the noise or on the data set; the weights of the loss follow from the
number of classes alone.
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
"""The settings of a run that it brings, beside the loss."""


def auto_setting(classes: int) -> Setting:
    """The loss and what is trained with it.

    >>> auto_setting(10).loss, auto_setting(100).loss
    ('5*nce + amse(a=20)', '50*nce + amse(a=200)')
    """
    return Setting(_loss(classes), "noiseproof", note=auto_note(classes), brings=AUTO_BRINGS)


def _loss(classes: int) -> str:
    """Both parts pull as hard on a sample whatever the number of classes.

    The gradient of NCE shrinks with 1 / (K log K), and the passive part is 4 (1 - p_y) + ...
    """
    return syntax.canonical(f"{classes / 2:g}*nce + amse(a={2 * classes})")


def auto_note(classes: int, settings: Mapping[str, Any] = AUTO_BRINGS) -> str:
    """What it stands for, with settings that may have been given in place of its own."""
    found = {**AUTO_BRINGS, **settings}
    grows = " --shrink-schedule linear" if found["shrink_schedule"] == "linear" else ""
    grows += f" --shrink-limit {limit:g}" if (limit := found["shrink_limit"]) else ""
    parts = [f"--shrink {found['shrink']:g}{grows}" if found["shrink"] else ""]
    if found["ema_horizon"]:
        parts.append(f"averaged weights (--ema-horizon {found['ema_horizon']:g})")
    if found["choose_epoch"]:
        parts.append("the epoch that does best on held-out labels (--choose-epoch True)")
    parts = [part for part in parts if part]
    listed = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
    return f"auto is {syntax.short(_loss(classes))}" + (f" with {listed}" if listed else "")


def is_auto(loss: str, classes: int | None) -> bool:
    """Whether a canonical text is the loss of auto.

    Args:
        loss: the text.
        classes: of the data; None where that is not known, and the text alone tells.

    >>> is_auto(auto_setting(7).loss, None), is_auto(auto_setting(7).loss, 10)
    (True, False)
    """
    if classes is None:
        found = re.match(r"(?:([\d.]+)\*)?nce \+ amse\b", loss)
        classes = round(2 * float(found[1] or 1)) if found else 0
    return classes >= 2 and loss == _loss(classes)
