"""Train a run, or several at once, from where they stopped to their end."""

from __future__ import annotations

import contextlib
import functools
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import syntax
from .._errors import DivergedError, UsageError
from .._usual import usual_torch
from ..data import Dataset
from ..losses._module import declared_losses
from ..noise import NoisyLabels
from ..results import Folder, claim, with_chosen
from ..runs import ResolvedRun, Run, check_name
from ._checkpoint import Writer
from ._digest import digests_of
from ._job import Job, Result, Row, read_result
from ._overrides import checked, copies, restored_on_error, shown_names
from ._pack import GraphPack, Pack
from ._ranks import Ranks, join
from ._setup import Setup, device_of


@dataclass(frozen=True)
class Progress:
    """An epoch that has ended."""

    run: ResolvedRun
    epoch: int  # how many are done
    epochs: int
    row: Row
    images_per_second: float
    index: Tensor | None = None
    """of the samples that are trained on, in the training set; None for all"""
    labels: Tensor | None = None
    """their labels, as they are given"""
    predicted: Tensor | None = None
    """the class that each was predicted as in this epoch's step; the next epoch overwrites it"""


def fit(
    run: Run | ResolvedRun | None = None,
    *,
    data: Dataset | None = None,
    network: nn.Module | Callable[..., nn.Module] | None = None,
    loss: Callable[[Tensor, Tensor], Tensor] | None = None,
    labels: NoisyLabels | Tensor | None = None,
    prior: Tensor | None = None,
    out: Path | str | None = None,
    name: str | None = None,
    data_root: Path | str | None = None,
    force: bool = False,
    on_epoch: Callable[[Progress], None] | None = None,
    graph: bool | None = None,
    compiled: bool | None = None,
) -> Result:
    """Train one network on one noisy data set with one loss.

    In a process that torchrun started, or that is one of torch's process group, all ranks train the
    run together, and each must call this. Rank 0 writes the files and calls ``on_epoch``.

    Args:
        run: the settings; ``Run()`` if none are given.
        data: a data set of your own in place of the run's (`noiseproof.data.from_arrays`). Its
            labels are used as they are given, unless the run names a kind of noise.
        network: a network of your own in place of the run's; its weights are where training starts,
            and it holds the trained ones in the end. What it remembers between steps must be
            registered buffers that are changed in place, or a captured step would not see it. Or a
            function or class that makes it, called by `noiseproof.models.from_factory` with the
            seed of the run.
        loss: any function of logits and labels in place of the run's; for what it remembers the
            same holds.
        labels: the noisy labels, if they are not to be drawn; those of the data set are then taken
            for the true ones, unless `noiseproof.noise.from_labels` says otherwise.
        prior: the share of each class, for ``run.balance``; uniform if not given.
        out: a folder under which the run keeps its own; with it, a run that was stopped goes on
            from its last epoch, and one that has ended is read and not trained again.
        name: of the run. A run with data, labels, a network or a loss of your own is taken up again
            only under a name, and refused if what can be compared differs; without a name it is
            kept in a folder of its own each time.
        data_root: where data sets lie.
        force: start anew, whatever is in the folder.
        on_epoch: called after every epoch.
        graph: whether steps are captured as a CUDA graph; by default on a GPU.
        compiled: whether the network is compiled; by default where it pays, which for the
            networks by name it does not: they have kernels of their own.

    Raises:
        DivergedError: the loss turned NaN or infinite; what was before is kept, and a network of
            your own has the weights that it came with.

    >>> result = fit(Run(epochs=2, loss="nce + mae", device="cpu"))
    >>> len(result.history)
    2
    """
    overrides = {"data": data, "network": network, "loss": loss, "labels": labels, "prior": prior}
    result = fit_many(
        [run or Run()], out=out, name=name, data_root=data_root, force=force, on_epoch=on_epoch,
        graph=graph, compiled=compiled, overrides=overrides,
    )[0]  # fmt: skip
    if result.error is not None:
        raise DivergedError(result.error)
    return result


@usual_torch()
def fit_many(
    runs: Iterable[Run | ResolvedRun],
    *,
    out: Path | str | None = None,
    data_root: Path | str | None = None,
    force: bool = False,
    on_epoch: Callable[[Progress], None] | None = None,
    graph: bool | None = None,
    compiled: bool | None = None,
    pack: int | None = None,
    keep_models: bool = True,
    overrides: Mapping[str, Any] | None = None,
    name: str | None = None,
    claimed: bool = False,
) -> list[Result]:
    """Train several runs, on a GPU side by side, each to the numbers that it gives alone.

    What networks draw themselves, as dropout does, runs side by side draw from one generator. A run
    whose loss turns NaN or infinite ends with ``result.error``, and the others go on.

    Args:
        runs: the settings of each.
        out: as in `fit`.
        data_root: as in `fit`.
        force: as in `fit`.
        on_epoch: called after every epoch of every run.
        graph: as in `fit`.
        compiled: as in `fit`.
        pack: how many runs are trained side by side; by default as many as is fastest.
        keep_models: whether the trained networks are saved in the runs' folders.
        overrides: what is used in place of the runs' ``data``, ``network``, ``loss``, ``labels``
            and ``prior``, as in `fit`. If there are several runs each trains a copy of the network.
        name: as in `fit`; of several runs each gets a number behind it.
        claimed: whether the caller holds the locks of the runs (`noiseproof.results.claim`).
    """
    if on_epoch is not None and not callable(on_epoch):
        raise UsageError(f"on_epoch must be a function of a train.Progress, not {on_epoch!r:.60}")
    ranks = join()
    setup = Setup(data_root, ranks=ranks)
    overrides = checked(overrides or {})
    if pack is not None and pack < 1:
        raise UsageError(f"pack is how many runs are trained side by side, from 1; it was {pack}")
    runs = list(runs)
    unnamed = ranks.from_first([secrets.token_hex(6) for _ in runs])
    resolved = ranks.together(lambda: _resolve(runs, overrides, name, unnamed, out is not None))
    if len({tuple(hashes) for hashes in ranks.gather_objects([r.hash for r in resolved])}) > 1:
        raise UsageError(
            "the ranks were given different runs: they train one together, with the same settings; "
            "to train one on each, start them without torchrun"
        )
    digests = {} if out is None else digests_of(overrides | _user_losses(resolved))

    def folder_of(run: ResolvedRun) -> Folder | None:
        return None if out is None else Folder(Path(out) / run.folder)

    def job(run: ResolvedRun) -> Job:
        mine = overrides if len(resolved) == 1 else copies(overrides)
        folder = folder_of(run) if ranks.first else None
        made = ranks.together(lambda: Job(run, setup, folder, mine, digests, keep_models))
        if not ranks.alone:
            made.agree(ranks)
        return made

    def find(run: ResolvedRun, locks: contextlib.ExitStack) -> Result | None:
        """Claim a run and look whether it has ended."""
        folder = folder_of(run)
        if folder is None:
            return None
        if not claimed:
            _claim(locks, folder.path)
        folder.check_ours()
        if force:
            folder.clear()
        auto = run not in named_precision and not force
        return _find_result(run, folder.path.parent, digests, auto)

    named_precision = {
        made for run, made in zip(runs, resolved, strict=True)
        if isinstance(run, ResolvedRun) or run.precision != "auto"
    }  # fmt: skip
    results: dict[ResolvedRun, Result] = {}
    waiting: dict[tuple[Any, ...], list[ResolvedRun]] = {}
    with contextlib.ExitStack() as locks:
        for run in dict.fromkeys(resolved):  # equal ones are trained once
            done = ranks.on_first(functools.partial(find, run, locks))
            if done is not None:
                results[run] = done
            else:
                waiting.setdefault(run.pack_key, []).append(run)
        for alike in waiting.values():
            with _on(device_of(alike[0].device)), restored_on_error(overrides) as restore:
                while alike:
                    first = job(alike[0])
                    width = (pack or first.runs_per_gpu()) if ranks.alone else 1
                    jobs = [first, *(job(run) for run in alike[1:width])]
                    for same in _of_one_size(jobs):
                        _train(same, on_epoch, graph, compiled)
                    results |= {job.run: _end(job, ranks) for job in jobs}
                    if any(job.error is not None for job in jobs):
                        restore()
                    del alike[:width], first, jobs
    return [results[run] for run in resolved]


def _of_one_size(jobs: Sequence[Job]) -> list[list[Job]]:
    """Jobs that can take their steps together: the folds of a data set may differ by a sample."""
    found: dict[tuple[int, int], list[Job]] = {}
    for job in jobs:
        loader = job.trainer.loader
        found.setdefault((len(loader.labels), loader.batch_size), []).append(job)
    return list(found.values())


def _end(job: Job, ranks: Ranks) -> Result:
    """The result of a job, on every rank when rank 0 has written it."""
    found: list[Result] = []

    def write() -> Path | None:
        found.append(job.result())
        return found[0].folder

    folder = ranks.on_first(write)
    return found[0] if ranks.first else replace(job.result(), folder=folder)


def _claim(locks: contextlib.ExitStack, folder: Path) -> None:
    if not claim(locks, folder.parent, folder.name):
        raise UsageError(
            f"another process is training {folder}; wait for it, or give another folder as out"
        )


def _resolve(
    runs: Sequence[Run | ResolvedRun],
    overrides: Mapping[str, Any],
    name: str | None,
    unnamed: Sequence[str],
    kept: bool,
) -> list[ResolvedRun]:
    """Each run as it will be trained on its device.

    One with something of the user's own gets a name, without which nobody could tell it from
    another: the user's, or one that no other run has, from those in ``unnamed``.
    """
    shown = shown_names(overrides)
    if name is not None:
        check_name(name)  # an empty one would be taken for none
    found = []
    for i, run in enumerate(runs):
        named = "" if name is None else name if len(runs) == 1 else f"{name}-{i}"
        if isinstance(run, ResolvedRun):
            if overrides:
                raise UsageError(
                    "a run that is resolved names all that it is trained with: give the Run itself "
                    f"with {', '.join(overrides)}"
                )
            made = replace(run, name=check_name(named)) if named else run
        elif not isinstance(run, Run):
            raise UsageError(f"a run is train.Run(...), not {run!r:.60}")
        else:
            on_gpu = device_of(run.device).type == "cuda"
            data = overrides.get("data")
            summary = None if data is None else data.summary
            made = run.resolve(on_gpu=on_gpu, overrides=shown, data=summary, name=named)
        if made.overrides and not made.name and kept:
            made = replace(made, name=f"unnamed-{unnamed[i]}")
        found.append(made)
    return found


def _user_losses(runs: Iterable[ResolvedRun]) -> dict[str, Any]:
    """The losses that a user registered and that the runs name in their texts."""
    functions: dict[str, Any] = {}
    for run in runs:
        if "loss" in run.overrides:
            with contextlib.suppress(UsageError):  # a loss that was given, by its name
                leaves = syntax.leaves(syntax.read(run.loss))
                functions |= {
                    leaf.name: declared_losses[leaf.name]
                    for leaf in leaves
                    if syntax.SIGNATURES[leaf.name].user
                }
    return {"loss": functions} if functions else {}


def _find_result(
    run: ResolvedRun, out: Path, digests: Mapping[str, str], auto: bool
) -> Result | None:
    """The result of a run that has ended; precision auto is satisfied by any that ended well."""
    found = read_result(run, Folder(out / run.folder), digests) if not auto else None
    refused = None
    for precision in dict.fromkeys((run.precision, "bf16", "fp32")) if auto else ():
        like = replace(run, precision=precision)
        try:
            other = read_result(like, Folder(out / like.folder), digests)
        except UsageError as error:
            refused = refused or error
            continue
        if other is not None and (other.error is None or precision == run.precision):
            found = found or other
    if found is None and refused is not None:
        raise refused
    return found


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
    epochs = jobs[0].run.epochs
    # A run taken up again may be ahead of the others: those behind are trained until they meet.
    while pending := [j for j in jobs if len(j.history) < epochs and j.error is None]:
        epoch = min(len(j.history) for j in pending)
        behind = [j for j in pending if len(j.history) == epoch]
        until = min((len(j.history) for j in pending if len(j.history) > epoch), default=epochs)
        _advance(_pack_of(behind, graph, compiled), behind, epoch, until, on_epoch)


def _pack_of(jobs: Sequence[Job], graph: bool | None, compiled: bool | None) -> Pack:
    trainers = [j.trainer for j in jobs]
    alone = trainers[0].ranks.alone
    if graph and not alone:
        raise UsageError("steps are captured as a CUDA graph in one process; leave out graph=True")
    on_gpu = trainers[0].loader.device.type == "cuda"
    if graph and not on_gpu:
        raise UsageError("steps are captured as a CUDA graph on a GPU; leave out graph=True")
    if not (on_gpu and alone if graph is None else graph):
        if compiled:
            raise UsageError("compiled=True is for steps that are captured as a CUDA graph")
        return Pack(trainers)
    if compiled is None:  # it takes about as long as some thousand steps
        compiled = jobs[0].own_network and jobs[0].run.epochs * trainers[0].steps > 5000
    return GraphPack(trainers, compiled=compiled)


def _advance(
    pack: Pack,
    jobs: Sequence[Job],
    start: int,
    stop: int,
    on_epoch: Callable[[Progress], None] | None,
) -> None:
    writer, ranks = Writer(), jobs[0].trainer.ranks
    try:
        for epoch in range(start, stop):
            began = time.perf_counter()
            measured = ranks.from_first(pack.train_epoch(epoch))
            seconds = ranks.from_first((time.perf_counter() - began) / len(jobs))
            for job, metrics in zip(jobs, measured, strict=True):
                if job.error is not None:
                    continue
                row: Row = {"epoch": epoch + 1, **metrics.values}
                lr = job.run.lr_at(epoch, steps=job.trainer.steps)
                row |= {"lr": lr, "seconds": seconds}
                row = with_chosen(row, job.history)
                if metrics.diverged_step is not None:
                    job.fail(metrics.diverged_step, row)
                    continue
                ranks.on_first(functools.partial(_add, job, row, writer, on_epoch))
                if not ranks.first:
                    job.add(row, writer)
            if all(job.error is not None for job in jobs):
                return
    finally:
        writer.close()


def _add(job: Job, row: Row, writer: Writer, on_epoch: Callable[[Progress], None] | None) -> None:
    """Keep an epoch that has ended, and tell of it."""
    job.add(row, writer)
    job.remark()
    if on_epoch is not None:
        speed = len(job.trainer.loader.images) / row["seconds"]
        made = Progress(job.run, len(job.history), job.run.epochs, row, speed)
        of, labels = job.trainer.index, job.trainer.loader.labels
        on_epoch(replace(made, index=of, labels=labels, predicted=job.trainer._predicted))
