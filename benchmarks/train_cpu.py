"""What the trainer adds on a CPU to the same network in a loop written by hand.

    python benchmarks/train_cpu.py [--save]

Both train the same network on the same images with the same loss, optimizer and clipping, an epoch
of each in turn; the ratio is the median over rounds of the ratio within a round. The loop by hand
has its data normalised in advance, shuffles, and does nothing else: no augmentation, no history, no
test. The trainer's time is that of its steps, and apart from it that of a whole epoch.
``--save`` writes benchmarks/train_cpu.csv.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable

import torch
from tables import save
from torch import Tensor, nn

import noiseproof
from noiseproof import data, models
from noiseproof.train import Run
from noiseproof.train._pack import Pack
from noiseproof.train._setup import Setup

LOSS = "nce + mae"
CASES = {  # data set, channels, size, samples and those of a batch
    "mlp": ("digits", 1, 8, 1437, 32),
    "cnn4": ("mnist", 1, 28, 2560, 128),
    "cnn8": ("cifar10", 3, 32, 384, 128),
}


class ByHand:
    def __init__(self, network: nn.Module, images: Tensor, labels: Tensor, batch: int) -> None:
        self.network, self.batch = network.train(), batch
        self.images, self.labels = (images.float() / 255 - 0.5) / 0.25, labels
        self.loss = noiseproof.parse(LOSS)
        self.optimizer = torch.optim.SGD(
            network.parameters(), 0.01, momentum=0.9, weight_decay=1e-3
        )

    def epoch(self) -> None:
        for part in torch.split(torch.randperm(len(self.images)), self.batch):
            self.optimizer.zero_grad()
            torch.autograd.backward(self.loss(self.network(self.images[part]), self.labels[part]))
            nn.utils.clip_grad_norm_(self.network.parameters(), 5.0)
            self.optimizer.step()


def timed(function: Callable[[], object | None]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measure(name: str, rounds: int) -> tuple[float, float, float]:
    """Seconds an epoch by hand, and the ratios of the trainer's steps and of its whole epoch."""
    known, channels, size, n, batch = CASES[name]
    images = torch.randint(256, (n, channels, size, size), dtype=torch.uint8)
    labels = torch.randint(10, (n,))
    content = data.from_arrays(
        images, labels, images[: n // 6], labels[: n // 6], name=known, mean=[0.5] * channels,
        std=[0.25] * channels, classes=[str(k) for k in range(10)],
    )  # fmt: skip
    run = Run(
        dataset=known, model=name, loss=LOSS, lr=0.01, weight_decay=1e-3, batch_size=batch,
        noise="none", device="cpu", crop=0, flip=False, precision="fp32",
    )  # fmt: skip
    pack = Pack([Setup().trainer(run.resolve(), data=content)])
    by_hand = ByHand(models.build(name, 10, channels, image_size=size), images, labels, batch)
    trainer = pack.trainers[0]

    def steps() -> None:
        trainer.begin_epoch(0)
        trainer.network.train()
        for start in range(0, n, trainer.chunk):
            trainer.fill_chunk(start)
            whole, rest = divmod(min(trainer.chunk, n - start), batch)
            for _ in range(whole):
                trainer.step(batch)
            if rest:
                trainer.step(rest)

    hand, of_steps, of_epoch = [], [], []
    for _ in range(rounds + 1):  # the first warms up
        # Before and after, so that a slow moment of the machine falls on both.
        before = timed(by_hand.epoch)
        ours, whole = timed(steps), timed(lambda: pack.train_epoch(0))
        base = (before + timed(by_hand.epoch)) / 2
        hand.append(base)
        of_steps.append(ours / base)
        of_epoch.append(whole / base)
    median = statistics.median
    return median(hand[1:]), median(of_steps[1:]), median(of_epoch[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    rows = []
    for name in CASES:
        seconds, of_steps, of_epoch = measure(name, given.rounds)
        print(
            f"{name}: by hand {seconds:.3f} s an epoch; the trainer's steps take {of_steps:.3f} "
            f"times that (goal 1.05), a whole epoch with its test {of_epoch:.3f} times"
        )
        rows.append(
            {
                "network": name, "steps_ratio": f"{of_steps:.3f}", "epoch_ratio": f"{of_epoch:.3f}",
                "cores": os.cpu_count(), "torch": torch.__version__,
                "python": platform.python_version(),
            }
        )  # fmt: skip
    if given.save:
        save(__file__, rows)


if __name__ == "__main__":
    main()
