"""Images a second of training on image files: end to end, of each stage alone, and which limits.

    python benchmarks/streaming.py [--device cuda] [--model resnet50-imagenet] [--save]

JPEG files of 500×375 pixels, made here, are decoded to 256×256. On the device parts of them are
brought to 224×224, flipped and changed in colour, as table-webvision does it, and trained on.

What the workers can do is measured without a loader: the same files handed to as many threads, or
processes, which do nothing else. The loader's share of that is what a reader gets that knows its
order and does nothing between parts. Rates are medians over rounds in which all are measured in
turn, since other work on the machine comes and goes. ``--save`` adds the rows to
benchmarks/streaming.csv.
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
from PIL import Image, ImageOps
from tables import save

from noiseproof import train
from noiseproof.data import Augment, Loader, from_arrays
from noiseproof.data._decode import read_image
from noiseproof.data._stream import ImageFiles, ImageStore, workers

STORED, CUT = (3, 256, 256), 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
GOAL = 0.95  # of what the workers can decode
PAIRS = 5  # measurements of both in a round


def make_files(folder: Path, count: int) -> list[str]:
    """Photographs have large smooth parts and some detail; so have these. About 40 KB each."""
    files = []
    rng = np.random.default_rng(0)
    for i in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (24, 32, 3), np.uint8))
        smooth = np.asarray(coarse.resize((500, 375), Image.Resampling.BICUBIC), np.int16)
        pixels = smooth + rng.normal(0, 8, (375, 500, 1)).astype(np.int16)
        files.append(str(folder / f"{i}.jpg"))
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(files[-1], quality=85)
    return files


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
        rates = measure(make_files(Path(folder), args.images), args)
    found = {name: statistics.median(values) for name, values in rates.items()}
    shares = [s / w for s, w in zip(rates["stream"], rates["workers"], strict=True)]
    stages = ("read", "decode", "resize", "copy", "augment", "step")
    slowest = min(("workers", "augment", "step"), key=lambda name: found[name])
    limits = "decoding" if slowest == "workers" else slowest
    print(f"{args.images} JPEG files of 500x375, {workers()} workers, {args.device}, {args.model}")
    for name in stages:
        print(f"  {name:22} {found[name]:10,.0f} images/s alone")
    print(f"  {'workers (threads)':22} {found['workers']:10,.0f} images/s")
    print(f"  {'workers (processes)':22} {found['processes']:10,.0f} images/s")
    print(f"  {'streamed':22} {found['stream']:10,.0f} images/s: the loader keeps "
          f"{statistics.median(shares):.1%} (goal {GOAL:.0%})")  # fmt: skip
    print(f"  {'and augmented':22} {found['loader']:10,.0f} images/s")
    print(f"  {'from a cache file':22} {found['cache']:10,.0f} images/s")
    print(f"  {'end to end':22} {found['end to end']:10,.0f} images/s; {limits} limits")
    if not args.save:
        return
    gpu = args.device == "cuda"
    device = torch.cuda.get_device_name() if gpu else f"{os.cpu_count()} CPU cores"
    named = {name.replace(" ", "_"): round(value) for name, value in found.items()}
    row = {"device": device, "model": args.model, "batch": args.batch, "threads": workers()}
    row |= named | {"kept": round(statistics.median(shares), 3), "limits": limits}
    row |= {"torch": torch.__version__, "python": platform.python_version()}
    save(__file__, [row], beside="device")


def measure(files: list[str], args: Any) -> dict[str, list[float]]:
    """The rates of each round by name."""
    count, device = len(files), args.device
    contents = [Path(f).read_bytes() for f in files[:256]]
    opened = [Image.open(io.BytesIO(c)).convert("RGB") for c in contents]
    stored = torch.randint(0, 256, (args.batch, *STORED), dtype=torch.uint8)
    augment = Augment(flip=True, size=CUT, scale=0.08, jitter=0.4)
    order = torch.split(torch.randperm(count, generator=torch.Generator().manual_seed(0)),
                        args.batch)  # fmt: skip
    labels = torch.arange(count) % 50
    trainer = one_trainer(args)
    cached = ImageStore(files, STORED)
    cached.cached = np.zeros((count, *STORED), np.uint8)
    cached.checksums = np.full(count, _checksum(cached.cached[0]), np.uint32)

    def stream(store: ImageStore) -> None:
        images = ImageFiles(store)
        images.expect(order)
        for part in order:
            images[part]

    def loader() -> Loader:
        return Loader(
            ImageFiles(ImageStore(files, STORED)), labels, mean=MEAN, std=STD, augment=augment,
            batch_size=args.batch, device=device,
        )  # fmt: skip

    def augmented() -> None:
        moved = stored.to(device)
        params = augment.sample_params(args.batch, torch.Generator(device).manual_seed(0))
        for _ in range(8):
            augment(moved, params)

    def steps(number: int) -> None:
        for _ in range(number):
            trainer(None)

    def end_to_end() -> None:
        source = loader()
        batches = list(source.epoch(0)) if count <= args.batch else source.epoch(0)
        for number, batch in enumerate(batches):
            trainer(batch.images)
            if number + 1 == args.steps:
                return

    rates: dict[str, list[float]] = {}
    trainer(None)
    seen = min(count, args.steps * args.batch)
    with (
        concurrent.futures.ThreadPoolExecutor(workers()) as threads,
        concurrent.futures.ProcessPoolExecutor(workers()) as processes,
    ):
        of_workers(processes, decode, files)
        for _ in range(args.rounds):
            row = {
                "read": of_workers(threads, lambda f: Path(f).read_bytes(), files),
                "decode": of_workers(threads, _load, contents),
                "resize": of_workers(threads, _resize, opened),
                "copy": timed(lambda: [stored.clone().to(device) for _ in range(8)],
                              8 * args.batch, device),
                "augment": timed(augmented, 8 * args.batch, device),
                "step": timed(lambda: steps(args.steps), args.steps * args.batch, device),
                "processes": of_workers(processes, decode, files),
                "loader": timed(lambda: [None for _ in loader().epoch(0)], count, device),
                "cache": timed(lambda: stream(cached), count, "cpu"),
                "end to end": timed(end_to_end, seen, device),
            }  # fmt: skip
            for name, value in row.items():
                rates.setdefault(name, []).append(value)
            for _ in range(PAIRS):  # one after the other, so that both have the same company
                rates.setdefault("workers", []).append(of_workers(threads, decode, files))
                streamed = timed(lambda: stream(ImageStore(files, STORED)), count, "cpu")
                rates.setdefault("stream", []).append(streamed)
    return rates


def _checksum(image: Any) -> int:
    from noiseproof.data._stream import checksum

    return checksum(image)


def _load(content: bytes) -> None:
    with Image.open(io.BytesIO(content)) as image:
        image.convert("RGB")


def _resize(image: Image.Image) -> None:
    ImageOps.fit(image, STORED[:0:-1], Image.Resampling.BILINEAR)


def one_trainer(args: Any) -> Callable[[torch.Tensor | None], None]:
    """A step of the run that table-webvision trains, on a batch or on the same one again."""
    from noiseproof.train._pack import GraphPack, Pack
    from noiseproof.train._setup import Setup

    images = np.zeros((args.batch, *STORED), np.uint8)
    own = from_arrays(images, np.arange(args.batch) % 50, classes=[str(i) for i in range(50)],
                      mean=MEAN, std=STD)  # fmt: skip
    run = train.Run(
        model=args.model, batch_size=args.batch, crop_size=CUT, crop=0, flip=False, epochs=1000,
        lr=0.01, loss="nce+rce", device=args.device, holdout=0.0,
    )  # fmt: skip
    resolved = run.resolve(on_gpu=args.device == "cuda", overrides={"data": "own"})
    trainer = Setup().trainer(resolved, data=own)
    pack = GraphPack([trainer], compiled=False) if args.device == "cuda" else Pack([trainer])
    trainer.begin_epoch(0)
    trainer.train_mode()
    trainer.fill_chunk(0)

    def step(images: torch.Tensor | None) -> None:
        """The batch has been augmented by the loader; copying it stands for `fill_chunk`."""
        if images is not None:
            trainer._chunk[: len(images)].copy_(images)
        trainer._step.zero_()
        trainer._chunk_position.zero_()
        pack.step(args.batch)

    return step


if __name__ == "__main__":
    main()
