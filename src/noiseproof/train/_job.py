"""A run on its way: its trainer, its history, and the folder that they are kept in."""

from __future__ import annotations

import copy
import functools
import hashlib
import io
import math
import platform
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from .. import __version__, catalogue, models
from .._errors import UsageError, level_outside
from .._imports import is_import
from ..results import FORMAT, Folder, accuracy_column, write_atomically, write_held_out
from ..runs import ResolvedRun
from ._checkpoint import Checkpoint, Writer, check_readable, differing_settings, read
from ._digest import difference
from ._examples import keep_examples
from ._measure import CHOSEN_EPOCH, PATIENCE, gave_classes_up
from ._model import CHOSEN_MODEL, EMA_MODEL, INPUTS, MODEL
from ._pack import Pack
from ._ranks import Ranks
from ._setup import Setup
from ._trainer import RunTrainer

Row = dict[str, float]
CHECKPOINT = "checkpoint.pt"
NOTES = "notes"
"""The key in run.json of what was remarked on in training."""
DISBELIEVED = "disbelieved"
"""The key in run.json of the labels, as they were given, that the network did not believe: rows of
given class, predicted class and their number."""

LEFT_OUT = "left_out"
"""The key in run.json of the samples that could not be read: how many, a digest of the names of
all of them, and a line on each of the first."""
_FIRST_LEFT_OUT = 5


class UnpredictedClassWarning(UserWarning):
    """The network has given up some classes: it predicts them for no test sample."""


@dataclass(frozen=True, eq=False)
class Result:
    """A run that has ended.

    Attributes:
        run: its settings, resolved.
        history: a row an epoch.
        folder: where its results are kept, if anywhere.
        network: trained, on the CPU, with the weights that the run ends with: the chosen epoch's
            where one is chosen (averaged, where there is an average), else the last. None if it
            was trained another time.
        ema_network: the same with the EMA of the weights, where the run asked for one.
        last_network: with the weights of the last epoch, where ``network`` has chosen ones.
        error: why it ended early, if it did.
    """

    run: ResolvedRun
    history: list[Row]
    folder: Path | None = None
    network: nn.Module | None = None
    ema_network: nn.Module | None = None
    error: str | None = None
    last_network: nn.Module | None = None

    @property
    def accuracy(self) -> float:
        """The accuracy on the clean test set of the weights that the run ends with.

        They are those of the last epoch, as in the paper, or of the one that was chosen where the
        run chooses one. Where there is no test set, it is the accuracy after the last epoch on
        what was held out of the noisy training set.
        """
        column = accuracy_column(self.history[-1]) if self.history else None
        return math.nan if column is None else self.history[-1][column]

    @property
    def chosen_epoch(self) -> int | None:
        """The epoch, from 1, whose weights were chosen by what was held out; None without choice.

        It is the last one unless the best is better by more than one paired standard error.
        """
        chosen = self.history[-1].get(CHOSEN_EPOCH, math.nan) if self.history else math.nan
        return None if math.isnan(chosen) else int(chosen)

    def __repr__(self) -> str:
        return f"Result({self.run}, accuracy {self.accuracy:.4f})"


def read_result(run: ResolvedRun, folder: Folder, digests: Mapping[str, str]) -> Result | None:
    """The result of a run that has ended."""
    content = folder.read_json("result.json")
    if content is None:
        return None
    check_same_run(run, folder, digests)
    history = folder.read_history()
    if len(history) != content.get("epochs"):
        raise folder.damaged("history.csv")
    if content.get("error") is None:  # the process may have been killed before it did so
        (folder.path / CHECKPOINT).unlink(missing_ok=True)
    return Result(run, history, folder.path, error=content.get("error"))


def check_same_run(run: ResolvedRun, folder: Folder, digests: Mapping[str, str]) -> None:
    """Refuse a folder that holds another run under the name that the user gave."""
    described = folder.read_json("run.json")
    if described is None:
        return
    settings, known = described.get("settings", {}), described.get("overrides", {})
    if not isinstance(settings, dict) or not isinstance(known, dict):
        raise folder.damaged("run.json")
    differing = differing_settings(settings, run)
    found = (difference(part, known.get(part), now) for part, now in digests.items())
    differing += filter(None, found)
    if differing:
        raise UsageError(
            f"{folder.path} holds another run of this name ({'; '.join(differing)}): "
            "give another name, or force=True to replace it"
        )


class Job:
    """A run on its way: its trainer, its history, its folder.

    Args:
        run: its settings.
        setup: makes the trainer.
        folder: where it is kept, if anywhere.
        overrides: what is used in place of what the settings name.
        digests: of the overrides.
        keep_model: whether the trained network is saved.
    """

    def __init__(
        self,
        run: ResolvedRun,
        setup: Setup,
        folder: Folder | None,
        overrides: Mapping[str, Any],
        digests: Mapping[str, str],
        keep_model: bool,
    ) -> None:
        self.run = run
        self.trainer: RunTrainer = setup.trainer(run, **overrides)
        given = overrides.get("network")
        self.network: nn.Module | None = given if isinstance(given, nn.Module) else None
        self.own_network = given is not None or is_import(run.model)
        self.folder = folder
        self.keep_model = keep_model
        self.history: list[Row] = []
        self.error: str | None = None
        if folder is not None:
            check_same_run(run, folder, digests)
            self.device = self.trainer.loader.device.type
            self.fingerprint = _fingerprint(self.trainer, digests)
            found = read(self.checkpoint, run, self.fingerprint, self.device)
            self.description = describe(self.trainer, digests)
            check_readable(self.trainer.extra_states())
            if found is not None:
                self.trainer.load_state_dict(found.tensors)
                self.trainer.set_extra_states(found.extra)
                self.history = found.history
                before = folder.read_json("run.json") or {}
                self.description |= {k: before[k] for k in (NOTES, DISBELIEVED) if k in before}
            folder.write_json("run.json", self.description)

    def agree(self, ranks: Ranks) -> None:
        """Go on from where rank 0 is, which alone has the folder; refuse other data than its."""
        if len(set(ranks.gather_objects(_digest_of_data(self.trainer)))) > 1:
            raise UsageError(
                "the ranks were given different labels, or inputs or networks of another shape or "
                "layout in memory: what is drawn for a run must be drawn from one seed on all ranks"
            )
        self.history = ranks.from_first(self.history)
        ranks.copy_first(self.trainer.state.frozen.values())
        self.trainer.copy_first_rank()
        self.trainer.set_extra_states(ranks.from_first(self.trainer.extra_states()))

    @property
    def checkpoint(self) -> Path:
        assert self.folder is not None
        return self.folder.path / CHECKPOINT

    def runs_per_gpu(self) -> int:
        """How many runs like this one are trained side by side on its device."""
        if self.trainer.loader.device.type != "cuda" or self.trainer.evaluates_files:
            return 1  # each of several would decode every image again
        return catalogue.runs_per_gpu("" if self.own_network else self.run.model)

    def add(self, row: Row, writer: Writer) -> None:
        if self.history and self.history[0].keys() != row.keys():  # an older version measured less
            self.history = [dict.fromkeys(row, math.nan) | old for old in self.history]
        self.history.append(row)
        if self.folder is None:
            return
        if self.run.noise == catalogue.GIVEN and len(self.history) == self.run.epochs:
            self.description[DISBELIEVED] = self.trainer.disbelieved()  # no checkpoint has it
            self.folder.write_json("run.json", self.description)
        tensors, wait = _on_host(self.trainer.state_dict())
        history = list(self.history)
        saved = Checkpoint(
            self.run.settings(), self.fingerprint, len(history), history, tensors, self.device,
            copy.deepcopy(self.trainer.extra_states()),
        )  # fmt: skip
        folder, path = self.folder, self.checkpoint

        def write() -> None:
            wait()
            parts: list[Callable[[], None]] = [
                functools.partial(saved.write, path),
                functools.partial(folder.write_history, history),
            ]
            for part in parts:
                try:
                    part()
                except FileNotFoundError:  # somebody removed the folder at this very moment
                    part()

        writer.submit(path, write)

    def remark(self) -> None:
        """Warn, once in a run, if the network has given up classes, and keep a note of it."""
        classes = self.trainer.inputs.classes
        if not gave_classes_up(self.history, self.run.epochs, len(classes)):
            return
        missing = self.trainer.unpredicted_classes()
        if self.run.shrink:
            remedy = f"train longer, or shrink less than {self.run.shrink:g} (--shrink)"
        else:
            remedy = "train longer, or weigh mae or rce less"
        text = (
            f"for {PATIENCE} epochs some classes were predicted for no test sample, now "
            f"{_listed(missing)} of {len(classes)} ({self.run}, epoch {len(self.history)}): robust "
            "losses give up classes that are rare or hard. If these are rare, give "
            "class_weight='balanced' (of a loss: weight=noiseproof.class_weights(labels)); else "
            f"{remedy} (docs/imbalance.md)"
        )
        if self.folder is not None:
            self.description[NOTES] = [text]
            self.folder.write_json("run.json", self.description)
        warnings.warn(text, UnpredictedClassWarning, stacklevel=level_outside())

    def fail(self, step: int, row: Row) -> None:
        name, value = "loss", row["train_loss"]
        if math.isfinite(value):
            name, value = "gradient's norm", row["gradient_norm"]
        self.error = (
            f"the {name} became {value:g} in epoch {len(self.history) + 1}, "
            f"step {step + 1} of {self.trainer.steps} ({self.run}); "
            f"lower lr={self.run.lr:g} or the loss's weights"
        )

    def result(self) -> Result:
        network = self.network if self.network is not None else self.trainer.start
        state, ema_network = self.trainer.state, None
        state.write_back(network)
        state.release()
        network.eval()
        if state.ema_weights is not None:
            ema_network = models.copy_of(network)
            state.write_back(ema_network, ema=True)
        path = None if self.folder is None else self.folder.path
        result = Result(self.run, self.history, path, network, ema_network, self.error)
        tensors = state.tensors()
        if (chosen := result.chosen_epoch) is not None and self.trainer.best is not None:
            result = replace(result, last_network=models.copy_of(network))
            best, last = self.trainer.best, chosen == len(self.history)
            ends_with = state.averaged() if last else (best.weights, best.buffers)
            state.write(network, *ends_with)
            tensors = state.tensors_of(*ends_with)
        if self.folder is not None:
            self._finish(result, tensors)
        return result

    def _finish(self, result: Result, tensors: dict[str, Tensor] | None) -> None:
        """Keep what the run ends with; ``tensors`` are its weights, where it is trained."""
        assert self.folder is not None
        self.folder.write_history(self.history)
        if self.error is None and self.keep_model:
            self.trainer.inputs.write(self.folder.path / INPUTS)
            chosen = result.last_network is not None
            for made, name in (
                (result.last_network if chosen else result.network, MODEL),
                (result.ema_network, EMA_MODEL),
                (result.network if chosen else None, CHOSEN_MODEL),
            ):
                if made is not None:
                    _save_network(made, self.folder.path / name)
        if self.error is None:
            with Pack([self.trainer]).backend_flags():  # as it was tested, to the last digit
                keep_examples(self.trainer, tensors, self.folder)
                held_out = self.trainer.held_out(tensors)
            if held_out is not None:
                write_held_out(self.folder, held_out)
        if not (self.folder.path / "run.json").exists():  # somebody removed the folder meanwhile
            self.folder.write_json("run.json", self.description)
        last = self.history[-1] if self.history else {}
        ended = {"error": self.error, "epochs": len(self.history)}
        self.folder.write_json("result.json", {**ended, **last})
        self.folder.tidy()
        if self.error is None:
            self.checkpoint.unlink(missing_ok=True)


def _listed(names: list[str], most: int = 5) -> str:
    """Names in a sentence.

    >>> _listed(["cat", "dog"]), _listed(list("abcdefg"))
    ("'cat', 'dog'", "'a', 'b', 'c', 'd', 'e' and 2 more")
    """
    shown = ", ".join(f"{name!r:.60}" for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


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
    state = dict(models.unwrapped(network).state_dict())
    torch.save(tree_map_only(Tensor, lambda t: t.detach().cpu(), state), out)
    write_atomically(path, out.getvalue())


def _fingerprint(trainer: RunTrainer, digests: Mapping[str, str]) -> str:
    """Of what a run goes on from: the labels, the overrides and, of our own, the first weights."""
    digest = hashlib.sha256("".join(f"{k}={v};" for k, v in digests.items()).encode())
    tensors = [trainer.loader.labels, *([] if trainer.clean is None else [trainer.clean])]
    if "network" not in digests:  # whose first weights a checkpoint replaces
        tensors.append(trainer.state.weights)
    for tensor in tensors:
        digest.update(tensor.cpu().numpy().tobytes())
    digest.update(type(trainer.network).__name__.encode())
    last = trainer.state.channels_last
    if last != (trainer.loader.device.type == "cuda" and len(trainer.loader.shape) == 3):
        digest.update(b"channels last" if last else b"channels first")  # not as in version 0.1
    return digest.hexdigest()


def _digest_of_data(trainer: RunTrainer) -> str:
    """What ranks must have in common; the weights they get from rank 0."""
    shapes = {name: tuple(tensor.shape) for name, tensor in trainer.state_dict().items()}
    shapes["inputs"] = tuple(trainer.loader.inputs.shape)
    # Weights are sent flat, so that another layout would be other weights.
    digest = hashlib.sha256(f"{shapes} {trainer.state.channels_last}".encode())
    for labels in (trainer.loader.labels, trainer.test.labels):
        digest.update(labels.cpu().numpy().tobytes())
    return digest.hexdigest()


def _noise_rate(trainer: RunTrainer) -> float | None:
    """The share of labels that are wrong; None if nobody knows."""
    if trainer.clean is None:
        return None
    return float((trainer.loader.labels != trainer.clean).float().mean())


def describe(trainer: RunTrainer, digests: Mapping[str, str]) -> dict[str, Any]:
    """The content of run.json: the settings, and the versions and the machine that trained it."""
    device = trainer.loader.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor()
    return {
        "format": FORMAT,
        "hash": trainer.run.hash,
        "settings": trainer.run.settings(),
        "parameters": trainer.state.weights.numel(),
        "noise_rate": _noise_rate(trainer),
        "versions": {
            "noiseproof": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "cuda": torch.version.cuda,
        },
        "machine": {"device": name or platform.machine(), "system": platform.system()},
        "world_size": trainer.ranks.size,
        **({LEFT_OUT: _left_out(trainer.left_out)} if trainer.left_out else {}),
        **({"overrides": dict(digests)} if digests else {}),
    }


def _left_out(lines: Sequence[str]) -> dict[str, Any]:
    names = "\n".join(line.partition(": ")[0] for line in lines)  # not why, in a library's words
    digest = hashlib.sha256(names.encode(errors="surrogateescape")).hexdigest()[:12]
    return {"count": len(lines), "digest": digest, "first": list(lines[:_FIRST_LEFT_OUT])}
