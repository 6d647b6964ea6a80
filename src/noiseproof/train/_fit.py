"""Train a run, or several at once, from where they stopped to their end."""

from __future__ import annotations

import copy
import hashlib
import math
import platform
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import __version__
from ..data import Dataset
from ..models import Padding
from ..noise import NoisyLabels
from ..results import Folder
from ._checkpoint import Checkpoint, Writer, read
from ._pack import GraphPack, Pack
from ._run import Run
from ._setup import Setup
from ._trainee import Trainee

Row = dict[str, float]
# How many runs side by side a large GPU is still faster with, by the network's parameters.
_PAYS = ((1_000_000, 16), (4_000_000, 8), (40_000_000, 4))


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


@dataclass(frozen=True, eq=False)
class Result:
    """A run that has ended."""

    run: Run
    history: list[Row]
    folder: Path | None = None
    network: nn.Module | None = None  # trained, on the CPU; None if it was trained another time
    error: str | None = None  # why it ended early

    @property
    def accuracy(self) -> float:
        """The accuracy on the clean test set after the last epoch, the paper's figure."""
        return self.history[-1]["test_accuracy"] if self.history else float("nan")

    def __repr__(self) -> str:
        return f"Result({self.run}, accuracy {self.accuracy:.4f})"


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
    digest = "" if out is None else _digest(own)

    def job(run: Run) -> _Job:
        mine = dict(own)
        if "network" in own and len(runs) > 1:  # each starts from the weights that it has now
            mine["network"] = copy.deepcopy(own["network"])
        return _Job(run, setup, out, mine, digest)

    results: dict[int, Result] = {}
    waiting: dict[tuple[Any, ...], list[int]] = {}
    for i, run in enumerate(runs):
        folder = None if out is None else Folder(Path(out) / run.hash)
        if folder is not None and force:
            shutil.rmtree(folder.path, ignore_errors=True)
        done = None if folder is None else _read(run, folder, digest)
        if done is not None:
            results[i] = done
        else:
            waiting.setdefault(_kind(run), []).append(i)
    for indices in waiting.values():
        while indices:
            first = job(runs[indices[0]])
            width = pack or first.pays()
            jobs = [first, *(job(runs[i]) for i in indices[1:width])]
            _train(jobs, on_epoch, graph, compiled)
            results |= dict(zip(indices[:width], (job.result() for job in jobs), strict=True))
            del indices[:width], first, jobs
    return [results[i] for i in range(len(runs))]


def _kind(run: Run) -> tuple[Any, ...]:
    """Runs of one kind can be trained side by side."""
    f = run.filled()
    return (f.dataset, f.model, f.epochs, f.batch_size, f.holdout, f.precision, f.device)


def _read(run: Run, folder: Folder, digest: str) -> Result | None:
    """The result of a run that has ended."""
    content = folder.read_json("result.json")
    if content is None:
        return None
    if content.get("own", "") != digest:
        raise ValueError(
            f"{folder.path} holds a run of the same settings with other data, labels, network or "
            "loss of your own; give another folder, or force=True to start anew"
        )
    history = folder.read_history()
    if len(history) != content.get("epochs"):
        raise folder.damaged("history.csv")
    return Result(run, history, folder.path, None, content.get("error"))


class _Job:
    """A run on its way: its trainee, its history, its folder."""

    def __init__(
        self, run: Run, setup: Setup, out: Path | str | None, own: Mapping[str, Any], digest: str
    ) -> None:
        self.run = run
        self.digest = digest
        self.trainee: Trainee = setup.trainee(run, **own)
        self.filled = self.trainee.run
        assert self.filled.epochs is not None
        self.epochs = self.filled.epochs
        self.network = own.get("network")
        self.folder = None if out is None else Folder(Path(out) / run.hash)
        self.history: list[Row] = []
        self.error: str | None = None
        if self.folder is not None:
            self.fingerprint = _fingerprint(self.trainee, digest)
            found = read(self.checkpoint, run.settings(), self.fingerprint)
            if found is not None:
                self.trainee.state.restore(found.tensors)
                self.history = found.history
            self.folder.write_json("run.json", describe(run, self.trainee))

    @property
    def checkpoint(self) -> Path:
        assert self.folder is not None
        return self.folder.path / "checkpoint.pt"

    def pays(self) -> int:
        if self.trainee.loader.device.type != "cuda":
            return 1
        size = self.trainee.state.weights.numel()
        return next((width for limit, width in _PAYS if size <= limit), 1)

    def add(self, row: Row, writer: Writer) -> None:
        self.history.append(row)
        if self.folder is None:
            return
        tensors = {
            k: v.detach().to("cpu", copy=True) for k, v in self.trainee.state.saved().items()
        }
        history = list(self.history)
        kept = Checkpoint(self.run.settings(), self.fingerprint, len(history), history, tensors)
        folder, path = self.folder, self.checkpoint

        def write() -> None:
            kept.write(path)
            folder.write_history(history)

        writer.submit(path, write)

    def fail(self, step: int, row: Row) -> None:
        name, value = "loss", row["train_loss"]
        if math.isfinite(value):
            name, value = "gradient's norm", row["gradient_norm"]
        self.error = (
            f"the {name} became {value:g} in epoch {len(self.history) + 1}, "
            f"step {step + 1} of {self.trainee.steps} ({self.run}); "
            f"lower lr={self.filled.lr:g} or the loss's weights"
        )

    def result(self) -> Result:
        network = self.network if self.network is not None else self.trainee.start
        self.trainee.state.write_back(network)
        network.eval()
        if self.folder is not None:
            self._finish(network)
        path = None if self.folder is None else self.folder.path
        return Result(self.run, self.history, path, network, self.error)

    def _finish(self, network: nn.Module) -> None:
        assert self.folder is not None
        self.folder.write_history(self.history)
        if self.error is None:
            _save_network(network, self.folder.path / "model.pt")
        last = self.history[-1] if self.history else {}
        ended = {"error": self.error, "epochs": len(self.history), "own": self.digest}
        self.folder.write_json("result.json", {**ended, **last})
        self.folder.tidy()
        if self.error is None:
            self.checkpoint.unlink(missing_ok=True)


def _save_network(network: nn.Module, path: Path) -> None:
    import io

    from ..results import write_atomically

    out = io.BytesIO()
    torch.save({k: v.detach().cpu() for k, v in network.state_dict().items()}, out)
    write_atomically(path, out.getvalue())


def _train(
    jobs: Sequence[_Job],
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


def _pack_of(jobs: Sequence[_Job], epochs: int, graph: bool | None, compiled: bool | None) -> Pack:
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
    jobs: Sequence[_Job],
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


def _digest(own: Mapping[str, Any]) -> str:
    """Of what stands in for what the settings name; a function is known by its name alone."""
    digest = hashlib.sha256()
    for name, value in sorted(own.items()):
        digest.update(name.encode())
        for part in _parts(value):
            if isinstance(part, Tensor):
                part = part.float() if part.dtype == torch.bfloat16 else part
                digest.update(part.detach().cpu().numpy().tobytes())
            else:
                digest.update(str(part).encode())
    return digest.hexdigest() if own else ""


def _parts(value: Any) -> list[Any]:
    match value:
        case nn.Module():
            return [repr(value), *value.state_dict().values()]
        case Dataset(train=train, test=test):
            tensors = [train.images, train.labels, test.images, test.labels]
            return [value.mean, value.std, value.classes, *tensors]
        case NoisyLabels(labels=labels, clean=clean):
            return [torch.as_tensor(labels), torch.as_tensor(clean)]
        case Tensor():
            return [value]
    return [getattr(value, "__module__", ""), getattr(value, "__qualname__", type(value))]


def _fingerprint(trainee: Trainee, own: str) -> str:
    """Of what a run starts from and is not named by its settings: the labels and the weights."""
    digest = hashlib.sha256(own.encode())
    for tensor in (trainee.loader.labels, trainee.clean, trainee.state.weights):
        digest.update(tensor.cpu().numpy().tobytes())
    digest.update(type(trainee.network).__name__.encode())
    return digest.hexdigest()


def describe(run: Run, trainee: Trainee) -> dict[str, Any]:
    """The settings of a run, what they came to, and the versions and the machine that ran it."""
    device = trainee.loader.device
    loss = getattr(trainee.objective, "loss", None)
    low = trainee.low is not None
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor()
    return {
        "hash": run.hash,
        "settings": run.settings(),
        "loss": str(loss) if loss is not None else run.loss,
        "weight_decay": trainee.settings.weight_decay,
        "l1": trainee.settings.l1,
        "parameters": trainee.state.weights.numel(),
        "noise_rate": float((trainee.loader.labels != trainee.clean).float().mean()),
        "precision": "bf16" if low else run.precision.replace("auto", "fp32"),
        "versions": {
            "noiseproof": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "cuda": torch.version.cuda,
        },
        "machine": {"device": name or platform.machine(), "system": platform.system()},
    }
