"""``noiseproof tune``: loss, its weights, learning rate and weight decay for this data."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from noiseproof._escape import printable
from noiseproof.runs import Run

from ._flags import shared_flags
from ._tables import say, show
from ._words import count

if TYPE_CHECKING:
    from noiseproof.tools import Trial, TrialEvent, Tuning

_SHOWN = 5  # of the best trials

if TYPE_CHECKING:
    Flags = Run
else:
    Flags = shared_flags("loss")


def tune(
    run: Annotated[Flags, tyro.conf.arg(name="")] = Flags(),  # noqa: B008  # frozen
    *,
    loss: tuple[str, ...] = (),
    trials: int = 30,
    study: Annotated[str, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = "",
    storage: Annotated[str | None, tyro.conf.arg(metavar="URL")] = None,
    search_seed: int = 0,
    prune: bool = True,
    plot: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("runs"),
    data_root: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
) -> None:
    """Search loss, alpha, beta, lr and weight decay: noiseproof tune --dataset csv:reviews.csv.

    Each trial trains one run and is judged by held-out labels as they are given; Optuna proposes
    the next. The study is kept in DIR/tune.db: the same command goes on with it, and several at
    once share it. Needs pip install "noiseproof[tune]".

    Args:
        run: what all trials have in common; lr and weight_decay are the middle of the search.
        loss: the losses to search among, such as gce "nce + rce", of which sum the weights are
            searched; by default ce, gce, nce + rce and nce + mae.
        trials: how many the study has in the end, with those that are there.
        study: its name; by default one that follows from the data and the settings.
        storage: another storage of Optuna's, such as that of a server.
        search_seed: of the search; --seed is that of the runs.
        prune: stop trials that are behind the median of the others.
        plot: draw the trials into a png, svg or html file.
        out: the folder of the study.
        data_root: where data sets lie; by default NOISEPROOF_DATA or the user's cache folder.
    """
    from noiseproof import tools
    from noiseproof.tools._charts import check_chart

    if plot is not None:
        check_chart(plot)
    shared = Run(**{f.name: getattr(run, f.name) for f in dataclasses.fields(Run)})
    with ExitStack() as stack:
        found = tools.tune(
            shared, loss, trials=trials, out=out, storage=storage, study=study, seed=search_seed,
            prune=prune, data_root=data_root, watch=_progress(trials, stack),
        )  # fmt: skip
    show_tuning(found)
    if plot is not None:
        found.draw(plot)
        say(f"written to {plot}")


def show_tuning(found: Tuning) -> None:
    complete = sorted(
        (t for t in found.trials if t.state == "complete"), key=lambda t: (-t.accuracy, t.number)
    )
    best = complete[:_SHOWN]
    states = [t.state for t in found.trials]
    pruned, failed = states.count("pruned"), states.count("fail")
    print()
    show(
        [
            ("held out", [_percent(t.accuracy) for t in best]),
            ("loss", [t.loss for t in best]),
            ("lr", [f"{t.lr:.3g}" for t in best]),
            ("weight decay", [f"{t.weight_decay:.3g}" for t in best]),
            ("trial", [str(t.number) for t in best]),
        ],
        right=["held out", "lr", "weight decay", "trial"],
        folds=["loss"],
    )
    print()
    diverged = f", {failed} diverged" if failed else ""
    say(f"{count(len(states), 'trial')} of the study {found.study}, {pruned} pruned{diverged}")
    say(found.sure)
    say(f"train with it: {found.command}")


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _line(event: TrialEvent, trial: Trial) -> str:
    best = "" if event.best is None else f"; best {_percent(event.best.accuracy)}"
    how = "" if trial.state == "complete" else f", {trial.state}"
    settings = f"{trial.loss}, lr {trial.lr:.3g}, weight decay {trial.weight_decay:.3g}"
    return printable(f"trial {trial.number}: {_percent(trial.accuracy)}{how}, {settings}{best}")


def _progress(trials: int, stack: ExitStack) -> Callable[[TrialEvent], None]:
    """A bar on a terminal, one step for each trial; else a line for each."""
    if not sys.stdout.isatty():

        def tell(event: TrialEvent) -> None:
            if event.trial is not None:
                print(_line(event, event.trial), flush=True)

        return tell
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Remaining

    bar = stack.enter_context(
        Progress(
            TextColumn("trial {task.fields[number]} of {task.total:.0f}"), BarColumn(bar_width=20),
            TextColumn("epoch {task.fields[epoch]}"), TimeElapsedColumn(), TextColumn("left"),
            Remaining(compact=True), TextColumn("{task.fields[best]}", markup=False),
        )
    )  # fmt: skip
    task = bar.add_task("tune", total=trials, number="-", epoch="-", best="")

    def watch(event: TrialEvent) -> None:
        done = event.number + (event.epoch / event.epochs if event.trial is None else 1)
        number, epoch = event.number + 1, f"{event.epoch}/{event.epochs}"
        bar.update(task, completed=min(done, trials), number=number, epoch=epoch)
        if (best := event.best) is not None:
            bar.update(task, best=printable(f"best {_percent(best.accuracy)}, {best.loss}"))

    return watch
