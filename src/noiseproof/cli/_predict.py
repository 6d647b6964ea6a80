"""``noiseproof predict``: the classes of images, texts or rows of numbers, by a trained model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import tyro

from noiseproof._errors import UsageError
from noiseproof._escape import csv_text

from ._tables import say
from ._words import count


def predict(
    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    files: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILE ...")],
    /,
    *,
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None,
    probabilities: tyro.conf.FlagCreatePairsOff[bool] = False,
    skip_unreadable: tyro.conf.FlagCreatePairsOff[bool] = False,
    ema: tyro.conf.FlagCreatePairsOff[bool] = False,
    last: tyro.conf.FlagCreatePairsOff[bool] = False,
    network: Annotated[
        str | None, tyro.conf.arg(metavar="MODULE:NAME", help_behavior_hint="")
    ] = None,
    device: Annotated[str, tyro.conf.arg(metavar="NAME")] = "auto",
) -> None:
    """Predict classes with a trained run: noiseproof predict runs/HASH photo.png new.csv.

    Writes a CSV line for each sample: the file, the index in it, the class and its probability.

    Args:
        run: the folder of the run, or a .safetensors file that it was exported to.
        files: images (any that Pillow reads; they are brought to size), or folders of them; tables,
            .csv or .parquet, with the columns that the run was trained on; or npz files, each with
            an array ``images`` or ``x`` or a single array.
        out: write the CSV here and not to the terminal.
        probabilities: also write the probability of every class.
        skip_unreadable: go on without files and rows that cannot be read.
        ema: use the moving average of the weights.
        last: use the weights of the last epoch, also where another one was chosen.
        network: of a run with a network of your own, what makes it, if the run does not say.
        device: cpu, cuda, cuda:1, ...; auto takes a GPU where there is one.
    """
    from noiseproof._files import refuse_folder, write_atomically
    from noiseproof.sources import Problems
    from noiseproof.train import _samples as samples
    from noiseproof.train import load
    from noiseproof.train._measure import output_names
    from noiseproof.train._setup import device_of

    if not files:
        raise UsageError("which files? Name images, folders, tables or npz files after the run")
    if out is not None:
        refuse_folder(out)  # before anything is predicted
    model = load(run, network=network, ema=ema, last=last).to(device_of(device))
    problems = Problems(skip_unreadable)
    rows: list[list[Any]] = []
    names: list[str] = []
    with _bar() as advance:
        for found in samples.read_samples(files, model.inputs, problems):
            advance(0, found.count)
            for part, chances in samples.probabilities(model, found):
                names = output_names(model.classes, chances.shape[1])
                for (file, index), row in zip(part.places, chances, strict=True):
                    best = int(row.argmax())
                    all_ = [f"{p:.6f}" for p in row] if probabilities else []
                    rows.append([str(file), index, names[best], f"{row[best]:.6f}", *all_])
                advance(len(chances), 0)
    header = ["file", "index", "class", "probability"]
    if probabilities:
        header += [f"probability_{name}" for name in names]
    for line in problems.summary():
        say(f"noiseproof: warning: {line}", sys.stderr)
    if not rows:
        raise UsageError("nothing was predicted: no sample could be read")
    text = csv_text([header, *rows])
    if out is None:
        sys.stdout.write(text)
    else:
        write_atomically(out, text.encode())
        say(f"{count(len(rows), 'prediction')} written to {out}")


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal that goes away in the end; told how many are done, and how many come."""
    if not sys.stderr.isatty():
        yield lambda done, more: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("predict", total=0)

        def advance(done: int, more: int) -> None:
            total = (bar.tasks[0].total or 0) + more
            bar.update(task, advance=done, total=total)

        yield advance
