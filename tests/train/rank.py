"""What the ranks of `test_distributed.py` run: ``torchrun -m tests.train.rank TASK FOLDER``."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

import noiseproof
from noiseproof.train import Progress, Run, _fit, fit
from noiseproof.train._ranks import Ranks

from .subjects import but_seconds, conv_net, flat_net, tiny

EPOCHS = 4  # of a run that is killed after its second


def weighted() -> Any:
    """A loss whose mean is over weights: parts of a batch differ in their sum."""
    return noiseproof.parse("ce", weight=torch.arange(1.0, 11.0), ignore_index=3)


class Weighted(nn.CrossEntropyLoss):
    """The same of a user's own, who gives a mean and no more."""

    def __init__(self) -> None:
        super().__init__(weight=torch.arange(1.0, 11.0))


# What is trained, and what of the user's own. Of the 1,437 digits the last batch has 3 samples in
# batches of 239, fewer than three ranks can share.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "weights and ignore_index": ({}, {"loss": weighted()}),
    "a loss of one's own": ({}, {"loss": Weighted()}),
    "a mean prediction": ({"balance": 0.5}, {}),
    "NLNL": ({"loss": "nlnl"}, {}),
    "mixup": ({"mixup": 0.3}, {}),
    "augmented": ({"crop": 1, "flip": True}, {}),
    "AdamW and EMA": ({"optimizer": "adamw", "lr": 0.003, "ema": 0.9, "holdout": 0.2}, {}),
    "a small last batch": ({"batch_size": 239}, {}),
    "a chosen epoch": ({"ema_horizon": 0.2, "choose_epoch": True}, {}),
    "shrunk weights": ({"shrink": 2.0, "warmup": 1.0}, {}),
}


def case_of(name: str) -> tuple[Run, dict[str, Any]]:
    settings, overrides = CASES[name]
    run = tiny(**{"loss": "ce", "lr": 0.1, "batch_size": 100, **settings})
    return run, {"network": flat_net(), **overrides}


def streamed(photos: Path) -> list[dict[str, Any]]:
    """The history of a run whose images are decoded as they are read."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 2))
    run = Run(
        dataset=f"folder:{photos}", loss="ce", lr=0.01, momentum=0.9, optimizer="sgd", epochs=3,
        batch_size=10, crop=1, flip=True, holdout=0.2, stream="yes", device="cpu",
    )  # fmt: skip
    return but_seconds(fit(run, network=network).history)


def stopped_run() -> Run:
    return tiny(loss="nce", lr=0.1, batch_size=100, epochs=EPOCHS, ema=0.9)


def cases(out: Path) -> dict[str, Any]:
    """Train every case, one with a folder twice, and one that rank 1 is given wrongly."""
    found: dict[str, Any] = {}
    rank = int(os.environ["RANK"])
    for name in CASES:
        run, overrides = case_of(name)
        result = fit(run, **overrides)
        assert result.network is not None
        found[name] = but_seconds(result.history), total(result.network)
    found["streamed"] = streamed(out.parent / "photos")
    run, overrides = case_of("plain")
    told: list[int] = []
    for _ in range(2):
        result = fit(
            run, network=flat_net(seed=rank), out=out, name="kept",
            on_epoch=lambda progress: told.append(progress.epoch),
        )  # fmt: skip
        found.setdefault("kept", []).append([str(result.folder), result.network is None])
    found["told"] = told
    normed = fit(run, network=conv_net()).network
    assert normed is not None
    found["batch norm"] = [b.tolist() for b in normed.buffers()]
    for what, given in (
        ("other labels", {"labels": torch.full((1437,), rank)}),
        ("other runs", {"run": tiny(seed=rank)}),
        (
            "an error of all but rank 0",
            {"labels": torch.zeros(1437 - min(rank, 1), dtype=torch.int64)},
        ),
    ):
        try:
            fit(**{"run": run, **given})
        except noiseproof.UsageError as error:
            found[what] = str(error)
    return found


def total(network: nn.Module) -> list[float]:
    """Of each tensor the sum, in full: equal where the tensors are."""
    return [tensor.double().sum().item() for tensor in network.state_dict().values()]


def killed(out: Path) -> None:
    """Rank 0 kills itself when the second epoch is on the disk."""
    fit(stopped_run(), network=flat_net(), out=out, name="stopped", on_epoch=kill_after(2, out))


def kill_after(epoch: int, out: Path) -> Any:
    def on_epoch(progress: Progress) -> None:
        if progress.epoch == epoch:
            wait_for_epoch(epoch, out / "stopped")
            os.kill(os.getpid(), signal.SIGKILL)

    return on_epoch


def wait_for_epoch(epoch: int, folder: Path) -> None:
    """Until an epoch is on the disk."""
    history = folder / "history.csv"
    while not history.exists() or len(history.read_text().splitlines()) <= epoch:
        time.sleep(0.01)


def restarted(out: Path) -> list[int]:
    """The same, and torchrun starts it again."""
    told: list[int] = []
    again = os.environ["TORCHELASTIC_RESTART_COUNT"] != "0"
    on_epoch = (lambda p: told.append(p.epoch)) if again else kill_after(2, out)
    fit(stopped_run(), network=flat_net(), out=out, name="stopped", on_epoch=on_epoch)
    return told


def failing(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """A loss that fails on one rank."""
    if os.environ["RANK"] == "1":
        raise ArithmeticError("rank 1 is unwell")
    return nn.functional.cross_entropy(logits, labels)


class OneRank(Ranks):
    """A rank that sends itself what several would send each other, as NCCL takes one a GPU."""

    alone = False


def to_itself(out: Path) -> list[Any]:
    """The histories of a run in one process, and of one that goes through torch's collectives."""
    on_gpu = torch.cuda.is_available()
    run = Run(
        model="cnn4", loss="nce+rce", precision="fp32", epochs=2, batch_size=24, crop=1,
        device="cuda" if on_gpu else "cpu",
    )  # fmt: skip
    with torch.backends.cudnn.flags(deterministic=True, benchmark=False):
        histories = [fit(run, graph=False).history]
        dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo")
        backend = dist.get_backend_config()
        ranks = OneRank(0, 1, dist.new_group(backend=backend), dist.new_group(backend="gloo"))
        _fit.join = lambda: ranks
        histories.append(fit(run, out=out).history)
    dist.destroy_process_group()
    return [backend, *map(but_seconds, histories)]


TASKS = {"cases": cases, "killed": killed, "restarted": restarted, "to itself": to_itself}

if __name__ == "__main__":
    task, folder = sys.argv[1], Path(sys.argv[2])
    answer = TASKS[task](folder / "runs")
    (folder / f"answer-{os.environ['RANK']}.json").write_text(json.dumps(answer))
