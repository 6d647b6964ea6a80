"""What the tests of the trainer train: small runs, small networks, a small data set."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from noiseproof import data
from noiseproof.train import Progress, Run

STEPS = 6  # of an epoch of digits in batches of 256
COLUMNS = [  # what the issue of the trainer asks of the history
    "epoch", "train_loss", "train_accuracy", "train_accuracy_clean", "wrong_accuracy", "memorised",
    "test_accuracy", "calibration_error", "unpredicted_classes", "gradient_norm", "lr", "seconds",
]  # fmt: skip


def tiny(**settings: Any) -> Run:
    """Two epochs of digits in a fifth of a second."""
    return Run(**{"epochs": 2, "batch_size": 256, "device": "cpu", **settings})


def conv_net(seed: int = 0) -> nn.Module:
    """Convolution, batch norm and a linear layer for digits."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10)
    )


def flat_net(*, dropout: float = 0.0, seed: int = 0) -> nn.Module:
    """A network without batch norm for digits."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Dropout(dropout), nn.Linear(32, 10)
    )


class TiedNet(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 10)
        self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.second(self.first(x.flatten(1)).relu()).relu()
        return self.last(hidden)  # type: ignore[no-any-return]


def own_data(n: int = 60, size: int = 6) -> data.Dataset:
    """Colour images of three classes, each with one bright channel."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(n) % 3
    images = torch.randint(0, 100, (n, 3, size, size), generator=generator)
    images[torch.arange(n), labels] += 100
    images = images.to(torch.uint8)
    half = n // 2
    return data.from_arrays(images[:half], labels[:half], images[half:], labels[half:])


def but_seconds(history: list[dict[str, float]]) -> list[dict[str, float | str]]:
    """A history without what differs from machine to machine; NaN as a text equals itself."""
    return [
        {k: "nan" if math.isnan(v) else v for k, v in row.items() if k != "seconds"}
        for row in history
    ]


def weights(network: nn.Module) -> list[Tensor]:
    return [t.clone() for t in network.state_dict().values()]


def same(ones: list[Tensor], others: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(ones, others, strict=True))


class StopError(Exception):
    """What ends a run from outside."""


def stop_after(epoch: int) -> Callable[[Progress], None]:
    def on_epoch(progress: Progress) -> None:
        if progress.epoch == epoch:
            raise StopError

    return on_epoch


def run_folders(out: Path) -> list[Path]:
    """The folders of runs, without the locks beside them."""
    return [path for path in out.iterdir() if path.name != ".locks"]
