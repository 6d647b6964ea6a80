"""``noiseproof choose``: which loss for this data, by held-out labels as they are given."""

from __future__ import annotations

import dataclasses
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from noiseproof.runs import Run

from ._bench import _progress, _say_plan
from ._device import check_device
from ._flags import shared_flags
from ._tables import say, show

if TYPE_CHECKING:
    from noiseproof.tools import Choice

RANKED = (
    "Ranked by held-out labels as they are given, wrong ones included; behind is in points, with a "
    "95 % interval. Labels that are wrong at random leave the ranking right but for chance; "
    "mistakes that the inputs explain reward a loss that learns them."
)

if TYPE_CHECKING:
    Flags = Run
else:
    Flags = shared_flags("loss", "seed", "device", "choose_epoch")


def choose(
    run: Annotated[Flags, tyro.conf.arg(name="")] = Flags(),  # noqa: B008  # frozen
    *,
    loss: tuple[str, ...] = (),
    seeds: tuple[int, ...] = (),
    plot: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("runs"),
    data_root: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    workers: int | None = None,
    device: str = "auto",
    dry_run: tyro.conf.FlagCreatePairsOff[bool] = False,
) -> None:
    """Which loss for your data: noiseproof choose --dataset csv:reviews.csv --text review.

    A handful of losses is trained side by side and ranked by a held-out part of the labels as they
    are given, so no clean label is needed. Stopped and started again, it goes on where it was.

    Args:
        run: what all runs have in common.
        loss: the losses to try, such as ce "nce + 0.1*rce"; by default a handful.
        seeds: each loss is trained with each of these; by default 0 1 2 up to 5,000 samples, else
            0.
        plot: draw the accuracies, and how sure the differences are, into a png, svg or html file.
        out: the folder of results, each run in a folder of its own.
        data_root: where data sets lie; by default NOISEPROOF_DATA or the user's cache folder.
        workers: processes; by default one for each core, or for each GPU.
        device: cpu, cuda, cuda:1, ...; auto takes a GPU where there is one.
        dry_run: say how many runs there are, which are done, and how long the rest will take here.
    """
    from noiseproof import bench as benches
    from noiseproof.tools._charts import check_chart
    from noiseproof.tools._choose import conclude, plan_of

    if plot is not None:
        check_chart(plot)
    check_device(device)
    shared = Run(**{f.name: getattr(run, f.name) for f in dataclasses.fields(Run)})
    plan = plan_of(shared, loss, seeds, out, device=device, workers=workers)
    _say_plan(plan, out)
    if dry_run:
        return
    with ExitStack() as stack:
        watch = _progress(plan, stack) if plan.waiting else None
        outcome = benches.run(
            plan, out, data_root=data_root, workers=workers, device=device, watch=watch
        )
    for problem in outcome.problems:
        say(problem, sys.stderr)
    choice = conclude(plan, outcome)
    print()
    show_choice(choice)
    if plot is not None:
        choice.draw(plot)
        say(f"written to {plot}")


def show_choice(choice: Choice) -> None:
    rows = choice.rows()
    numbers = [name for name in rows[0] if name not in ("loss", "why it is tried")]
    columns = [(name, [row[name] for row in rows]) for name in rows[0]]
    show(columns, right=numbers, folds=["why it is tried"])
    print()
    for line in filter(None, (choice.sure, choice.note, RANKED)):
        say(line)
    say(f"train with it: {choice.command}")
