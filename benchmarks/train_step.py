"""Training steps on a GPU: alone, packed, against an ordinary loop and against the floors.

    python benchmarks/train_step.py [--networks cnn4 cnn8 resnet34] [--save]

For each network at batch 128, in one run on the same GPU:

- the ordinary loop, as a user writes it: a DataLoader with torchvision's transforms in eight
  workers, float32, torch.optim.SGD, clip_grad_norm_, NCE + RCE;
- ours alone, and ours packed, several runs with different losses as branches of one graph; beside
  the steps, whole epochs: drawing, augmentation, every step, and the test on 10,000 images;
- two floors: the floating-point operations of a step over the rate of a large bf16 matrix product,
  and the bytes that it must move over the rate of a large copy, both measured here.

``--save`` writes benchmarks/train_step.csv.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Iterator
from typing import Any

import torch
from tables import save
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

import noiseproof
from noiseproof import data, models
from noiseproof.train import Run
from noiseproof.train._pack import GraphPack, Pack
from noiseproof.train._setup import Setup

BATCH = 128
LOSSES = ("ce", "gce", "nce+mae", "nce+rce", "nfl+mae", "nfl+rce", "sce", "fl")
# network: data set, channels, size, classes, images, augmentation, how many are packed
CASES: dict[str, tuple[str, int, int, int, int, bool, int]] = {
    "cnn4": ("mnist", 1, 28, 10, 60_000, False, 16),
    "cnn8": ("cifar10", 3, 32, 10, 50_000, True, 8),
    "resnet34": ("cifar100", 3, 32, 100, 50_000, True, 4),
}
GOALS = {"cnn8": "0.35 s an epoch alone, 0.20 packed", "resnet34": "1.0 s an epoch packed"}


def dataset(name: str) -> data.Dataset:
    known, channels, size, classes, n, _, _ = CASES[name]
    images = torch.randint(256, (n, channels, size, size), dtype=torch.uint8)
    labels = torch.randint(classes, (n,))
    return data.from_arrays(
        images, labels, images[:10_000], labels[:10_000], classes=[str(k) for k in range(classes)],
        mean=(0.5,) * channels, std=(0.25,) * channels, name=known,
    )  # fmt: skip


def ours(name: str, content: data.Dataset, width: int, steps: int) -> tuple[float, float]:
    """Milliseconds a step and run, and seconds a whole epoch and run."""
    setup = Setup()
    runs = [
        Run(dataset=content.name, loss=LOSSES[(3 + i) % len(LOSSES)], model=name, device="cuda")
        for i in range(width)
    ]
    pack: Pack = GraphPack(
        [setup.trainer(run.resolve(on_gpu=True), data=content) for run in runs], compiled=False
    )
    steps = min(steps, pack.chunk // BATCH)
    times = []
    with pack.backend_flags():
        for t in pack.trainers:
            t.begin_epoch(0)
            t.network.train()
        for _ in range(6):
            for t in pack.trainers:
                t.fill_chunk(0)
                t._step.zero_()
            start, end = (_event() for _ in range(2))
            start.record()
            for _ in range(steps):
                pack.step(BATCH)
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end) / steps / width)
    pack.train_epoch(0)  # what steps alone did not capture: the short last batch and the test
    epochs = []
    for epoch in range(1, 4):
        began = time.perf_counter()
        pack.train_epoch(epoch)
        epochs.append((time.perf_counter() - began) / width)
    return float(statistics.median(times[1:])), statistics.median(epochs)


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def ordinary(name: str, content: data.Dataset, workers: int, steps: int) -> float:
    """Milliseconds a step of a loop that a user would write."""
    from torchvision import transforms

    _, channels, size, classes, _, augmented, _ = CASES[name]
    moves = [transforms.RandomCrop(size, padding=4), transforms.RandomHorizontalFlip()]
    if name == "resnet34":
        moves.append(transforms.RandomRotation(20))
    transform = transforms.Compose(
        [transforms.ToPILImage(), *(moves if augmented else []), transforms.ToTensor(),
         transforms.Normalize((0.5,) * channels, (0.25,) * channels)]
    )  # fmt: skip

    class Images(torch.utils.data.Dataset[tuple[Tensor, int]]):
        def __len__(self) -> int:
            return len(content.train.images)

        def __getitem__(self, i: int) -> tuple[Tensor, int]:
            return transform(content.train.images[i]), int(content.train.labels[i])

    loader = torch.utils.data.DataLoader(
        Images(), BATCH, shuffle=True, num_workers=workers, pin_memory=True
    )
    network = models.build(name, classes, channels).cuda().train()
    optimizer = torch.optim.SGD(network.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
    loss = noiseproof.parse("nce + rce")
    batches: Iterator[Any] = iter(loader)
    times: list[float] = []
    for i in range(steps + 40):
        images, labels = next(batches)
        images = images.cuda(non_blocking=True)
        labels = labels.cuda(non_blocking=True)
        optimizer.zero_grad()
        torch.autograd.backward(loss(network(images), labels))
        nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        if i == 39:  # workers and libraries have warmed up
            torch.cuda.synchronize()
            began = time.perf_counter()
    torch.cuda.synchronize()
    times.append((time.perf_counter() - began) / steps * 1000)
    return statistics.median(times)


def ceilings() -> tuple[float, float]:
    """Operations a second of a large bf16 product, and bytes a second of a large copy."""
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    big = torch.randn(1 << 30, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(big)
    from triton.testing import do_bench

    product = do_bench(lambda: a @ b, return_mode="median")
    copy = do_bench(lambda: out.copy_(big), return_mode="median")
    return 2 * 8192**3 / product * 1000, 2 * big.numel() * 2 / copy * 1000


def floors(name: str, rate: float, bandwidth: float) -> tuple[float, float]:
    """Milliseconds that a step takes at least: for its arithmetic, and for its memory traffic.

    Traffic: outputs of layers in 16 bits are written and read in the forward pass, read again in
    the backward pass, and their gradients written and read; a weight, its momentum, its 16-bit
    copy and its gradient are read and written once.
    """
    _, channels, size, classes, _, _, _ = CASES[name]
    network = models.build(name, classes, channels).train()
    elements = 0

    def count(module: nn.Module, inputs: Any, output: Tensor) -> None:
        nonlocal elements
        elements += output.numel()

    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear | nn.BatchNorm2d):
            module.register_forward_hook(count)
    with FlopCounterMode(display=False) as counter:
        torch.autograd.backward(network(torch.randn(2, channels, size, size)).sum())
    operations = counter.get_total_flops() / 2 * BATCH
    weights = sum(p.numel() for p in network.parameters())
    traffic = 5 * 2 * elements / 2 * BATCH + 22 * weights
    return operations / rate * 1000, traffic / bandwidth * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--networks", nargs="*", default=list(CASES))
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    machine = torch.cuda.get_device_name()
    rate, bandwidth = ceilings()
    print(f"{machine}: {rate / 1e12:.0f} TFLOP/s in bf16, {bandwidth / 1e12:.2f} TB/s copied")
    rows = []
    for name in given.networks:
        content, width, n = dataset(name), CASES[name][6], CASES[name][4]
        arithmetic, memory = floors(name, rate, bandwidth)
        loop = ordinary(name, content, given.workers, given.steps)
        alone, epoch_alone = ours(name, content, 1, given.steps)
        packed, epoch_packed = ours(name, content, width, given.steps)
        steps = -(-n // BATCH)
        for kind, ms, epoch in (
            ("ordinary loop", loop, None), ("alone", alone, epoch_alone),
            (f"packed, {width} runs", packed, epoch_packed),
            ("floor, arithmetic", arithmetic, None), ("floor, memory", memory, None),
        ):  # fmt: skip
            rows.append(
                {
                    "network": name, "what": kind, "ms_per_step": f"{ms:.3f}",
                    "images_per_second": round(BATCH / ms * 1000),
                    "seconds_per_epoch": f"{ms * steps / 1000:.3f}",
                    "with_test": "" if epoch is None else f"{epoch:.3f}",
                    "times_ordinary": f"{loop / ms:.1f}", "gpu": machine,
                    "torch": torch.__version__, "python": platform.python_version(),
                }
            )  # fmt: skip
            print(
                f"{name:9} {kind:20} {ms:8.3f} ms a step {BATCH / ms:9.1f} thousand images/s "
                f"{ms * steps / 1000:8.3f} s an epoch {loop / ms:6.1f} times the ordinary loop"
                + ("" if epoch is None else f"; a whole epoch with its test {epoch:.3f} s"),
                flush=True,
            )
        if name in GOALS:
            print(f"{name:9} goal: {GOALS[name]}")
    if given.save:
        save(__file__, rows)


if __name__ == "__main__":
    main()
