"""Loss, its weights, learning rate and weight decay for this data: an Optuna study."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import catalogue, syntax
from .._errors import DivergedError, UsageError, require
from .._imports import is_import
from .._seeds import derive
from ..results import HELD_OUT_ACCURACY
from ..results._claim import LOCKS
from ..runs import ResolvedRun, Run
from ._command import command_of
from ._recommend import recommend

if TYPE_CHECKING:
    from ..data import Dataset
    from ..train import Progress

SEARCHED = ("ce", "gce", "nce + rce", "nce + mae")
"""The losses that are tried where none are named. Of a sum of two without numbers the weights are
searched, as alpha and beta; any other text is taken as it stands."""
_ALPHA, _BETA = (0.1, 10.0), (0.01, 100.0)
_LR_FACTOR, _DECAY_FACTOR = 10.0, 30.0  # how far from what suits the data is searched
_DECAY = 1e-4  # the middle of the search where what suits the data is none
_STARTUP = 5  # trials that run to their end before any is pruned
FILE = "tune.db"
_STOPPED = "stopped"  # the mark of a trial that was interrupted


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
class TrialEvent:
    """An epoch of a trial has ended, or the trial has."""

    number: int
    epoch: int
    epochs: int
    trial: Trial | None = None
    """once it has ended"""
    best: Trial | None = None
    """of all that have been trained to their end"""


@dataclass(frozen=True)
class Tuning:
    """What `tune` found.

    Attributes:
        run: the best run.
        trials: all of the study, in their order.
        num_held_out: how many samples the accuracies are measured on.
        command: the command that trains the best run; empty for data in memory.
        study: the name of the study.
    """

    run: Run
    trials: tuple[Trial, ...] = field(repr=False)
    num_held_out: int
    command: str = ""
    study: str = ""

    @property
    def best(self) -> Trial:
        return _best(self.trials)

    @property
    def sure(self) -> str:
        """What the best accuracy is worth: it is the largest of many noisy numbers."""
        complete = [t for t in self.trials if t.state == "complete"]
        p = self.best.accuracy
        error = math.sqrt(p * (1 - p) / self.num_held_out)
        # The expected largest of N draws from one normal distribution (Blom's approximation).
        draws = len(complete)
        above = statistics.NormalDist().inv_cdf((draws - 0.375) / (draws + 0.25)) * error
        text = (
            f"{p:.2%} on {self.num_held_out:,} held-out labels as they are given, standard error "
            f"{100 * error:.1f} points."
        )
        if draws > 1:
            text += (
                f" It is the largest of {draws}, and so too high: among {draws} equally good "
                f"settings the luckiest would be up to {100 * above:.1f} points above its worth."
            )
        first = next((t for t in complete if t.number == 0), None)
        if first is not None and first != self.best:
            text += f" The settings begun with have {first.accuracy:.2%}."
        return text.replace("%", " %")

    def draw(self, path: Path | str) -> None:
        """Write a picture as png, svg or html; needs ``pip install noiseproof[plot]``."""
        from ._charts import draw_tuning

        draw_tuning(self, Path(path))

    def __str__(self) -> str:
        best = self.best
        settings = f"{best.loss}, lr {best.lr:.3g}, weight_decay {best.weight_decay:.3g}"
        return "\n".join(filter(None, (settings, self.sure, self.command)))


def tune(
    data: Dataset | Run | str,
    losses: Iterable[str] = (),
    *,
    trials: int = 30,
    out: Path | str | None = None,
    storage: str | None = None,
    study: str = "",
    seed: int = 0,
    prune: bool = True,
    data_root: Path | str | None = None,
    watch: Callable[[TrialEvent], None] | None = None,
    **settings: Any,
) -> Tuning:
    """Search for loss, alpha, beta, learning rate and weight decay; needs ``noiseproof[tune]``.

    Each trial trains one run and is judged by held-out labels as they are given, after its last
    epoch; one that is behind the median of the others at the same epoch is stopped. All trials
    share noise, held-out part, first weights and order. The first is what suits the data, with the
    loss that `recommend` names.

    Args:
        data: as for `choose`.
        losses: to search among. Default: `SEARCHED`.
        trials: how many the study has in the end, with those that are there.
        out: a folder, in whose ``tune.db`` (SQLite) the study is kept: it goes on where it was, and
            several processes that are given the same share it. Without it nothing is kept.
        storage: any other storage of Optuna's, by its URL.
        study: its name in the storage. Default: one that follows from data and settings.
        seed: of the search; that of the runs is their setting.
        prune: whether trials are stopped early.
        data_root: where data sets lie.
        watch: called after every epoch and every trial.
        settings: of every run, as in `Run`: ``epochs=10``, ``holdout=0.1``, ``device="cpu"``.
    """
    optuna = require("optuna", "tune", "tune")
    if type(trials) is not int or trials < 1:
        raise UsageError(f"trials is a whole number from 1; it was {trials!r}")
    space = Space.of(data, list(losses or SEARCHED), settings)
    alone: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if storage is None and out is not None:
        from filelock import FileLock

        (Path(out) / LOCKS).mkdir(parents=True, exist_ok=True)
        storage = f"sqlite:///{(Path(out) / FILE).absolute()}"
        alone = FileLock(Path(out) / LOCKS / FILE)  # of two that make the tables at once one fails
    with _quiet(optuna), contextlib.ExitStack() as stack:
        with alone:
            kept = stack.enter_context(_opened(optuna, storage))
            found = optuna.create_study(
                study_name=study or space.name, storage=kept, load_if_exists=True,
                direction="maximize",
                pruner=optuna.pruners.MedianPruner(
                    n_startup_trials=_STARTUP, n_warmup_steps=max(1, space.middle.epochs // 3)
                ) if prune else optuna.pruners.NopPruner(),
            )  # fmt: skip
            if not found.get_trials(deepcopy=False):
                found.enqueue_trial(space.first, skip_if_exists=True)
        while len(_ended(found)) < trials:
            _try(optuna, found, space, seed, data_root, watch)
        ended = tuple(map(space.trial, _ended(found)))
    if not any(t.state == "complete" for t in ended):
        raise UsageError("no trial came to its end: give more trials, or prune=False")
    best = _best(ended)
    run = replace(space.run(best.loss, best.lr, best.weight_decay), holdout=space.shared.holdout)
    final = run if space.data is not None or space.asked_holdout else replace(run, holdout=None)
    command = "" if space.data is not None else command_of(final)
    return Tuning(final, ended, space.num_held_out, command, found.study_name)


@contextlib.contextmanager
def _opened(optuna: Any, url: str | None) -> Iterator[Any]:
    """A storage of Optuna's, in memory if there is no URL; its connections are closed again."""
    storage = optuna.storages.get_storage(url)
    try:
        yield storage
    finally:
        storage.remove_session()
        engine = getattr(getattr(storage, "_backend", None), "engine", None)
        if engine is not None:
            engine.dispose()


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


def _try(
    optuna: Any,
    study: Any,
    space: Space,
    seed: int,
    data_root: Path | str | None,
    watch: Callable[[TrialEvent], None] | None,
) -> None:
    """Train one trial and tell the study of it."""
    from ..train import fit

    trial = study.ask()
    # Each number has a sampler of its own: a study that goes on, and processes that share it, draw
    # what one process would have drawn.
    study.sampler = optuna.samplers.TPESampler(seed=derive(seed, "trial", trial.number) % 2**32)
    run = space.suggest(trial)
    epochs = space.middle.epochs

    def report(progress: Progress) -> None:
        accuracy = progress.row[HELD_OUT_ACCURACY]
        trial.report(accuracy, progress.epoch)
        if watch is not None:
            watch(TrialEvent(trial.number, progress.epoch, epochs))
        if progress.epoch < epochs and trial.should_prune():
            raise optuna.TrialPruned

    overrides: dict[str, Any] = {} if space.data is None else {"data": space.data}
    states = optuna.trial.TrialState
    try:
        result = fit(run, data_root=data_root, on_epoch=report, **overrides)
    except optuna.TrialPruned:
        study.tell(trial, state=states.PRUNED)
    except DivergedError:
        study.tell(trial, state=states.FAIL)
    except BaseException:
        with contextlib.suppress(Exception):  # it is not the setting's fault, and does not count
            trial.set_user_attr(_STOPPED, True)
            study.tell(trial, state=states.FAIL)
        raise
    else:
        study.tell(trial, result.history[-1][HELD_OUT_ACCURACY])
    if watch is not None:
        ended = [space.trial(found) for found in _ended(study)]
        this = next((found for found in ended if found.number == trial.number), None)
        complete = any(found.state == "complete" for found in ended)
        watch(TrialEvent(trial.number, epochs, epochs, this, _best(ended) if complete else None))


def _ended(study: Any) -> list[Any]:
    """The trials that have ended: trained to the end, pruned, or diverged."""
    trials = study.get_trials(deepcopy=False)
    return [t for t in trials if t.state.is_finished() and _STOPPED not in t.user_attrs]


def _best(trials: Iterable[Trial]) -> Trial:
    return max((t for t in trials if t.state == "complete"), key=lambda t: (t.accuracy, -t.number))


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


@contextlib.contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Optuna says of every trial how it ended, and so does ``watch``."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
