"""What is wrong with the settings of a run, said in one line; each by itself, then together."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import catalogue
from .._errors import UsageError
from .._hints import one_of
from .._imports import is_import
from ..sources import is_source, meant_source
from ._schedules import SCHEDULES

if TYPE_CHECKING:
    from ._run import Run

NUMBER: Any = numbers.Real  # NumPy's are too
_MAX = 1e38  # of a float32
_RANGES: tuple[tuple[str, type, float, float], ...] = (
    ("rate", float, 0, 1), ("ema", float, 0, 1), ("holdout", float, 0, 1),
    ("ema_horizon", float, 0, 1),
    ("momentum", float, 0, 1), ("lr", float, 0, _MAX), ("lr_floor", float, 0, _MAX),
    ("weight_decay", float, 0, _MAX), ("clip", float, 0, _MAX),
    ("l1", float, 0, _MAX), ("shrink", float, 0, _MAX),
    ("shrink_limit", float, 0, _MAX), ("balance", float, 0, _MAX),
    ("beta1", float, 0, 1), ("beta2", float, 0, 1), ("eps", float, 0, _MAX),
    ("warmup", float, 0, _MAX), ("label_smoothing", float, 0, 1), ("mixup", float, 0, 1e6),
    ("rotate", float, 0, 180), ("crop", int, 0, math.inf), ("epochs", int, 1, math.inf),
    ("batch_size", int, 2, math.inf), ("seed", int, 0, 2**32 - 1),
    ("image_size", int, 0, 4096), ("crop_size", int, 0, 4096),
    ("crop_scale", float, 0, 1), ("jitter", float, 0, 1), ("fold", int, 0, 1000),
)  # fmt: skip
_BELOW_ONE = ("ema", "holdout", "label_smoothing", "beta1", "beta2")
_PATHS = ("test", "weights", "cache")
_TEXTS = (
    "dataset", "loss", "model", "device", "optimizer", "test", "label", "text", "image",
    "truth", "weights", "cache",
)  # fmt: skip
_OPEN = ("model", "optimizer")  # None until the run is resolved
_UNNAMED = ("device", "test", "label", "text", "image", "truth", "weights", "cache")
"""Of which None is the same as the default."""
_REMEDIES = {
    "loss": "; a loss of your own goes to fit(run, loss=...)",
    "model": "; a network of your own goes to fit(run, network=...)",
    "optimizer": "; there are sgd and adamw",
}
_OF_IMAGES = ("crop", "crop_size", "crop_scale", "flip", "rotate", "jitter")
_FLAGS = ("nesterov", "flip", "skip_unreadable", "choose_epoch")
_LISTS = ("imports", "freeze", "ignore")
OF_SOURCES = (
    "test", "label", "text", "image", "truth", "ignore", "image_size", "skip_unreadable",
)  # fmt: skip
"""The settings that say how data of one's own is read."""
CHOICES: dict[str, tuple[str, ...]] = {
    "noise": tuple(name for name, n in catalogue.NOISES.items() if n.group != "given"),
    "variant": catalogue.PROTOCOLS,
    "protocol": catalogue.PROTOCOLS,
    "schedule": tuple(SCHEDULES),
    "schedule_by": ("epoch", "step"),
    "optimizer": tuple(catalogue.OPTIMIZERS),
    "decay_on": ("all", "matrices"),
    "shrink_schedule": ("constant", "linear"),
    "class_weight": ("none", "balanced"),
    "precision": ("auto", "bf16", "tf32", "fp32"),
    "stream": ("auto", "yes", "no"),
}
"""The settings that take one of a few values."""


def check(run: Run) -> dict[str, Any]:
    """The settings as they are kept: 1 and 1.0 are one, and a list has an order.

    Raises:
        UsageError: one of them is of another type or out of its range, or does not go with another.
    """
    values = vars(run) | _numbers(run)
    for name in _PATHS:
        if isinstance(values[name], os.PathLike):
            values[name] = os.fspath(values[name])
    for name in _UNNAMED:
        if values[name] is None:
            values[name] = type(run).__dataclass_fields__[name].default
    values["device"] = str(values["device"])  # a torch.device too
    for name in _TEXTS:
        value = values[name]
        if not isinstance(value, str) and (value is not None or name not in _OPEN):
            shown = " ".join(repr(value).split())  # that of a network has many lines
            raise UsageError(f"{name} must be a text; it was {shown:.60}{_REMEDIES.get(name, '')}")
    for name in _FLAGS:
        value = values[name]
        if type(value).__name__ in ("bool", "bool_"):  # NumPy's too
            values[name] = bool(value)
        elif value is not None:
            raise UsageError(f"{name} is true or false; it was {value!r}")
    for name in _LISTS:
        values[name] = _texts(name, values[name])
    for name, known in CHOICES.items():
        if values[name] is not None:
            values[name] = one_of(name, values[name], known)
    for name in _BELOW_ONE:
        if values[name] == 1:
            raise UsageError(f"{name} must be below 1")
    return values


def _numbers(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, expected, low, high in _RANGES:
        value: Any = getattr(run, name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, NUMBER):
            raise UsageError(f"{name} must be a number; it was {value!r}")
        if not low <= value <= high:
            most = f"{high:g}" if isinstance(high, float) or high < 1e6 else high
            raise UsageError(f"{name} goes from {low} to {most}; it was {value}")
        if value == math.inf or expected(value) != value:
            what = "finite" if expected is float else "whole"
            raise UsageError(f"{name} must be a {what} number; it was {value}")
        found[name] = expected(value) + 0  # 1 and 1.0, -0.0 and 0 are one
    return found


def _texts(name: str, value: Any) -> tuple[str, ...]:
    values = (value,) if isinstance(value, str) else value
    if not isinstance(values, list | tuple) or not all(isinstance(v, str) and v for v in values):
        raise UsageError(f"{name} is a list of texts; it was {value!r}")
    return tuple(sorted(set(values)))


def check_together(run: Run) -> None:
    """Refuse settings that do not go with each other."""
    shrinks = run.shrink or (run.shrink is None and is_auto(run.loss))
    for name in ("shrink_schedule", "shrink_limit"):
        if getattr(run, name) not in (None, "constant", 0.0) and not shrinks:
            what = "shrink=0 shrinks none" if run.shrink == 0 else f"loss={run.loss!r} shrinks none"
            raise UsageError(f"{name} says how weights are shrunk, and {what}: give shrink too")
    if run.choose_epoch and run.holdout == 0:
        raise UsageError("choose_epoch chooses by what is held out: give holdout=0.1")
    if run.ema and run.ema_horizon:
        raise UsageError("ema and ema_horizon say the same thing in two ways: give one of them")
    if run.eps == 0:
        raise UsageError("eps must be above 0: a gradient of zero would be divided by it")
    if run.optimizer is not None:
        check_optimizer_settings(run, run.optimizer)
    if not is_source(run.dataset):
        _check_no_source(run)


def check_optimizer_settings(run: Run, optimizer: str) -> None:
    """Refuse what was given and belongs to another optimizer."""
    known = catalogue.OPTIMIZERS[optimizer].settings
    for other, entry in catalogue.OPTIMIZERS.items():
        for name in entry.settings:
            if name not in known and getattr(run, name) is not None:
                raise UsageError(
                    f"{name} is a setting of {other}, and the optimizer is {optimizer}: "
                    "leave it out"
                )


def check_augmentation(
    run: Run, values: Mapping[str, Any], dataset: str, data: catalogue.DataSummary | None
) -> None:
    """Refuse what cannot be done with the images, or where there are none.

    Args:
        run: the settings that were given.
        values: those that the run will have.
        dataset: its name.
        data: what the data is like, where it is one's own.
    """

    def of(name: str) -> str:
        """A setting, and where it is from if it was not given."""
        by = "" if getattr(run, name) is not None else f", which {dataset} has by default,"
        return f"{name}={values[name]}{by}"

    if data is not None and len(data.shape) != 3:
        given = [name for name in _OF_IMAGES if values[name]]
        if given:
            raise UsageError(f"{of(given[0])} is for images, and {dataset} has none: leave it out")
    if values["crop"] and values["crop_size"]:
        remedy = "give one of them" if run.crop_size else "leave crop out, or give crop_size=0"
        raise UsageError(
            f"{of('crop')} pads images and {of('crop_size')} cuts a part out of them: {remedy}"
        )
    if values["crop_scale"] and not values["crop_size"]:
        raise UsageError(
            f"{of('crop_scale')} says how large a part of an image is brought to crop_size: give "
            "crop_size too"
        )
    if values["crop_scale"] and values["rotate"]:
        raise UsageError(
            f"{of('crop_scale')} cuts parts out of images, and these are not turned: leave rotate "
            "out, or give crop_scale=0"
        )


def check_nlnl(run: Run) -> None:
    """Refuse what needs a label that a sample has."""
    for name in ("mixup", "label_smoothing", "class_weight"):
        if getattr(run, name) not in (0.0, "none"):
            raise UsageError(
                f"nlnl learns from labels that a sample does not have, and takes no {name}: "
                "leave it out, or choose another loss"
            )


def _check_no_source(run: Run) -> None:
    """Of a data set by name, refuse what says how data of one's own is read."""
    known = catalogue.DATASETS.get(run.dataset.strip().lower())
    has_lists = known is not None and known.lists is not None  # of images, some may be damaged
    for name in OF_SOURCES:
        if getattr(run, name) and not (has_lists and name == "skip_unreadable"):
            raise UsageError(
                f"{name} is for data of your own, and dataset is {run.dataset!r}"
                f"{meant_source(run.dataset)}: give csv:FILE, folder:DIR or npz:FILE"
            )


def is_auto(loss: str) -> bool:
    """Whether a loss, as it was given, is ``auto``."""
    return not is_import(loss) and catalogue.method_named(loss) == catalogue.AUTO
