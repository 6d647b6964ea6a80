"""Which loss learns best where: test accuracies of eight losses on three small sets.

    python benchmarks/which_loss.py [--save] [--data digits]
    python benchmarks/which_loss.py [--save] --data vectors --vectors train.parquet test.parquet

The digits are trained as ``noiseproof train`` trains them. The table of features is 20 classes of
32 numbers each, drawn from a fixed seed; its network, of one hidden layer, is trained in a plain
loop, as a user's own would be. The vectors are NoisyAG-News with its true labels, as embed_texts.py
writes it; they are trained as ``noiseproof train`` trains features, and so with a linear network.
Accuracies are those after the last epoch on clean test labels, over
three seeds of the noise, the network and the order. ``--save`` writes benchmarks/which_loss.csv,
from which docs/which-loss.md is made. Each set takes some ten minutes on one core.
"""

from __future__ import annotations

import argparse
import functools
import platform
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
from tables import save
from torch import Tensor, nn

import noiseproof
from noiseproof import noise
from noiseproof.catalogue import AUTO
from noiseproof.train import Run, fit

LOSSES = (
    "ce", "gce", "mae", "nce", "nce + 0.1*rce", "1*nce + 1*rce", "nce + 100*rce",
    "10*nce + 0.1*rce",
)  # fmt: skip
NOISES = (
    ("none", 0.0), ("symmetric", 0.2), ("symmetric", 0.4), ("symmetric", 0.6), ("asymmetric", 0.4),
)  # fmt: skip
SEEDS = (0, 1, 2)
CLASSES, FEATURES, TRAIN, TEST = 20, 32, 4000, 2000
EPOCHS, BATCH, LR = 40, 64, 0.05


def digits(loss: str, kind: str, rate: float, seed: int) -> float:
    run = Run(dataset="digits", noise=kind, rate=rate, loss=loss, seed=seed, device="cpu")
    return fit(run).accuracy


def features() -> tuple[Tensor, Tensor]:
    """Normal clouds around two centers a class, which overlap a little."""
    drawn = torch.Generator().manual_seed(0)
    labels = torch.arange(TRAIN + TEST) % CLASSES
    centers = 0.9 * torch.randn(CLASSES, 2, FEATURES, generator=drawn)
    which = torch.randint(2, labels.shape, generator=drawn)
    return centers[labels, which] + torch.randn(len(labels), FEATURES, generator=drawn), labels


def table(loss: str, kind: str, rate: float, seed: int) -> float:
    x, y = features()
    clean = y[:TRAIN]
    given = clean
    if kind == "symmetric":
        given = noise.symmetric(clean, rate, num_classes=CLASSES, seed=seed).labels
    elif kind == "asymmetric":
        given = noise.pairflip(clean, rate, num_classes=CLASSES, seed=seed).labels
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(FEATURES, 128), nn.ReLU(), nn.Linear(128, CLASSES))
    criterion = noiseproof.parse(loss)
    optimizer = torch.optim.SGD(network.parameters(), LR, momentum=0.9, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for _ in range(EPOCHS):
        for part in torch.split(torch.randperm(TRAIN), BATCH):
            optimizer.zero_grad()
            torch.autograd.backward(criterion(network(x[part]), given[part]))
            nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
        schedule.step()
    with torch.no_grad():
        return float((network(x[TRAIN:]).argmax(1) == y[TRAIN:]).float().mean())


def vectors(
    files: list[Path], model: str | None, loss: str, kind: str, rate: float, seed: int
) -> float:
    """Texts as vectors, with the labels that are right and noise drawn from them."""
    train, test = files
    run = Run(
        dataset=f"parquet:{train}", test=str(test), label="gt", ignore=("label", "text", "group"),
        noise="pairflip" if kind == "asymmetric" else kind, rate=rate, loss=loss, seed=seed,
        device="cpu", model=model,
    )  # fmt: skip
    return fit(run).accuracy


SETS: dict[str, Callable[[str, str, float, int], float]] = {"digits": digits, "features": table}
VECTORS = {"vectors": None, "vectors, linear": "linear"}  # the network; None for that of features


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--data", choices=[*SETS, *VECTORS], help="only this set")
    parser.add_argument("--vectors", type=Path, nargs=2, metavar="FILE", help="of embed_texts.py")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    sets = dict(SETS)
    if given.vectors:
        sets |= {n: functools.partial(vectors, given.vectors, m) for n, m in VECTORS.items()}
    for name, measure in sets.items():
        if given.data not in (None, name):
            continue
        for kind, rate in NOISES:
            for loss in (*LOSSES, *([AUTO] if name in VECTORS else [])):
                found = [100 * measure(loss, kind, rate, seed) for seed in SEEDS]
                mean, deviation = statistics.mean(found), statistics.stdev(found)
                print(f"{name}, {kind} {rate:g}, {loss}: {mean:.1f} ± {deviation:.1f}", flush=True)
                rows.append(
                    {
                        "data": name, "noise": kind, "rate": f"{rate:g}", "loss": loss,
                        "accuracy_percent": f"{mean:.2f}", "deviation": f"{deviation:.2f}",
                        "seeds": len(SEEDS), "torch": torch.__version__,
                        "python": platform.python_version(),
                    }
                )  # fmt: skip
    if given.save:
        save(__file__, rows, beside="data")


if __name__ == "__main__":
    main()
