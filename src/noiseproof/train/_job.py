"""A run on its way: its trainee, its history, and the folder that they are kept in."""

from __future__ import annotations

import hashlib
import io
import math
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import __version__
from ..data import Dataset
from ..noise import NoisyLabels
from ..results import Folder, write_atomically
from ._checkpoint import Checkpoint, Writer, read
from ._protocols import side_by_side
from ._run import Run
from ._setup import Setup
from ._trainee import Trainee

Row = dict[str, float]


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


def read_result(run: Run, folder: Folder, digest: str) -> Result | None:
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


class Job:
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
        return side_by_side(None if self.network is not None else self.filled.model)

    def add(self, row: Row, writer: Writer) -> None:
        self.history.append(row)
        if self.folder is None:
            return
        tensors, wait = _on_host(self.trainee.state.saved())
        history = list(self.history)
        kept = Checkpoint(self.run.settings(), self.fingerprint, len(history), history, tensors)
        folder, path = self.folder, self.checkpoint

        def write() -> None:
            wait()
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


def _on_host(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Callable[[], None]]:
    """Copies as of now, and what to call before they are read: a GPU goes on while it copies."""
    if not any(t.is_cuda for t in tensors.values()):
        return {k: t.detach().clone() for k, t in tensors.items()}, lambda: None
    copies = {k: torch.empty_like(t, device="cpu", pin_memory=True) for k, t in tensors.items()}
    for name, copied in copies.items():
        copied.copy_(tensors[name].detach(), non_blocking=True)
    done = torch.cuda.Event()  # type: ignore[no-untyped-call]
    done.record()
    return copies, done.synchronize


def _save_network(network: nn.Module, path: Path) -> None:
    out = io.BytesIO()
    torch.save({k: v.detach().cpu() for k, v in network.state_dict().items()}, out)
    write_atomically(path, out.getvalue())


def digest_of(own: Mapping[str, Any]) -> str:
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
