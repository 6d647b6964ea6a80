"""One loss and one way to train with it, for any label noise: what ``auto`` stands for.

Nothing in it depends on the noise or on the data set; the weights of the loss follow from the
number of classes alone.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from .. import syntax
from ._setting import Setting

AUTO = "auto"
SOURCE = "noiseproof"
AUTO_BRINGS: Mapping[str, Any] = {
    "shrink": 4.0, "shrink_schedule": "constant", "ema_horizon": 0.02, "choose_epoch": True,
}  # fmt: skip
"""The settings of a run that it brings, beside the loss."""
_MOST_CLASSES = 2_000  # for which a loss is recognised by its text


def auto_setting(classes: int) -> Setting:
    """The loss and what is trained with it.

    >>> auto_setting(10).loss, auto_setting(100).loss
    ('5*nce + amse(a=20)', '50*nce + amse(a=200)')
    """
    return Setting(_loss(classes), SOURCE, note=_note(classes), brings=AUTO_BRINGS)


def _loss(classes: int) -> str:
    """Both parts pull as hard on a sample whatever the number of classes.

    The gradient of NCE shrinks with 1 / (K log K), and the passive part is 4 (1 - p_y) + ...
    """
    return syntax.canonical(f"{classes / 2:g}*nce + amse(a={2 * classes})")


def _note(classes: int) -> str:
    return (
        f"auto is {syntax.short(_loss(classes))} with --shrink {AUTO_BRINGS['shrink']:g}, averaged "
        f"weights (--ema-horizon {AUTO_BRINGS['ema_horizon']:g}), and the epoch that does best on "
        "held-out labels (--choose-epoch)"
    )


def is_auto(loss: str, classes: int | None, shrink: float, shrink_schedule: str) -> bool:
    """Whether a run is one of ``auto``: by its loss and its penalty.

    Args:
        loss: its canonical text.
        classes: of its data; None where that is not known.
        shrink: of the run.
        shrink_schedule: likewise.
    """
    if (shrink, shrink_schedule) != (AUTO_BRINGS["shrink"], AUTO_BRINGS["shrink_schedule"]):
        return False
    return loss in (_losses() if classes is None else (_loss(classes),))


@functools.cache
def _losses() -> frozenset[str]:
    return frozenset(_loss(classes) for classes in range(2, _MOST_CLASSES))
