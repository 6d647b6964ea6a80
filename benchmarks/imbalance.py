"""What robust losses do to rare classes, and what class weights change.

    python benchmarks/imbalance.py [--save] [--data features]

*features*: eight classes that are 50 % to 2 % of the training set, 16 numbers each; a fraction of
the labels goes to any other class. *segmentation*: images with a bright disk on a noisy ground that
is 95 % of the pixels; a fraction of the pixels has the other label. *ratio 2* and so on: the same
features where the largest class is so many times the smallest, the others evenly between. Networks
are trained in a plain loop. Measured on clean test labels: the mean recall over classes, the least
recall, and the intersection over union of the disk. Weights are those of
``noiseproof.class_weights`` of the noisy labels. ``--save`` writes benchmarks/imbalance.csv, from
which docs/imbalance.md is made. It takes some minutes on one core.
"""

from __future__ import annotations

import argparse
import functools
import platform
import statistics
from collections.abc import Callable, Sequence

import torch
from tables import save
from torch import Tensor, nn

import noiseproof
from noiseproof import noise
from noiseproof.losses import Loss

LOSSES = ("ce", "nce + rce", "mae")
SEEDS = (0, 1, 2)
SHARES = (0.5, 0.2, 0.1, 0.07, 0.05, 0.04, 0.02, 0.02)
FEATURES, TRAIN, TEST_OF_EACH = 16, 4000, 100
IMAGES, SIZE = 200, 32
RATIOS = (2, 4, 8, 16)

Measured = dict[str, float]


def criterion(loss: str, labels: Tensor, weighted: bool) -> Loss:
    weight = noiseproof.class_weights(labels.flatten()) if weighted else None
    return noiseproof.parse(loss, weight=weight)


def train(network: nn.Module, loss: Loss, x: Tensor, y: Tensor, epochs: int, batch: int) -> None:
    optimizer = torch.optim.SGD(network.parameters(), 0.05, momentum=0.9, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        for part in torch.split(torch.randperm(len(x)), batch):
            optimizer.zero_grad()
            torch.autograd.backward(loss(network(x[part]), y[part]))
            nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
        schedule.step()


def recalls(predicted: Tensor, labels: Tensor, classes: int) -> list[float]:
    return [float((predicted[labels == k] == k).float().mean()) for k in range(classes)]


def features(
    loss: str, weighted: bool, rate: float, seed: int, shares: Sequence[float] = SHARES
) -> Measured:
    drawn, classes = torch.Generator().manual_seed(0), len(shares)
    counts = torch.tensor([round(TRAIN * share) for share in shares])
    clean = torch.arange(classes).repeat_interleave(counts)
    test = torch.arange(classes).repeat_interleave(TEST_OF_EACH)
    centers = 0.8 * torch.randn(classes, FEATURES, generator=drawn)
    x = centers[clean] + torch.randn(len(clean), FEATURES, generator=drawn)
    x_test = centers[test] + torch.randn(len(test), FEATURES, generator=drawn)
    y = noise.symmetric(clean, rate, num_classes=classes, seed=seed).labels
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, classes))
    train(network, criterion(loss, y, weighted), x, y, epochs=30, batch=64)
    with torch.no_grad():
        found = recalls(network(x_test).argmax(1), test, classes)
    return {"mean recall": statistics.mean(found), "least recall": min(found)}


def shares_of(ratio: float) -> list[float]:
    """Of as many classes, each a like factor smaller than the one before."""
    sizes = [ratio ** -(k / (len(SHARES) - 1)) for k in range(len(SHARES))]
    return [size / sum(sizes) for size in sizes]


def disks(drawn: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images [N, 1, H, W] and their masks [N, H, W]."""
    radius = 3 + 2 * torch.rand(IMAGES, 1, 1, generator=drawn)
    center = 6 + (SIZE - 12) * torch.rand(2, IMAGES, 1, 1, generator=drawn)
    at = torch.arange(SIZE).float()
    masks = (at.view(-1, 1) - center[0]) ** 2 + (at - center[1]) ** 2 <= radius**2
    images = masks + 0.8 * torch.randn(IMAGES, SIZE, SIZE, generator=drawn)
    return images.unsqueeze(1), masks.long()


def segmentation(loss: str, weighted: bool, rate: float, seed: int) -> Measured:
    drawn = torch.Generator().manual_seed(0)
    (x, clean), (x_test, test) = disks(drawn), disks(drawn)
    y = noise.symmetric(clean.flatten(), rate, num_classes=2, seed=seed).labels.view_as(clean)
    torch.manual_seed(seed)
    network = nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.Conv2d(16, 16, 5, padding=2), nn.ReLU(),
        nn.Conv2d(16, 2, 1),
    )  # fmt: skip
    train(network, criterion(loss, y, weighted), x, y, epochs=12, batch=8)
    with torch.no_grad():
        predicted = network(x_test).argmax(1)
    both, either = (predicted & test).sum(), (predicted | test).sum()
    found = recalls(predicted, test, 2)
    return {
        "mean recall": statistics.mean(found), "least recall": min(found),
        "intersection over union": float(both / either),
    }  # fmt: skip


RATES = (0.0, 0.2, 0.4)
SETS: dict[str, tuple[Callable[[str, bool, float, int], Measured], Sequence[str]]] = {
    "features": (features, LOSSES),
    "segmentation": (segmentation, LOSSES),
    **{
        f"ratio {ratio}": (functools.partial(features, shares=shares_of(ratio)), ["nce + rce"])
        for ratio in RATIOS
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--data", choices=list(SETS), nargs="*", default=list(SETS))
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name in given.data:
        measure, losses = SETS[name]
        for rate in RATES:
            for loss in losses:
                for weighted in (False, True):
                    seeds = [measure(loss, weighted, rate, seed) for seed in SEEDS]
                    for what in seeds[0]:
                        found = [100 * measured[what] for measured in seeds]
                        mean, deviation = statistics.mean(found), statistics.stdev(found)
                        print(
                            f"{name} {rate:g} {loss}{', weighted' * weighted}: "
                            f"{what} {mean:.1f} ± {deviation:.1f}", flush=True,
                        )  # fmt: skip
                        rows.append(
                            {
                                "data": name, "rate": f"{rate:g}", "loss": loss,
                                "weighted": "yes" if weighted else "no", "what": what,
                                "percent": f"{mean:.2f}", "deviation": f"{deviation:.2f}",
                                "seeds": len(SEEDS), "torch": torch.__version__,
                                "python": platform.python_version(),
                            }
                        )  # fmt: skip
    if given.save:
        save(__file__, rows, beside="data")


if __name__ == "__main__":
    main()
