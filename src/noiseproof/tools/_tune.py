"""Loss, its weights, learning rate and weight decay for this data: an Optuna study."""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._errors import DivergedError, UsageError, require
from .._seeds import derive
from ..results import HELD_OUT_ACCURACY
from ..results._claim import LOCKS
from ..runs import Run
from ._command import command_of
from ._space import SEARCHED, Space, Trial

if TYPE_CHECKING:
    from ..data import Dataset
    from ..train import Progress

_STARTUP = 5  # trials that run to their end before any is pruned
FILE = "tune.db"
_STOPPED = "stopped"  # the mark of a trial that was interrupted


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


@contextlib.contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Optuna says of every trial how it ended, and so does ``watch``."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
