"""Train a run, or several at once, from where they stopped to their end."""

from __future__ import annotations

import contextlib
import copy
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..data import Dataset
from ..noise import NoisyLabels
from ..results import Folder, hash_of
from ._checkpoint import Writer
from ._digest import digest_of
from ._job import Job, Result, Row, read_result, settings_of
from ._pack import GraphPack, Pack
from ._run import Run
from ._setup import Setup, device_of


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
        data: a data set of your own in place of the run's (`noiseproof.data.from_arrays`). Its
            labels are taken as they are, unless the run names a kind of noise.
        network: a network of your own in place of the run's; its weights are where training starts,
            and it holds the trained ones in the end. What it remembers between steps must be
            registered buffers that are changed in place, or a captured step would not see it.
        loss: any function of logits and labels in place of the run's; for what it remembers the
            same holds.
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
    _check(own)
    if "data" in own:  # labels that came with it are trained on as they are
        runs = [replace(run, noise="none") if run.noise is None else run for run in runs]
    digest = "" if out is None else digest_of(own)

    def folder_of(run: Run) -> Folder | None:
        return None if out is None else Folder(Path(out) / hash_of(settings_of(run, own, digest)))

    def job(run: Run) -> Job:
        mine = own if len(runs) == 1 else _copies(own)  # each of several has its own
        return Job(run, setup, folder_of(run), mine, digest)

    results: dict[Run, Result] = {}
    waiting: dict[tuple[Any, ...], list[Run]] = {}
    for run in dict.fromkeys(runs):  # equal ones are trained once
        folder = folder_of(run)
        if folder is not None and force:
            shutil.rmtree(folder.path, ignore_errors=True)
        done = None if folder is None else read_result(run, folder)
        if done is not None:
            results[run] = done
        else:
            waiting.setdefault(run.kind, []).append(run)
    for alike in waiting.values():
        with _on(device_of(alike[0].device)), _as_it_was(own):
            while alike:
                first = job(alike[0])
                width = pack or first.pays()
                jobs = [first, *(job(run) for run in alike[1:width])]
                _train(jobs, on_epoch, graph, compiled)
                results |= {job.run: job.result() for job in jobs}
                del alike[:width], first, jobs
    return [results[run] for run in runs]


def _check(own: Mapping[str, Any]) -> None:
    for name, right, what, remedy in (
        ("data", isinstance(own.get("data"), Dataset), "Dataset", "data.from_arrays makes one"),
        ("network", isinstance(own.get("network"), nn.Module), "Module",
         "a network by its name goes to Run(model=...)"),
        ("loss", callable(own.get("loss")), "function", "a text goes to Run(loss=...)"),
    ):  # fmt: skip
        if name in own and not right:
            raise ValueError(f"{name} must be a {what}, not {own[name]!r:.60}; {remedy}")


def _copies(own: Mapping[str, Any]) -> dict[str, Any]:
    return {k: copy.deepcopy(v) if isinstance(v, nn.Module) else v for k, v in own.items()}


@contextlib.contextmanager
def _as_it_was(own: Mapping[str, Any]) -> Iterator[None]:
    """A run that does not end leaves the user's modules as they were, so that it can go on."""
    modules = [v for v in own.values() if isinstance(v, nn.Module)]
    before = [{k: t.detach().clone() for k, t in m.state_dict().items()} for m in modules]
    try:
        yield
    except BaseException:
        for module, state in zip(modules, before, strict=True):
            module.load_state_dict(state, strict=False)
        raise


def _on(device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Streams, graphs and kernels go to the current device."""
    return torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()


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
        _advance(_pack_of(behind, graph, compiled), behind, epoch, until, on_epoch)


def _pack_of(jobs: Sequence[Job], graph: bool | None, compiled: bool | None) -> Pack:
    trainees = [j.trainee for j in jobs]
    on_gpu = trainees[0].loader.device.type == "cuda"
    if not (on_gpu if graph is None else graph):
        if compiled:
            raise ValueError("compiled=True is for steps that are captured as a CUDA graph")
        return Pack(trainees)
    if compiled is None:  # it takes about as long as some thousand steps
        compiled = jobs[0].network is not None and jobs[0].epochs * trainees[0].steps > 5000
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
