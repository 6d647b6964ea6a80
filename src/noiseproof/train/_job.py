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
from ..results import Folder, hash_of, write_atomically
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


def settings_of(run: Run, own: Mapping[str, Any], digest: str) -> dict[str, Any]:
    """A run's settings; what is a user's own by its own name, and a digest that tells it apart."""
    named: dict[str, Any] = {}
    if "data" in own:
        named["dataset"] = own["data"].name
    if "labels" in own:
        named |= {"noise": "given", "rate": 0.0}
    if "network" in own:
        named["model"] = type(own["network"]).__name__
    if "loss" in own:
        named["loss"] = _words(own["loss"])
    return run.settings() | named | ({"own": digest} if own else {})


def read_result(run: Run, folder: Folder) -> Result | None:
    """The result of a run that has ended."""
    content = folder.read_json("result.json")
    if content is None:
        return None
    history = folder.read_history()
    if len(history) != content.get("epochs"):
        raise folder.damaged("history.csv")
    return Result(run, history, folder.path, None, content.get("error"))


class Job:
    """A run on its way: its trainee, its history, its folder."""

    def __init__(
        self,
        run: Run,
        setup: Setup,
        folder: Folder | None,
        own: Mapping[str, Any],
        digest: str,
    ) -> None:
        self.run = run
        self.settings = settings_of(run, own, digest)
        self.trainee: Trainee = setup.trainee(run, **own)
        self.filled = self.trainee.run
        assert self.filled.epochs is not None
        self.epochs = self.filled.epochs
        self.network: nn.Module | None = own.get("network")
        self.folder = folder
        self.history: list[Row] = []
        self.error: str | None = None
        if folder is not None:
            self.device = self.trainee.loader.device.type
            self.fingerprint = _fingerprint(self.trainee, digest)
            found = read(self.checkpoint, self.settings, self.fingerprint, self.device)
            if found is not None:
                self.trainee.restore(found.tensors)
                self.history = found.history
            folder.write_json("run.json", describe(run, self.trainee, self.settings))

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
        tensors, wait = _on_host(self.trainee.saved())
        history = list(self.history)
        kept = Checkpoint(
            self.settings, self.fingerprint, len(history), history, tensors, self.device
        )
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
        ended = {"error": self.error, "epochs": len(self.history)}
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


def _fingerprint(trainee: Trainee, own: str) -> str:
    """Of what a run starts from and is not named by its settings: the labels and the weights."""
    digest = hashlib.sha256(own.encode())
    for tensor in (trainee.loader.labels, trainee.clean, trainee.state.weights):
        digest.update(tensor.cpu().numpy().tobytes())
    digest.update(type(trainee.network).__name__.encode())
    return digest.hexdigest()


def _words(loss: Any) -> str:
    """A loss as it is written; a function by its name, any other object by that of its class."""
    if isinstance(loss, nn.Module):
        return str(loss)
    return str(getattr(loss, "__qualname__", type(loss).__qualname__))


def describe(run: Run, trainee: Trainee, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run, what they came to, and the versions and the machine that ran it."""
    device = trainee.loader.device
    loss = getattr(trainee.objective, "loss", None)
    low = trainee.low is not None
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor()
    return {
        "hash": hash_of(settings),
        "settings": dict(settings),
        "loss": _words(loss) if loss is not None else run.loss,
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
