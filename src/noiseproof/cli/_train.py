"""``noiseproof train``: one run, with a progress bar."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from noiseproof._errors import require
from noiseproof._imports import without_digest
from noiseproof.catalogue import GIVEN
from noiseproof.results import HELD_OUT_ACCURACY, TEST_ACCURACY, accuracy_column
from noiseproof.runs import ResolvedRun

from ._device import check_device
from ._flags import Flags
from ._tables import say
from ._words import count

if TYPE_CHECKING:
    from noiseproof.runs import Run
    from noiseproof.train import Progress, Result


HELD_OUT = "accuracy on the given labels of what was held out"


def train(
    run: Annotated[Flags, tyro.conf.arg(name="")] = Flags(),  # noqa: B008  # frozen
    *,
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("runs"),
    data_root: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    force: tyro.conf.FlagCreatePairsOff[bool] = False,
    tensorboard: tyro.conf.FlagCreatePairsOff[bool] = False,
    dry_run: tyro.conf.FlagCreatePairsOff[bool] = False,
) -> None:
    """Train one network on one noisy data set with one loss.

    A run that was stopped goes on from its last epoch; one that has ended prints its result again.
    Settings that are not given are those of the protocol for the data set.

    Args:
        run: the settings.
        out: the run keeps its results in a folder of its own under this one.
        data_root: where data sets lie; by default NOISEPROOF_DATA or the user's cache folder.
        force: start anew, whatever was kept of this run.
        tensorboard: also write what TensorBoard shows, into the run's folder.
        dry_run: only show every setting that the run would be trained with.
    """
    print(run, flush=True)
    if note := run.note():
        print(f"note: {note}", flush=True)
    if dry_run:
        _show_settings(run)
        return
    from noiseproof.train import fit
    from noiseproof.train._job import CHECKPOINT
    from noiseproof.train._model import MODEL
    from noiseproof.train._ranks import join
    from noiseproof.train._setup import device_of

    ranks = join()
    resolved = ranks.together(lambda: run.resolve(on_gpu=device_of(run.device).type == "cuda"))
    if run.dataset != resolved.dataset:
        say(_about_own_data(run, resolved))
    folder = out / resolved.folder
    print(f"results go to {folder}", flush=True)
    if not ranks.alone:
        print(f"{ranks.size} ranks train together", flush=True)
    before = len(_trained(folder)) if not force else 0
    if before and (folder / CHECKPOINT).exists():
        print(f"it was stopped, and goes on after epoch {before} of {resolved.epochs}", flush=True)
    with ExitStack() as stack:
        watchers: list[Callable[[Progress], None]] = [_progress(resolved, before, stack)]
        if tensorboard:
            watchers.append(_tensorboard(folder, stack))

        def watch(progress: Progress) -> None:
            for watcher in watchers:
                watcher(progress)

        result = fit(run, out=out, data_root=data_root, force=force, on_epoch=watch)
        ended = ranks.on_first(lambda: result.network is None and result.folder == folder)
        if ended and not ranks.on_first((folder / MODEL).exists):
            print("this run has ended before, but its network was not kept: it is trained again")
            result = fit(run, out=out, data_root=data_root, force=True, on_epoch=watch)
    if result.network is None:
        print("this run has ended before; --force runs it anew")
    say(_outcome(result))
    print(f"results in {result.folder}")


def _outcome(result: Result) -> str:
    """What the run has come to, of the weights that it ends with; the others in brackets."""
    last = result.history[-1]
    after = f"after {count(len(result.history), 'epoch')}"
    column = accuracy_column(last)
    if column is None:
        return f"trained, and tested on nothing, {after}"
    held_out = column == HELD_OUT_ACCURACY
    plain = HELD_OUT_ACCURACY if held_out else TEST_ACCURACY
    ema = last.get(f"{plain}_ema")
    others = [] if ema is None else [f"{ema:.2%} with the averaged weights"]
    if result.chosen_epoch is not None and held_out:
        others.append(f"by which epoch {result.chosen_epoch} was chosen")
    elif result.chosen_epoch is not None:
        others.insert(0, f"{last[plain]:.2%} {after}")
        after = f"at epoch {result.chosen_epoch}, chosen by what was held out"
    beside = f" ({', '.join(others)})" if others else ""
    return f"{HELD_OUT if held_out else 'test accuracy'} {result.accuracy:.2%} {after}{beside}"


def _about_own_data(run: Run, resolved: ResolvedRun) -> str:
    """What is in data of the user's own, and how it will be trained on."""
    content = run.content()
    if content is None:
        return ""
    shape = "x".join(map(str, content.shape))
    nouns = {
        "image": f"images of {shape}", "text": "texts", "features": f"rows of {shape} numbers",
        "tokens": f"rows of {shape} token ids",
    }  # fmt: skip
    tested = (
        f"{resolved.holdout:.0%} of them held out"
        if content.test is None
        else f"{len(content.test):,} to test on"
    )
    length = f"{count(resolved.epochs, 'epoch')}, {resolved.optimizer}"
    return (
        f"{without_digest(content.name)}: {len(content.train):,} {nouns[content.kind]}, {tested}, "
        f"{len(content.classes)} classes; {without_digest(resolved.model)}, {length}"
    )


def _show_settings(run: Run) -> None:
    """Everything that the run will be trained with; waits for torch for a named GPU alone."""
    from noiseproof.bench._machine import gpus

    check_device(run.device)
    on_gpu = run.device.startswith("cuda") or (run.device == "auto" and bool(gpus()))
    resolved = run.resolve(on_gpu=on_gpu)
    settings = {k: v for k, v in resolved.settings().items() if k not in ("name", "overrides")}
    width = max(map(len, settings))
    for name, value in settings.items():
        text = " ".join(value) if isinstance(value, list) else str(value)
        print(f"  {name:{width}}  {text or '-'}")
    print(f"  {'hash':{width}}  {resolved.hash}")


def _trained(folder: Path) -> list[dict[str, float]]:
    from noiseproof.results import Folder

    try:
        return Folder(folder).read_history()
    except ValueError:  # fit will say what is wrong
        return []


def _numbers(progress: Progress) -> dict[str, str]:
    row = progress.row
    column = accuracy_column(row)
    return {
        "labels": "given" if progress.run.noise == GIVEN else "noisy",
        "tested": "held out" if column == HELD_OUT_ACCURACY else "test",
        "loss": f"{row['train_loss']:.4f}",
        "train": f"{row['train_accuracy']:.1%}",
        "test": "-" if column is None else f"{row[column]:.1%}",
        "speed": _short(progress.images_per_second),
    }


def _short(number: float) -> str:
    return f"{number / 1000:.1f}k" if number >= 1000 else f"{number:.0f}"


def _progress(run: ResolvedRun, before: int, stack: ExitStack) -> Callable[[Progress], None]:
    """A bar on a terminal; else a line every so often, and always the last."""
    if not sys.stdout.isatty():
        return _lines()
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    bar = stack.enter_context(
        Bar(
            TextColumn("epoch"),
            MofNCompleteColumn(),
            BarColumn(bar_width=10),
            TextColumn(
                "loss {task.fields[loss]}  {task.fields[labels]} {task.fields[train]}  "
                "{task.fields[tested]} {task.fields[test]}  {task.fields[speed]}/s"
            ),
            TimeRemainingColumn(compact=True),
        )
    )
    blank: dict[str, Any] = dict.fromkeys(("loss", "train", "test", "speed"), "-")
    blank |= {"labels": "labels", "tested": "test"}
    task = bar.add_task("train", total=run.epochs, completed=before, **blank)

    def watch(progress: Progress) -> None:
        fields: dict[str, Any] = _numbers(progress)
        bar.update(task, completed=progress.epoch, **fields)

    return watch


def _lines(every: float = 5.0) -> Callable[[Progress], None]:
    last_printed = -math.inf

    def watch(progress: Progress) -> None:
        nonlocal last_printed
        now = time.monotonic()
        if now - last_printed < every and progress.epoch != progress.epochs:
            return
        last_printed = now
        n = _numbers(progress)
        print(
            f"epoch {progress.epoch}/{progress.epochs}: loss {n['loss']}, "
            f"{n['labels']} labels {n['train']}, {n['tested']} {n['test']}, "
            f"{n['speed']} samples/s",
            flush=True,
        )

    return watch


def _tensorboard(folder: Path, stack: ExitStack) -> Callable[[Progress], None]:
    require("tensorboard", "tensorboard", "--tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    writer: Any = None

    def watch(progress: Progress) -> None:
        nonlocal writer
        if writer is None:  # what another process wrote after this epoch is not to be shown
            writer = SummaryWriter(str(folder), purge_step=progress.epoch)
            stack.callback(writer.close)
        for name, value in progress.row.items():
            if name != "epoch":
                writer.add_scalar(name, value, progress.epoch)

    return watch
