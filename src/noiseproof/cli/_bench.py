"""``noiseproof bench``: a table or a figure of the paper, or one's own grid, as one command."""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from noiseproof._errors import UsageError
from noiseproof._escape import printable
from noiseproof._hints import one_of

from ._device import check_device
from ._flags import grid_flags
from ._tables import say, told_apart
from ._words import count, duration

if TYPE_CHECKING:
    from noiseproof.bench import Bench, Outcome, Plan, RunEvent
    from noiseproof.runs import Run

SILENCE = 60.0  # seconds after which a line is printed where there is no bar
FIRST_LINE = 10.0  # seconds after which the first is


_OF_BENCH = (
    "dataset", "noise", "rate", "loss", "epochs", "protocol", "seed", "device", "stream", "cache",
)  # fmt: skip
"""The settings of a run that are flags of the command, most with several values."""
if TYPE_CHECKING:
    GridFlags = Run
else:
    GridFlags = grid_flags(*_OF_BENCH)


def _shown(metavar: str, name: str | None = None) -> Any:
    """How the help shows a flag whose text says what holds without it."""
    return tyro.conf.arg(name=name, metavar=metavar, help_behavior_hint="")


def bench(
    name: Annotated[
        str, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]", help_behavior_hint="")
    ] = "",
    /,
    *,
    list: tyro.conf.FlagCreatePairsOff[bool] = False,
    dry_run: tyro.conf.FlagCreatePairsOff[bool] = False,
    dataset: Annotated[tuple[str, ...], _shown("[NAME ...]")] = (),
    noise: Annotated[tuple[str, ...], _shown("[NAME ...]")] = (),
    rate: Annotated[tuple[float, ...], _shown("[FLOAT ...]")] = (),
    loss: Annotated[tuple[str, ...], _shown("[LOSS ...]")] = (),
    seeds: Annotated[tuple[int, ...], _shown("[INT ...]")] = (),
    epochs: Annotated[int | None, _shown("INT")] = None,
    protocol: Annotated[str | None, _shown("{paper,authors}")] = None,
    grid: Annotated[GridFlags, tyro.conf.arg(name="")] = GridFlags(),  # noqa: B008  # frozen
    title: Annotated[str, _shown("TITLE", name="name")] = "",
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("runs"),
    data_root: Annotated[Path | None, _shown("DIR")] = None,
    executor: Annotated[str, tyro.conf.arg(metavar="{local,ray}")] = "local",
    address: Annotated[str | None, _shown("HOST:PORT")] = None,
    workers: Annotated[int | None, _shown("INT")] = None,
    device: str = "auto",
    stream: Annotated[str, tyro.conf.arg(metavar="{auto,yes,no}")] = "auto",
    cache: Annotated[str, _shown("DIR")] = "",
    keep_models: tyro.conf.FlagCreatePairsOff[bool] = False,
) -> None:
    """Run a table or a figure of the paper, or a grid of your own: noiseproof bench quick.

    Without a name, the losses are compared on the data sets that are given, such as
    csv:reviews.csv: noiseproof bench --dataset csv:reviews.csv --text review --loss ce gce nce+rce.
    A run that is there is not run again; stopped and started again, a bench goes on where it was.

    Args:
        name: quick, table-symmetric, figure-1, ... (--list has all), or a TOML file; none for a
            grid of the flags below.
        list: list the benches.
        dry_run: say how many runs there are, which are done, which data is missing, and how long
            the rest will take here.
        dataset: only these data sets; or, for a grid, any of them or data of your own: folder:DIR,
            csv:FILE, parquet:FILE, npz:FILE.
        noise: only these kinds of noise; none is the clean labels. Of a grid, symmetric by default,
            and for data of your own the labels as they are given.
        rate: only these noise rates; of a grid, 0.4 by default.
        loss: only these losses, such as ce NCE+RCE; of a grid, ce gce sce nce+mae nce+rce by
            default.
        seeds: these seeds in place of the bench's; of a grid, 0 1 2 by default.
        epochs: so many epochs in place of the bench's, or of the protocol's.
        protocol: where settings come from: the paper, or its authors' code.
        grid: for a grid of the flags alone.
        title: what a grid is called; by default after its data.
        out: the folder of results, each run in a folder of its own.
        data_root: where data sets lie; by default NOISEPROOF_DATA or the user's cache folder.
        executor: this machine, or a Ray cluster.
        address: of the Ray cluster; one is started on this machine without it.
        workers: processes; by default one for each core, or for each GPU.
        device: cpu, cuda, cuda:1, ...; auto takes a GPU where there is one.
        stream: whether image files are decoded as they are read; auto does so where they do not fit
            into memory. It changes no number.
        cache: a folder in which decoded images are kept, so that they are decoded once.
        keep_models: keep the trained networks too.
    """
    from noiseproof import bench as benches

    executor = one_of("executor", executor, ("local", "ray"))
    axes = {"noise": noise, "rate": rate, "epochs": epochs, "protocol": protocol}
    if not (list or name or dataset):
        _refuse_flags(axes | {"loss": loss, "seeds": seeds, "name": title} | _given(grid))
    if list or not (name or dataset):
        _list([benches.bench(known) for known in benches.names()])
        return
    if name:
        _refuse_grid_flags(name, grid, title)
        found = benches.read_bench(name) if name.endswith(".toml") else benches.bench(name)
        found = found.narrow(
            dataset=dataset, noise=noise, rate=rate, loss=loss, seeds=seeds, epochs=epochs,
            protocol=protocol,
        )  # fmt: skip
    else:
        found = benches.comparison(dataset, loss, seeds, title=title, **axes | _given(grid))
    kept: dict[str, Any] = {"stream": stream, "cache": cache}
    if name:
        given = {"skip_unreadable": grid.skip_unreadable, "model": grid.model}
        kept |= {flag: value for flag, value in given.items() if value}
    found = dataclasses.replace(
        found, runs=tuple(dataclasses.replace(run, **kept) for run in found.runs)
    )
    if executor == "local":  # the nodes of a cluster have others
        check_device(device)
    plan = benches.plan(found, out, workers=workers, device=device)
    _say_plan(plan, out)
    if executor == "local":
        images = _missing_images(plan, data_root)
        if len(images) == len(plan.waiting) and images and not dry_run:
            raise UsageError(f"{found.name} cannot be run: {images[0]}")
        for line in dict.fromkeys(images):
            say(line)
        if missing := _missing_data(plan, data_root):
            say(missing)
    if dry_run:
        return
    with ExitStack() as stack:
        watch = _progress(plan, stack) if plan.waiting else None
        outcome = benches.run(
            plan, out, data_root=data_root, executor=executor, address=address, workers=workers,
            device=device, keep_models=keep_models, watch=watch,
        )  # fmt: skip
    _say_outcome(outcome, out)


def _given(grid: Run) -> dict[str, Any]:
    """The flags of a grid that were given, by name."""
    fields = [f for f in dataclasses.fields(grid) if f.name not in _OF_BENCH]
    return {f.name: getattr(grid, f.name) for f in fields if getattr(grid, f.name) != f.default}


def _refuse_flags(flags: Mapping[str, Any]) -> None:
    """Without a bench and without data there is nothing that they could be for."""
    given = [name for name, value in flags.items() if value not in (None, (), "")]
    if given:
        raise UsageError(
            f"{_flag(given[0])} is for a bench, which is named (noiseproof bench --list), or for a "
            "grid, which needs data: --dataset digits, or --dataset csv:FILE"
        )


def _refuse_grid_flags(name: str, grid: Run, title: str) -> None:
    from noiseproof.bench import names as bench_names

    given = [flag for flag in _given(grid) if flag not in ("skip_unreadable", "model")]
    given += ["name"] if title else []
    if given and not name.endswith(".toml") and name not in bench_names():
        raise UsageError(
            f"{name!r} is no bench (noiseproof bench --list); if it is a second value of a flag: "
            "--dataset, --noise, --rate, --loss, --seeds and --lr take several, and any setting "
            "does as a list in a TOML file"
        )
    if given:
        raise UsageError(
            f"{_flag(given[0])} is for a grid of flags, and {name} is a bench: leave one of them "
            "out, or write it into a TOML file"
        )


def _flag(setting: str) -> str:
    return "--" + setting.replace("_", "-").replace("imports", "import")


def _list(benches: list[Bench]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    wide = console.width >= 120
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("bench", "runs", "what it is", *["what it shows"] * wide):
        table.add_column(column, justify="right" if column == "runs" else "left")
    for bench in benches:
        table.add_row(bench.name, str(len(bench)), bench.title, *[bench.shows] * wide)
    console.print(table, highlight=False)
    console.print("\nRun one with noiseproof bench NAME; look first with --dry-run.")


def _say_plan(plan: Plan, out: Path) -> None:
    bench, waiting = plan.bench, len(plan.waiting)
    runs = count(len(bench), "run")
    say(f"{bench.title}: {runs}, {len(plan.done)} done, {waiting} to do, to {out}")
    if len(plan.begun) == 1:
        say("1 of them goes on from where it stopped")
    elif plan.begun:
        say(f"{len(plan.begun)} of them go on from where they stopped")
    for problem in plan.problems:
        say(problem, sys.stderr)
    if waiting:
        unknown = "an unknown time, until one has run"
        long = unknown if plan.seconds is None else duration(plan.seconds)
        say(f"{'it' if waiting == 1 else 'they'} will take {long} here")


def _missing_images(plan: Plan, data_root: Path | None) -> list[str]:
    """A line for each run whose images have to be supplied and are not here."""
    from noiseproof.catalogue import DATASETS, find_root

    names = [plan.resolutions(run)[0].dataset for run in plan.waiting]
    root = find_root(data_root)
    lists = {name: DATASETS[name].lists for name in dict.fromkeys(names) if name in DATASETS}
    lines = {name: "" if found is None else found.missing(root) for name, found in lists.items()}
    return [lines[name] for name in names if lines.get(name)]


def _missing_data(plan: Plan, data_root: Path | None) -> str:
    """A line on the data that the runs need and that is not here; empty where all is here."""
    from noiseproof.catalogue import (
        DATASETS,
        HUMAN_FILES,
        NOISES,
        find_root,
        folders_of,
        is_here,
    )

    needed = {}
    for run in (plan.resolutions(run)[0] for run in plan.waiting):
        if run.dataset in DATASETS:
            needed[run.dataset] = DATASETS[run.dataset].files
        if run.noise in NOISES and (file := NOISES[run.noise].file):
            needed[file] = HUMAN_FILES[file].files
    root = find_root(data_root)
    missing = [files for files in needed.values() if files and not is_here(files, root)]
    if not missing:
        return ""
    remedy = "name another root with --data-root or NOISEPROOF_DATA"
    if root.path != root.downloads and not root.path.is_dir():
        what = ", ".join(files.name for files in missing)
        return f"{what}: the data root {root.path} is no folder; make it, or {remedy}"
    places = (", ".join(map(str, folders_of(files, root))) for files in missing)
    what = "; ".join(f"{f.name}, looked for in {p}" for f, p in zip(missing, places, strict=True))
    by = "when the bench runs" if find_spec("pooch") else 'after pip install "noiseproof[data]"'
    return f"data that is not here: {what}; it is downloaded {by}, or {remedy}"


def _progress(plan: Plan, stack: ExitStack) -> Callable[[RunEvent], None]:
    """One bar for all runs, in epochs, on a terminal; else a line a run, and one a minute."""
    # whatever precision the workers will have
    runs = {run.hash: run for given in plan.waiting for run in plan.resolutions(given)}
    apart = told_apart(
        [str(plan.resolutions(run)[0]) for run in plan.waiting], list(map(vars, plan.waiting))
    )
    names = {
        run.hash: ", ".join(filter(None, (str(run), text)))
        for given, text in zip(plan.waiting, apart, strict=True)
        for run in plan.resolutions(given)
    }
    number = len(plan.waiting)
    total = sum(plan.resolutions(run)[0].epochs for run in plan.waiting)
    seen: dict[str, int] = {}
    ended = 0

    def line(event: RunEvent) -> str:
        accuracy = ""
        if event.accuracy is not None:
            tested = math.isfinite(event.accuracy)
            accuracy = f"accuracy {event.accuracy:.2%}" if tested else "tested on nothing"
        what = event.error or accuracy or "done by another process"
        return printable(f"{ended}/{number}  {names[event.hash]}: {what}")

    if not sys.stdout.isatty():
        began = time.monotonic()
        spoken = began - SILENCE + FIRST_LINE
        print("training ...", flush=True)
        errors: set[str] = set()
        trained = 0

        def tell(event: RunEvent) -> None:
            nonlocal ended, spoken, trained
            seen[event.hash] = event.epoch if event.what == "epoch" else runs[event.hash].epochs
            trained += event.what == "epoch"
            now = time.monotonic()
            if event.what == "ended":
                ended += 1
                if event.error is None or event.error not in errors:  # the same is not repeated
                    print(line(event), flush=True)
                errors.add(event.error or "")
            elif now - spoken >= SILENCE and trained:
                done = sum(seen.values())
                left = (total - done) * (now - began) / trained
                print(f"epoch {done:,} of {total:,}, {duration(left)} left", flush=True)
            else:
                return
            spoken = now

        return tell

    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Remaining

    bar = stack.enter_context(
        Progress(
            TextColumn("{task.fields[ended]} runs"), BarColumn(bar_width=20),
            TextColumn("{task.percentage:3.0f} %"), TimeElapsedColumn(), TextColumn("left"),
            Remaining(compact=True), TextColumn("{task.fields[last]}", markup=False),
        )
    )  # fmt: skip
    task = bar.add_task("bench", total=total, ended=f"0/{number}", last="")

    def watch(event: RunEvent) -> None:
        nonlocal ended
        seen[event.hash] = event.epoch if event.what == "epoch" else runs[event.hash].epochs
        if event.what == "ended":
            ended += 1
            if event.error:
                bar.console.print(line(event), highlight=False, markup=False)
        bar.update(
            task, completed=sum(seen.values()), ended=f"{ended}/{number}",
            last=printable(f"{runs[event.hash].method} {event.accuracy:.1%}")
            if event.accuracy and math.isfinite(event.accuracy)
            else "",
        )  # fmt: skip

    return watch


def _say_outcome(outcome: Outcome, out: Path) -> None:
    from noiseproof.results import cells, fold

    from ._tables import cell_table

    early = [(f"run {r.hash}", r.error) for r in outcome.records if r.error is not None]
    for problem in fold(outcome.failed) + fold(early, "ended early"):
        say(problem, sys.stderr)
    cell_table(cells(outcome.records))
    left = len(outcome.bench) - len(outcome.records)
    missing = f", {left} {'is' if left == 1 else 'are'} missing" if left else ""
    runs = count(len(outcome.records), "run")
    print()
    say(f"{runs} in {out}{missing}; this took {math.ceil(outcome.seconds)} s")
    if left:
        sys.exit(1)
