"""What `tune` searches: losses, their weights, learning rate and weight decay."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .. import catalogue, syntax
from .._errors import UsageError
from .._imports import is_import
from ..runs import ResolvedRun, Run
from ._recommend import recommend

if TYPE_CHECKING:
    from ..data import Dataset

SEARCHED = ("ce", "gce", "nce + rce", "nce + mae")
"""The losses that are tried where none are named. Of a sum of two without numbers the weights are
searched, as alpha and beta; any other text is taken as it stands."""
_ALPHA, _BETA = (0.1, 10.0), (0.01, 100.0)
_LR_FACTOR, _DECAY_FACTOR = 10.0, 30.0  # how far from what suits the data is searched
_DECAY = 1e-4  # the middle of the search where what suits the data is none


@dataclass(frozen=True)
class Trial:
    """One setting that was tried."""

    number: int
    loss: str
    lr: float
    weight_decay: float
    accuracy: float
    """on held-out labels as they are given, from 0 to 1, after the last epoch that was trained"""
    state: str
    """complete, pruned or fail"""


@dataclass(frozen=True)
class Space:
    """What is searched: around the settings that suit the data."""

    shared: Run
    middle: ResolvedRun
    losses: tuple[str, ...]
    first_loss: str
    data: Dataset | None
    samples: int
    asked_holdout: bool

    @classmethod
    def of(cls, data: Dataset | Run | str, losses: list[str], settings: Mapping[str, Any]) -> Space:
        if isinstance(data, Run | str):
            shared = replace(Run(dataset=data) if isinstance(data, str) else data, **settings)
            content = shared.content()
            if content is not None:
                samples = len(content.train)
                classes: Any = content.train.labels
            else:
                entry = catalogue.DATASETS[shared.resolve().dataset]
                samples, classes = entry.sizes[0], entry.num_classes
            given = None
        else:
            shared, given = Run(**settings), data
            samples, classes = len(data.train), data.train.labels
        asked = shared.holdout is not None
        if not asked:
            shared = replace(shared, holdout=catalogue.suited_holdout(samples))
        if not shared.holdout:
            raise UsageError("trials are judged by what is held out: give holdout above 0")
        if shared.choose_epoch:
            raise UsageError("trials are judged by what is held out: no epoch can be chosen by it")
        for loss in losses:
            _terms(loss)
        middle = _resolved(shared, given)
        begin = recommend(classes, samples=samples).loss
        return cls(shared, middle, tuple(losses), begin, given, samples, asked)

    @property
    def name(self) -> str:
        """Of a study of just this: other data or settings are another study."""
        data = self.middle.dataset if self.data is None else self.data.name
        told = {k: v for k, v in self.middle.settings().items() if k != "loss"}
        digest = hashlib.sha256(repr((told, self.losses, self.samples)).encode()).hexdigest()[:8]
        return f"{data.split('@')[0]}-{digest}"

    @property
    def num_held_out(self) -> int:
        return round(self.samples * self.middle.holdout)

    @property
    def first(self) -> dict[str, Any]:
        """What suits the data, with the recommended loss if it can be reached."""
        decay = self.middle.weight_decay or self._decay / _DECAY_FACTOR  # nearly none
        settings: dict[str, Any] = {"lr": self.middle.lr, "weight_decay": decay}
        for loss in self.losses:
            terms = _terms(loss)
            if terms is None:
                settings |= {"loss": loss} if _equal(loss, self.first_loss) else {}
                continue
            for alpha, beta in itertools.product((1.0, 10.0), (0.1, 1.0, 100.0)):
                if _equal(_weighted(terms, alpha, beta), self.first_loss):
                    settings |= {"loss": loss, f"{loss}: alpha": alpha, f"{loss}: beta": beta}
        return settings

    @property
    def _decay(self) -> float:
        return self.middle.weight_decay or _DECAY

    def suggest(self, trial: Any) -> Run:
        """The run of a trial."""
        loss = trial.suggest_categorical("loss", self.losses)
        terms = _terms(loss)
        if terms is not None:
            alpha = trial.suggest_float(f"{loss}: alpha", *_ALPHA, log=True)
            beta = trial.suggest_float(f"{loss}: beta", *_BETA, log=True)
            loss = _weighted(terms, alpha, beta)
        lr, decay = self.middle.lr, self._decay
        return self.run(
            loss,
            trial.suggest_float("lr", lr / _LR_FACTOR, lr * _LR_FACTOR, log=True),
            trial.suggest_float(
                "weight_decay", decay / _DECAY_FACTOR, decay * _DECAY_FACTOR, log=True
            ),
        )

    def run(self, loss: str, lr: float, weight_decay: float) -> Run:
        return replace(self.shared, loss=loss, lr=_round(lr), weight_decay=_round(weight_decay))

    def trial(self, frozen: Any) -> Trial:
        """A trial of Optuna's in our words."""
        params = frozen.params
        loss = params.get("loss", "")
        if loss and (terms := _terms(loss)) is not None:
            loss = _weighted(terms, params[f"{loss}: alpha"], params[f"{loss}: beta"])
        reported = list(frozen.intermediate_values.values())
        accuracy = frozen.value if frozen.value is not None else (reported or [math.nan])[-1]
        return Trial(
            frozen.number, loss, _round(params.get("lr", math.nan)),
            _round(params.get("weight_decay", math.nan)), float(accuracy),
            frozen.state.name.lower(),
        )  # fmt: skip


def _resolved(run: Run, data: Dataset | None) -> ResolvedRun:
    """The settings that suit the data."""
    if data is None:
        return run.resolve()
    return run.resolve(overrides={"data": data.name}, data=data.summary)


def _terms(loss: str) -> tuple[str, str] | None:
    """The two losses of a sum without numbers, whose weights are searched; else None."""
    if catalogue.method_named(loss) == catalogue.AUTO:
        raise UsageError("auto leaves nothing to search: train it as it is, and tune other losses")
    parts = [part.strip().lower() for part in loss.split("+")]
    if len(parts) == 2 and all(part in syntax.SIGNATURES for part in parts):
        return parts[0], parts[1]
    if catalogue.method_named(loss) is None and not is_import(loss):
        syntax.read(loss)  # refuse a text that is no loss before anything is trained
    return None


def _equal(a: str, b: str) -> bool:
    """Whether two texts are one loss; a name that brings settings of its own is none."""
    try:
        return syntax.canonical(a) == syntax.canonical(b)
    except UsageError:
        return False


def _round(value: float) -> float:
    """To the digits that a command shows, so that it trains just what the trial trained."""
    return float(f"{value:.4g}")


def _weighted(terms: tuple[str, str], alpha: float, beta: float) -> str:
    return f"{alpha:.4g}*{terms[0]} + {beta:.4g}*{terms[1]}"
