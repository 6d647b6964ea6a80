"""Images a second of training on image files: end to end, of each stage alone, and which limits.

    python benchmarks/streaming.py [--device cuda] [--model resnet50-imagenet] [--save]

JPEG files of 500×376 pixels, made here (decoders.py), are decoded to 256×256. On the device parts
of them are brought to 224×224, flipped and changed in colour, as table-webvision does it, and
trained on: end to end is an epoch of the trainer that ``noiseproof train --stream yes`` uses.

What the workers can do is measured without a loader: the same files handed to as many threads, or
processes, which do nothing else. The loader's share of that (of processes, where it uses them) is
what a reader gets that knows its order and does nothing between parts, from the first part on, and
with more to come after the last, as within an epoch. Rates are medians over rounds in which all are
measured in turn, since other work on the machine comes and goes. ``--save`` adds the
rows to benchmarks/streaming.csv.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import io
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from decoders import SIZES, make_files
from PIL import Image, ImageOps
from tables import save

from noiseproof import train
from noiseproof.data import Augment, Dataset, Loader, Split, read_image
from noiseproof.data._store import ImageStore, checksum, workers
from noiseproof.data._stream import ImageFiles
from noiseproof.train._pack import GraphPack, Pack
from noiseproof.train._setup import Setup

STORED, CUT = (3, 256, 256), 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
AUGMENT = Augment(flip=True, size=CUT, scale=0.08, jitter=0.4)
GOAL = 0.95  # of what the workers can decode
STEP_GOAL = 2500  # images a second of resnet50-imagenet on an H200, all but decoding
PAIRS = 5  # measurements of workers and loader in a round


def of_workers(pool: concurrent.futures.Executor, work: Callable[[Any], Any], items: Any) -> float:
    """Items a second of work that is shared out with nothing else to do."""
    start = time.perf_counter()
    for _ in pool.map(work, items, chunksize=4):
        pass
    return len(items) / (time.perf_counter() - start)


def timed(work: Callable[[], Any], images: int, device: str) -> float:
    start = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return images / (time.perf_counter() - start)


def decode(file: str) -> None:
    read_image(file, STORED)


def load(content: bytes) -> None:
    with Image.open(io.BytesIO(content)) as image:
        image.convert("RGB")


def resize(image: Image.Image) -> None:
    ImageOps.fit(image, STORED[:0:-1], Image.Resampling.BILINEAR)


def streamed(store: ImageStore, batch: int) -> float:
    """Images a second of a reader that knows its order."""
    order = torch.randperm(len(store.files), generator=torch.Generator().manual_seed(0))
    parts = torch.split(order, batch)
    images = ImageFiles(store)
    images.expect([*parts, *parts])
    images[parts[0]]
    start = time.perf_counter()
    for part in parts[1:]:
        images[part]
    seconds = time.perf_counter() - start
    images.expect([])
    time.sleep(0.1)  # for what workers are at to end
    return (len(order) - len(parts[0])) / seconds


def from_cache(files: list[str]) -> ImageStore:
    store = ImageStore(files, STORED)
    store.cached = np.zeros((len(files), *store.stored), np.uint8)
    store.checksums = np.full(len(files), checksum(store.cached[0]), np.uint32)
    return store


class Training:
    """What ``noiseproof train --stream yes`` does with such files."""

    def __init__(self, files: list[str], args: Any) -> None:
        inputs = ImageFiles(ImageStore(files, STORED))
        labels = torch.arange(len(files)) % 50
        none = Split(inputs.select(slice(0)), labels[:0])
        names = tuple(map(str, range(50)))
        data = Dataset("own", Split(inputs, labels), none, names, MEAN, STD)
        run = train.Run(
            model=args.model, batch_size=args.batch, crop_size=CUT, crop_scale=AUGMENT.scale,
            jitter=AUGMENT.jitter, crop=0, flip=True, epochs=1000, lr=0.01, loss="nce+rce",
            device=args.device, holdout=0.0,
        )  # fmt: skip
        resolved = run.resolve(on_gpu=args.device == "cuda", overrides={"data": "own"})
        self.trainer = Setup().trainer(resolved, data=data)
        self.pack = (
            GraphPack([self.trainer], compiled=False)
            if args.device == "cuda"
            else Pack([self.trainer])
        )
        self.number = 0
        self.batch = args.batch

    def epoch(self) -> None:
        self.pack.train_epoch(self.number)
        self.number += 1

    def steps(self, number: int) -> None:
        """The same batch again and again."""
        with self.pack.backend_flags():
            for _ in range(number):
                self.trainer._step.zero_()
                self.trainer._chunk_position.zero_()
                self.pack.step(self.batch)


def measure(files: list[str], args: Any) -> dict[str, list[float]]:
    """The rates of each round by name."""
    count, device = len(files), args.device
    contents = [Path(f).read_bytes() for f in files[:256]]
    opened = [Image.open(io.BytesIO(c)).convert("RGB") for c in contents]
    seen = args.batch * min(args.steps, count // args.batch)
    rates: dict[str, list[float]] = {}
    with (
        concurrent.futures.ThreadPoolExecutor(workers()) as threads,
        concurrent.futures.ProcessPoolExecutor(workers()) as processes,
    ):
        of_workers(processes, decode, files)  # forked before anything is on the GPU
        stored = torch.randint(0, 256, (args.batch, *STORED), dtype=torch.uint8)
        stored = stored.pin_memory() if device == "cuda" else stored
        moved = stored.to(device)
        training = Training(files[:seen], args)
        training.epoch()

        def augmented() -> None:
            params = AUGMENT.sample_params(args.batch, torch.Generator(device).manual_seed(0))
            for _ in range(8):
                AUGMENT(moved, params)

        def loaded() -> None:
            loader = Loader(
                ImageFiles(ImageStore(files[:seen], STORED)), torch.zeros(seen, dtype=torch.int64),
                mean=MEAN, std=STD, augment=AUGMENT, batch_size=args.batch, device=device,
            )  # fmt: skip
            for _ in loader.epoch(0):
                pass

        def copied() -> None:
            for _ in range(8):
                torch.empty_like(moved).copy_(stored, non_blocking=True)

        best = processes if ImageStore(files, STORED).apart else threads
        augmented()
        for number in range(args.rounds):
            row = {
                "read": of_workers(threads, lambda f: Path(f).read_bytes(), files),
                "decode": of_workers(threads, load, contents),
                "resize": of_workers(threads, resize, opened),
                "copy": timed(copied, 8 * args.batch, device),
                "augment": timed(augmented, 8 * args.batch, device),
                "step": timed(lambda: training.steps(args.steps), args.steps * args.batch, device),
                "threads": of_workers(threads, decode, files),
                "processes": of_workers(processes, decode, files),
                "loader": timed(loaded, seen, device),
                "cache": streamed(from_cache(files), args.batch),
                "end to end": timed(training.epoch, seen, device),
            }
            for name, value in row.items():
                rates.setdefault(name, []).append(value)
            for _ in range(PAIRS):  # one after the other, so that both have the same company
                rates.setdefault("workers", []).append(of_workers(best, decode, files))
                reader = streamed(ImageStore(files, STORED), args.batch)
                rates.setdefault("stream", []).append(reader)
            rounded = {name: round(values[-1]) for name, values in rates.items()}
            print(f"round {number + 1} of {args.rounds}: {rounded}", flush=True)
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--model", default="resnet50-imagenet")
    parser.add_argument("--images", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20, help="of the network, in each round")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rates = measure(make_files(Path(folder), SIZES[0], args.images), args)
    found = {name: statistics.median(values) for name, values in rates.items()}
    kept = statistics.median(s / w for s, w in zip(rates["stream"], rates["workers"], strict=True))
    stages = ("copy", "augment", "step", "workers")
    # What a device does one after the other takes the sum of the times.
    device_rate = 1 / sum(1 / found[name] for name in ("augment", "step"))
    slowest = min(stages, key=lambda name: found[name])
    limits = "decoding" if slowest == "workers" else slowest
    print(f"{args.images} JPEG files of 500x376, {workers()} workers, {args.device}, {args.model}, "
          f"batches of {args.batch}")  # fmt: skip
    for name in ("read", "decode", "resize", "copy", "augment", "step"):
        print(f"  {name:22} {found[name]:10,.0f} images/s alone")
    if args.device == "cuda" and args.model == "resnet50-imagenet":
        print(f"  {'':22} the goal of a step on an H200 is {STEP_GOAL:,} images/s")
    print(f"  {'augment and step':22} {device_rate:10,.0f} images/s, as one follows the other")
    print(f"  {'workers (threads)':22} {found['threads']:10,.0f} images/s")
    print(f"  {'workers (processes)':22} {found['processes']:10,.0f} images/s")
    print(f"  {'streamed':22} {found['stream']:10,.0f} images/s: the loader keeps "
          f"{kept:.1%} of its workers' {found['workers']:,.0f} (goal {GOAL:.0%})")  # fmt: skip
    print(f"  {'and augmented':22} {found['loader']:10,.0f} images/s")
    print(f"  {'from a cache file':22} {found['cache']:10,.0f} images/s")
    most = min(device_rate, found["workers"])
    print(f"  {'end to end':22} {found['end to end']:10,.0f} images/s, "
          f"{found['end to end'] / most:.1%} of what stages allow; {limits} limits")  # fmt: skip
    if not args.save:
        return
    gpu = args.device == "cuda"
    device = torch.cuda.get_device_name() if gpu else f"{os.cpu_count()} CPU cores"
    named = {name.replace(" ", "_"): round(value) for name, value in found.items()}
    row = {"device": device, "model": args.model, "batch": args.batch, "cores": workers()}
    row |= named | {"kept": round(kept, 3), "limits": limits}
    row |= {"torch": torch.__version__, "python": platform.python_version()}
    save(__file__, [row], beside="device")


if __name__ == "__main__":
    main()
