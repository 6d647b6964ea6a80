"""Out-of-sample probabilities: what networks say of samples that they were not trained on."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .. import bench
from .._errors import DivergedError, UsageError
from .._usual import usual_torch
from ..catalogue import GIVEN
from ..data import Dataset
from ..data._stream import select
from ..runs import Run
from ..train import Progress, UnpredictedClassWarning, fit_many, load
from ..train._setup import Setup, device_of, split

Watch = Callable[[int, int], None]
"""Called with the epochs that are done, of all folds together, and how many there are."""


@dataclass(frozen=True, eq=False, repr=False)
class OutOfSample:
    """What networks say of samples that they were not trained on.

    Attributes:
        probabilities: of each class, float32 [N, K].
        labels: as they are given, int64 [N].
        classes: the name of each class.
        fold: of each sample the part of the data that it was held out with, from 1, uint16 [N].
        accuracy: the share of given labels that are the most probable class.
        truth: the true labels, where they are known.
    """

    probabilities: NDArray[np.float32]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    fold: NDArray[np.uint16]
    truth: NDArray[np.int64] | None = None

    @property
    def accuracy(self) -> float:
        return float((self.probabilities.argmax(1) == self.labels).mean())

    def __repr__(self) -> str:
        return (
            f"OutOfSample({len(self.labels)} samples, {len(self.classes)} classes, "
            f"{int(self.fold.max())} folds, {self.accuracy:.2%} of the given labels predicted)"
        )


@usual_torch()
def out_of_sample(
    data: Dataset | None = None,
    run: Run | None = None,
    *,
    folds: int = 5,
    labels: Any = None,
    out: Path | str | None = None,
    name: str = "audit",
    data_root: Path | str | None = None,
    workers: int = 1,
    watch: Watch | None = None,
) -> OutOfSample:
    """The probabilities of each sample by networks that were trained without it.

    The data is split into folds, each with its share of every class, by the seed of the run. For
    each fold one network is trained on all others. On a GPU the networks are trained side by side.

    Args:
        data: a data set of your own (`noiseproof.data.from_arrays`). Default: that of the run.
        run: the settings of the networks, ``Run()`` if none are given; its loss is NCE + RCE unless
            another is named.
        folds: how many.
        labels: the labels to train on, in place of those of the data set.
        out: a folder under which each fold keeps a run; with it, a stopped call goes on.
        name: of the runs in that folder, where data or labels are given.
        data_root: where data sets lie.
        workers: processes, for data that the run names; 1 trains in this process.
        watch: called after every epoch with the number of epochs done and of all.

    >>> from noiseproof.train import Run
    >>> found = out_of_sample(run=Run(rate=0.4, epochs=2, device="cpu"), folds=2)
    >>> found.probabilities.shape
    (1437, 10)
    """
    run = run or Run()
    runs = fold_runs(run, folds)
    shown = {} if data is None else {"data": data.name}
    shown |= {} if labels is None else {"labels": ""}
    summary = None if data is None else data.summary
    resolved = runs[0].resolve(overrides=shown, data=summary)
    dataset, noisy = Setup(data_root).samples(resolved, data=data, labels=labels)
    given = torch.as_tensor(noisy.labels).to(torch.int64).cpu()
    if len(given) < 2 * folds:
        raise UsageError(f"{len(given)} samples are too few for {folds} folds; give fewer folds")
    found = torch.zeros(len(given), dataset.num_classes)
    fold = torch.zeros(len(given), dtype=torch.int64)
    own = {"data": data, "labels": None if labels is None else noisy}
    with _folder(out) as kept:
        folders = (
            _in_this_process(runs, own, kept, name, data_root, watch)
            if data is not None or labels is not None or workers == 1
            else _in_workers(runs, kept, data_root, workers, watch)
        )
        for one, folder in zip(runs, folders, strict=True):
            _, index = split(given, 1 / folds, run.seed, stratified=True, fold=one.fold)
            model = load(folder).to(device_of(run.device))
            found[index] = model.predict_proba(select(dataset.train.inputs, index))
            fold[index] = one.fold
    truth = None
    if resolved.noise != GIVEN or labels is not None or dataset.train.truth is not None:
        truth = torch.as_tensor(noisy.clean).cpu().to(torch.int64).numpy()
    return OutOfSample(
        found.numpy(), given.numpy(), dataset.classes, fold.numpy().astype(np.uint16),
        truth,
    )  # fmt: skip


def fold_runs(run: Run, folds: int) -> list[Run]:
    """A run for each fold, which holds that fold out."""
    if not 2 <= folds <= 1000 or int(folds) != folds:
        raise UsageError(f"folds is a number from 2 to 1000; it was {folds}")
    if run.holdout or run.fold:
        raise UsageError("the folds are what is held out: leave out holdout and fold")
    if run.choose_epoch:
        raise UsageError("a fold is predicted, and no epoch may be chosen by it: no choose_epoch")
    run = dataclasses.replace(run, holdout=1 / folds, choose_epoch=False)
    return [dataclasses.replace(run, fold=i + 1) for i in range(folds)]


@contextlib.contextmanager
def _folder(out: Path | str | None) -> Iterator[Path]:
    if out is not None:
        yield Path(out)
        return
    with tempfile.TemporaryDirectory(prefix="noiseproof-") as kept:
        yield Path(kept)


def _in_this_process(
    runs: list[Run], own: dict[str, Any], out: Path, name: str, data_root: Path | str | None,
    watch: Watch | None,
) -> list[Path]:  # fmt: skip
    done: dict[int, int] = {}

    def on_epoch(progress: Progress) -> None:
        done[progress.run.fold] = progress.epoch
        if watch is not None:
            watch(sum(done.values()), len(runs) * progress.epochs)

    named = any(value is not None for value in own.values())
    with warnings.catch_warnings():
        warnings.simplefilter("once", UnpredictedClassWarning)
        results = fit_many(
            runs, out=out, data_root=data_root, on_epoch=on_epoch,
            overrides=own, name=name if named else None,
        )  # fmt: skip
    for result in results:
        if result.error is not None:
            raise DivergedError(result.error)
    return [result.folder for result in results if result.folder is not None]


def _in_workers(
    runs: list[Run], out: Path, data_root: Path | str | None, workers: int, watch: Watch | None
) -> list[Path]:
    found = bench.plan(
        bench.Bench("audit", "audit", "the labels that are not believed", tuple(runs)), out,
        workers=workers, device=runs[0].device,
    )  # fmt: skip
    done = {record.hash: record.run.epochs for record in found.done}  # before, of which none tells
    errors: list[str] = []  # also of a disk on which none can be kept

    def on_event(event: bench.RunEvent) -> None:
        if event.error is not None:
            errors.append(event.error)
        if event.what == "epoch":
            done[event.hash] = event.epoch
            if watch is not None:
                watch(sum(done.values()), len(runs) * event.epochs)

    outcome = bench.run(
        found, out, data_root=data_root, workers=min(workers, len(runs)), device=runs[0].device,
        keep_models=True, watch=on_event,
    )  # fmt: skip
    failed = [line for _, line in outcome.failed]
    failed += [record.error for record in outcome.records if record.error is not None]
    if why := [*failed, *errors, *outcome.problems]:
        raise DivergedError(why[0])
    folders = {record.run.fold: record.source for record in outcome.records}
    return [folders[run.fold] for run in runs]
