"""What auto costs: an epoch of it beside one of nce+rce, which trains on all labels.

    python benchmarks/rule_cost.py [--device cuda] [--save]

Both train the same network on the same images, an epoch of each in turn, with its tests; the ratio
is the median over rounds of the ratio within a round. auto trains on nine tenths of the images and
tests on the rest, averages the weights after every step, and tests the average too. ``--save``
writes benchmarks/rule_cost.csv, where rows of other devices stay.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import platform
import statistics

import torch
from tables import save
from train_cpu import timed

from noiseproof import data
from noiseproof.runs import Run
from noiseproof.train._pack import GraphPack, Pack
from noiseproof.train._setup import Setup, device_of

CASES = {  # data set, channels, size, samples to train on and to test on, on a CPU and on a GPU
    "mlp": ("digits", 1, 8, (1437, 360), (1437, 360)),
    "cnn4": ("mnist", 1, 28, (2560, 427), (60_000, 10_000)),
    "cnn8": ("cifar10", 3, 32, (640, 128), (50_000, 10_000)),
    "resnet34": ("cifar100", 3, 32, (128, 26), (50_000, 10_000)),
}
LOSSES = ("nce+rce", "auto")


def measure(name: str, device: torch.device, rounds: int) -> tuple[float, float]:
    """Seconds of an epoch of nce+rce, and what one of auto takes in its units."""
    known, channels, size, on_cpu, on_gpu = CASES[name]
    fast = device.type == "cuda"
    n, tested = on_gpu if fast else on_cpu
    classes = 100 if known == "cifar100" else 10
    images = torch.randint(256, (n + tested, channels, size, size), dtype=torch.uint8)
    labels = torch.arange(n + tested) % classes
    content = data.from_arrays(
        images[:n], labels[:n], images[n:], labels[n:], name=known, mean=[0.5] * channels,
        std=[0.25] * channels, classes=[str(k) for k in range(classes)],
    )  # fmt: skip
    packs = []
    for loss in LOSSES:
        run = Run(dataset=known, model=name, loss=loss, rate=0.4, device=str(device))
        trainer = Setup().trainer(run.resolve(on_gpu=fast), data=content)
        packs.append(GraphPack([trainer], compiled=False) if fast else Pack([trainer]))
    seconds, ratios = [], []
    for _ in range(rounds + 1):  # the first warms up, and captures
        one, other = (timed(functools.partial(pack.train_epoch, 0)) for pack in packs)
        seconds.append(one)
        ratios.append(other / one)
    return statistics.median(seconds[1:]), statistics.median(ratios[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    device = device_of(given.device)
    fast = device.type == "cuda"
    where = torch.cuda.get_device_name(device) if fast else "CPU"
    rows = []
    with torch.cuda.device(device) if fast else contextlib.nullcontext():
        for name in CASES:
            seconds, ratio = measure(name, device, given.rounds)
            print(f"{name}: nce+rce {seconds:.3f} s an epoch, auto {ratio:.3f} times that")
            rows.append(
                {
                    "device": where, "network": name, "ratio": f"{ratio:.3f}",
                    "threads": torch.get_num_threads(), "torch": torch.__version__,
                    "python": platform.python_version(),
                }
            )  # fmt: skip
    if given.save:
        save(__file__, rows, beside="device")


if __name__ == "__main__":
    main()
