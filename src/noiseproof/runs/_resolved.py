"""A run with nothing left open: every setting has the value that will be trained with."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_origin, get_type_hints

from .. import catalogue
from .._errors import UsageError
from .._imports import is_import, without_digest
from ..sources import Source
from ._schedules import SCHEDULES

_PLACES = ("device", "paths", "stream")  # where a run is trained and what it needs is; no settings


@dataclass(frozen=True, kw_only=True)
class ResolvedRun:
    """What decides the numbers of a run. `Run.resolve` makes it; nothing in it is None.

    A setting that is added later gets a default under which a run is what it was before. A setting
    at its default is left out of the hash and may be missing in a record, so that no run that was
    made before changes its name. Defaults therefore never change.
    """

    dataset: str
    noise: str
    rate: float
    variant: str
    loss: str
    """the canonical text, every number written out; of a user's own loss its name, or
    ``module:name@digest``"""
    model: str
    """by name, or a user's own as ``module:name@digest``"""
    protocol: str
    epochs: int
    batch_size: int
    lr: float
    schedule: str
    lr_floor: float
    momentum: float
    nesterov: bool
    weight_decay: float
    clip: float
    crop: int
    flip: bool
    rotate: float
    l1: float
    ema: float
    balance: float
    holdout: float
    precision: str
    seed: int
    optimizer: str = "sgd"
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    decay_on: str = "all"
    warmup: float = 0.0
    schedule_by: str = "epoch"
    label_smoothing: float = 0.0
    class_weight: str = "none"
    mixup: float = 0.0
    shrink: float = 0.0
    shrink_schedule: str = "constant"
    shrink_limit: float = 0.0
    ema_horizon: float = 0.0
    choose_epoch: bool = False
    crop_size: int = 0
    crop_scale: float = 0.0
    jitter: float = 0.0
    fold: int = 0
    imports: tuple[str, ...] = ()
    """modules of the user's that declare losses, as ``module@digest``"""
    weights: str = ""
    """the file of weights that it starts from, as ``name@digest``"""
    freeze: tuple[str, ...] = ()
    """patterns of the names of parameters that are not trained"""
    overrides: tuple[str, ...] = ()
    """what was given in place of what the settings name: data, labels, loss, network, prior"""
    name: str = ""
    """that the user gave to the run, by which its results are found again"""
    device: str = field(default="auto", compare=False)
    """where it is trained; no part of what the run is"""
    stream: str = field(default="auto", compare=False)
    """whether images are decoded as they are read; it changes no number"""
    paths: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """where the files and modules are that it names by a digest, such as ``("weights",
    "/home/me/r18.pt")``; no part of what the run is"""

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> ResolvedRun:
        """The run of the settings in a record.

        Raises:
            UsageError: a setting is missing, of another type, or unknown to this version.
        """
        values, types = dict(settings), _setting_types(cls)  # type: ignore[arg-type]
        for name, (expected, required) in types.items():
            if name not in values:
                if required:
                    raise UsageError(f"the setting {name!r} is missing")
                continue
            values[name] = _converted(name, values[name], expected)
        unknown = [name for name in values if name not in types]
        if unknown:
            raise UsageError(f"this version does not know the setting {unknown[0]!r}")
        if not 0 <= values["rate"] <= 1 or values["protocol"] not in catalogue.PROTOCOLS:
            raise UsageError(f"rate {values['rate']} or protocol {values['protocol']!r} is unknown")
        if values.get("name"):
            check_name(values["name"])  # it is that of a folder
        return cls(**values)

    def settings(self) -> dict[str, Any]:
        """Every setting by name, as plain values: what a record holds."""
        values = dict(vars(self))
        for name in _PLACES:
            del values[name]
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    @property
    def hash(self) -> str:
        """The same for runs of the same settings, however they were given."""
        values = self.settings()
        for name, default in _defaults(type(self)):  # type: ignore[arg-type]
            if getattr(self, name) == default:
                del values[name]
        return hash_of(values)

    @property
    def folder(self) -> str:
        """The name of its folder of results: the user's, or the hash."""
        return self.name or self.hash

    @property
    def pack_key(self) -> tuple[Any, ...]:
        """Runs of one key can be trained side by side."""
        return (
            self.dataset, self.model, self.epochs, self.batch_size, self.holdout, self.precision,
            self.freeze, self.device, self.crop_size,
        )  # fmt: skip

    @property
    def source(self) -> Source | None:
        """Where its data of the user's own is, if it is trained on such and that is known."""
        text = self.place("data")
        return Source.from_json(text) if text else None

    def place(self, what: str) -> str:
        """Where a file is that it names by a digest; empty where that is not known."""
        return dict(self.paths).get(what, "")

    @property
    def method(self) -> str:
        """What a table calls its loss, such as NCE+RCE."""
        if "loss" in self.overrides or is_import(self.loss):
            return without_digest(self.loss)
        return catalogue.label_of(
            self.loss, self.dataset, noise=self.noise, rate=self.rate, protocol=self.protocol,
            shrink=self.shrink, lr=self.lr, optimizer=self.optimizer,
            own_data="data" in self.overrides,
        )  # fmt: skip

    @property
    def condition(self) -> tuple[str, str, float]:
        """Data set, noise and rate."""
        return self.dataset, self.noise, self.rate

    def means(self, loss: str) -> bool:
        """Whether a text, by name or in full, is this run's loss."""
        if "loss" in self.overrides or is_import(self.loss):
            return loss in (self.loss, without_digest(self.loss))
        if catalogue.method_named(loss) == catalogue.AUTO:
            return self.method == catalogue.AUTO
        try:
            found = catalogue.resolve_loss(
                loss, self.dataset, noise=self.noise, rate=self.rate, protocol=self.protocol
            )
        except UsageError:
            return False
        return found.loss == self.loss

    @property
    def lr_varies(self) -> bool:
        """Whether the learning rate changes within an epoch."""
        return self.warmup > 0 or self.schedule_by == "step"

    def lr_at(self, epoch: int, step: int = 0, *, steps: int = 1) -> float:
        """The learning rate of a step; by default that of the epoch's first.

        Warm-up is linear: of W steps, the first has lr / W and the last has lr. The schedule goes
        over what is left, and by epoch it has the value of the epoch's first step, or of the first
        after the warm-up.

        Args:
            epoch: the first is 0.
            step: in the epoch; the first is 0.
            steps: how many an epoch has, for warm-up and for schedules by step.
        """
        at = epoch * steps + step
        warmup = round(self.warmup * steps)
        if at < warmup:
            return self.lr * (at + 1) / warmup
        if self.schedule_by == "epoch":
            at = max(epoch * steps, warmup)
        done, total = (at - warmup) / steps, (self.epochs * steps - warmup) / steps
        return SCHEDULES[self.schedule](self.lr, self.lr_floor, done, total)

    def ema_decay(self, *, steps: int) -> float:
        """The decay of the average of the weights; 0 for none. An epoch has ``steps``."""
        if not self.ema_horizon:
            return self.ema
        return 1 - 1 / max(2.0, self.ema_horizon * self.epochs * steps)

    def lr_sum(self, *, steps: int) -> float:
        """The learning rates of all steps of the run, added up; an epoch has ``steps``."""
        return math.fsum(
            self.lr_at(epoch, i, steps=steps) for epoch in range(self.epochs) for i in range(steps)
        )

    def shrink_at(self, epoch: int, *, steps: int) -> list[float]:
        """By how much each step of an epoch shrinks the weights, in units of their mean size.

        Over all steps of the run it adds up to ``shrink``. Each has the share that its learning
        rate is of the sum of all; where ``shrink_schedule`` is linear, the learning rate is first
        multiplied by the part of the run that is over. ``shrink_limit`` is not in it: the trainer,
        which knows the mean size, cuts what goes beyond.
        """
        total = _shrink_total(self, steps)
        shares = self._shrink_shares(epoch, steps)
        return [self.shrink * share / total if total else 0.0 for share in shares]

    def _shrink_shares(self, epoch: int, steps: int) -> list[float]:
        if self.lr_varies:
            shares = [self.lr_at(epoch, i, steps=steps) for i in range(steps)]
        else:
            shares = [self.lr_at(epoch)] * steps
        if self.shrink_schedule == "linear":
            over, last = epoch * steps, self.epochs * steps
            shares = [share * (over + i + 1) / last for i, share in enumerate(shares)]
        return shares

    def __str__(self) -> str:
        noise = catalogue.noise_title(self.noise, self.rate)
        named = f"{self.name}: " if self.name else ""
        return f"{named}{without_digest(self.dataset)}, {noise}, {self.method}, seed {self.seed}"


@functools.lru_cache(maxsize=64)
def _shrink_total(run: ResolvedRun, steps: int) -> float:
    return math.fsum(math.fsum(run._shrink_shares(e, steps)) for e in range(run.epochs))


def hash_of(settings: Mapping[str, Any]) -> str:
    """Sixteen hexadecimal digits of the settings' JSON."""
    text = json.dumps(settings, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_name(name: str) -> str:
    """A name for a run, which is also that of its folder."""
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w.-]{0,99}", name, re.ASCII):
        raise UsageError(
            "the name of a run is letters, digits, '.', '_' and '-', at most 100, and does not "
            f"begin with '.' or '-'; it was {name!r}"
        )
    return name


@functools.cache
def _defaults(cls: Any) -> list[tuple[str, Any]]:
    """The settings that have a default, and it."""
    fields = [f for f in dataclasses.fields(cls) if f.name not in _PLACES]
    return [(f.name, f.default) for f in fields if f.default is not dataclasses.MISSING]


@functools.cache
def _setting_types(cls: Any) -> dict[str, tuple[type, bool]]:
    """Of each setting its type, and whether a record must have it."""
    hints = get_type_hints(cls)
    return {
        f.name: (get_origin(hints[f.name]) or hints[f.name], f.default is dataclasses.MISSING)
        for f in dataclasses.fields(cls)
        if f.name not in _PLACES
    }


def _converted(name: str, value: Any, expected: type) -> Any:
    if expected is tuple and isinstance(value, list | tuple):
        if all(isinstance(item, str) for item in value):
            return tuple(value)
    elif expected is float and isinstance(value, int | float) and not isinstance(value, bool):
        if abs(value) <= 1e300:  # no NaN, no infinity, no integer of a thousand digits
            return float(value)
    elif type(value) is expected:
        return value
    raise UsageError(f"the setting {name!r} is {value!r:.60}, not a {expected.__name__}")
