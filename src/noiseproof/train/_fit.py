"""Train a run, or several at once, from where they stopped to their end."""

from __future__ import annotations

import copy
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ..data import Dataset
from ..models import Padding
from ..noise import NoisyLabels
from ..results import Folder
from ._checkpoint import Writer
from ._job import Job, Result, Row, digest_of, read_result
from ._pack import GraphPack, Pack
from ._run import Run
from ._setup import Setup


class DivergedError(ArithmeticError):
    """The loss of a run turned into something that is not a finite number."""


@dataclass(frozen=True)
class Progress:
    """An epoch that has ended."""

    run: Run
    epoch: int  # how many are done
    epochs: int
    row: Row
    images_per_second: float


def fit(
    run: Run | None = None,
    *,
    data: Dataset | None = None,
    network: nn.Module | None = None,
    loss: Callable[[Tensor, Tensor], Tensor] | None = None,
    labels: NoisyLabels | Tensor | None = None,
    prior: Tensor | None = None,
    out: Path | str | None = None,
    data_root: Path | str | None = None,
    force: bool = False,
    on_epoch: Callable[[Progress], None] | None = None,
    graph: bool | None = None,
    compiled: bool | None = None,
) -> Result:
    """Train one network on one noisy data set with one loss.

    Args:
        run: the settings; ``Run()`` if none are given.
        data: a data set of your own in place of the run's (`noiseproof.data.from_arrays`).
        network: a network of your own in place of the run's; its weights are where training starts,
            and it holds the trained ones in the end.
        loss: any function of logits and labels in place of the run's.
        labels: the noisy labels, if they are not to be drawn; those of the data set are then taken
            for the true ones, unless `noiseproof.noise.from_labels` says otherwise.
        prior: the share of each class, for ``run.balance``; uniform if not given.
        out: a folder under which the run keeps its own; with it, a run that was stopped goes on
            from its last epoch, and one that has ended is read and not trained again.
        data_root: where data sets lie.
        force: start anew, whatever is in the folder.
        on_epoch: called after every epoch.
        graph: whether steps are captured as a CUDA graph; by default on a GPU.
        compiled: whether the network is compiled; by default where it pays, which for the
            networks by name it does not: they have kernels of their own.

    Raises:
        DivergedError: the loss turned NaN or infinite; what was before is kept.

    >>> result = fit(Run(epochs=2, loss="nce + mae", device="cpu"))
    >>> len(result.history)
    2
    """
    own = {"data": data, "network": network, "loss": loss, "labels": labels, "prior": prior}
    result = fit_many(
        [run or Run()], out=out, data_root=data_root, force=force, on_epoch=on_epoch,
        graph=graph, compiled=compiled, own=own,
    )[0]  # fmt: skip
    if result.error is not None:
        raise DivergedError(result.error)
    return result


def fit_many(
    runs: Iterable[Run],
    *,
    out: Path | str | None = None,
    data_root: Path | str | None = None,
    force: bool = False,
    on_epoch: Callable[[Progress], None] | None = None,
    graph: bool | None = None,
    compiled: bool | None = None,
    pack: int | None = None,
    own: Mapping[str, Any] | None = None,
) -> list[Result]:
    """Train several runs, on a GPU side by side, each to the numbers that it gives alone.

    A run whose loss turns NaN or infinite ends with ``result.error``, and the others go on.

    Args:
        runs: the settings of each.
        out: as in `fit`.
        data_root: as in `fit`.
        force: as in `fit`.
        on_epoch: called after every epoch of every run.
        graph: as in `fit`.
        compiled: as in `fit`.
        pack: how many runs are trained side by side; by default as many as pay.
        own: what stands in for the runs' own data, network, loss, labels and prior, as in `fit`.
            If there are several runs each trains a copy of the network.
    """
    runs = list(runs)
    setup = Setup(data_root)
    own = {k: v for k, v in (own or {}).items() if v is not None}
    digest = "" if out is None else digest_of(own)

    def job(run: Run) -> Job:
        mine = dict(own)
        if "network" in own and len(runs) > 1:  # each starts from the weights that it has now
            mine["network"] = copy.deepcopy(own["network"])
        return Job(run, setup, out, mine, digest)

    results: dict[int, Result] = {}
    waiting: dict[tuple[Any, ...], list[int]] = {}
    for i, run in enumerate(runs):
        folder = None if out is None else Folder(Path(out) / run.hash)
        if folder is not None and force:
            shutil.rmtree(folder.path, ignore_errors=True)
        done = None if folder is None else read_result(run, folder, digest)
        if done is not None:
            results[i] = done
        else:
            waiting.setdefault(run.kind, []).append(i)
    for indices in waiting.values():
        while indices:
            first = job(runs[indices[0]])
            width = pack or first.pays()
            jobs = [first, *(job(runs[i]) for i in indices[1:width])]
            _train(jobs, on_epoch, graph, compiled)
            results |= dict(zip(indices[:width], (job.result() for job in jobs), strict=True))
            del indices[:width], first, jobs
    return [results[i] for i in range(len(runs))]


def _train(
    jobs: Sequence[Job],
    on_epoch: Callable[[Progress], None] | None,
    graph: bool | None,
    compiled: bool | None,
) -> None:
    """Train jobs of one kind to their end; those that are behind are brought up first."""
    epochs = jobs[0].epochs
    # A run taken up again may be ahead of the others: those behind are trained until they meet.
    while pending := [j for j in jobs if len(j.history) < epochs and j.error is None]:
        epoch = min(len(j.history) for j in pending)
        behind = [j for j in pending if len(j.history) == epoch]
        until = min((len(j.history) for j in pending if len(j.history) > epoch), default=epochs)
        _advance(_pack_of(behind, until - epoch, graph, compiled), behind, epoch, until, on_epoch)


def _pack_of(jobs: Sequence[Job], epochs: int, graph: bool | None, compiled: bool | None) -> Pack:
    trainees = [j.trainee for j in jobs]
    device = trainees[0].loader.device
    if not (device.type == "cuda" if graph is None else graph):
        return Pack(trainees)
    if compiled is None:  # it takes about as long as some thousand steps
        many = epochs * trainees[0].steps * len(jobs) > 5000
        compiled = many and not isinstance(trainees[0].network, Padding)  # ours have kernels
    return GraphPack(trainees, compiled=compiled)


def _advance(
    pack: Pack,
    jobs: Sequence[Job],
    start: int,
    stop: int,
    on_epoch: Callable[[Progress], None] | None,
) -> None:
    writer = Writer()
    try:
        for epoch in range(start, stop):
            began = time.perf_counter()
            rows = pack.epoch(epoch)
            seconds = (time.perf_counter() - began) / len(jobs)
            for job, values in zip(jobs, rows, strict=True):
                if job.error is not None:
                    continue
                measured = dict(zip(job.trainee.columns, values, strict=False))
                row: Row = {"epoch": epoch + 1, **measured}
                row["learning_rate"] = job.filled.learning_rate(epoch)
                row["seconds"] = seconds
                if values[-1] >= 0:
                    job.fail(int(values[-1]), row)
                    continue
                job.add(row, writer)
                if on_epoch is not None:
                    speed = len(job.trainee.loader.images) / seconds
                    on_epoch(Progress(job.run, epoch + 1, job.epochs, row, speed))
            if all(job.error is not None for job in jobs):
                return
    finally:
        writer.close()
