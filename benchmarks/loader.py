"""Augmented images a second: the device loader against torchvision's transforms in a DataLoader.

    python benchmarks/loader.py [--device cuda] [--workers 8] [--save]

32×32 images with random crop (padding 4) and flip, normalised, in batches of 128 and 2048. The peer
transforms one image at a time, as its users do, in worker processes on the same cores. Rates are
medians over epochs of one run. ``--save`` adds the rows to benchmarks/loader.csv.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from tables import save
from torch import Tensor

from noiseproof.data import Augment, Loader

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
GOAL = 10e6  # images a second on one H200


def rate(batches: Callable[[], Iterable[Any]], images: int, device: str, epochs: int) -> float:
    times = []
    for _ in range(epochs + 1):
        start = time.perf_counter()
        for _ in batches():
            pass
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return images / statistics.median(times[1:])


def peer(images: Tensor, labels: Tensor, batch: int, workers: int) -> Iterable[Any]:
    if not torch.cuda.is_available():  # a torch without CUDA lacks operators that the import wants
        library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
        for name in ("nms", "qnms"):
            schema = f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            library.define(schema)  # type: ignore[no-untyped-call]
    from torchvision import transforms

    transform = transforms.Compose(
        [
            transforms.ToPILImage(),
            transforms.RandomCrop(32, padding=4),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )

    class Images(torch.utils.data.Dataset[tuple[Tensor, int]]):
        def __len__(self) -> int:
            return len(images)

        def __getitem__(self, i: int) -> tuple[Tensor, int]:
            return transform(images[i]), int(labels[i])

    return torch.utils.data.DataLoader(
        Images(), batch, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--workers", type=int, default=min(8, os.cpu_count() or 1))
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    n, device = given.images, given.device
    images = torch.randint(256, (n, 3, 32, 32), dtype=torch.uint8)
    labels = torch.randint(10, (n,))
    name = torch.cuda.get_device_name() if device == "cuda" else f"{os.cpu_count()} CPU cores"
    few = n if device == "cuda" else n // 5  # the peer alone would take a minute on two cores
    loader = peer(images[:few], labels[:few], 128, given.workers)
    slow = rate(lambda: loader, few, "cpu", 2)
    rows = []
    for batch in (128, 2048):
        ours = Loader(
            images, labels, mean=MEAN, std=STD, batch_size=batch,
            augment=Augment(crop=4, flip=True), device=device,
        )  # fmt: skip
        fast = rate(lambda ours=ours: ours, n, device, 5)  # type: ignore[misc]
        rows.append(
            {
                "device": name, "batch": batch, "images_per_second": round(fast),
                "peer_images_per_second": round(slow), "peer_workers": given.workers,
                "ratio": round(fast / slow, 1), "torch": torch.__version__,
                "python": platform.python_version(),
            }
        )  # fmt: skip
        goal = f", goal {GOAL / 1e6:g} million" if device == "cuda" else ""
        print(
            f"{name}, batch {batch}: {fast / 1e6:.3f} million images a second, "
            f"{fast / slow:.0f} times torchvision with {given.workers} workers "
            f"({slow / 1e6:.4f} million){goal}"
        )
    if given.save:
        save(__file__, rows, beside="device")


if __name__ == "__main__":
    main()
