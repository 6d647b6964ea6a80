"""JPEG files decoded to 256×256 a second: Pillow, torchvision, torchcodec; on CPU cores and a GPU.

    python benchmarks/decoders.py [--images 512] [--rounds 3] [--save]

Every decoder reads a file, decodes it, brings its shorter side to 256 and keeps the middle of the
longer one. The files are made here: noise whose spectrum falls like that of photographs, 500×376
(about the size of WebVision's images) and 1600×1200, at quality 90. ``noiseproof`` is what the
package does. Pillow's draft has libjpeg decode to a half, a quarter or an eighth of the size where
that is still large enough: the side that is asked for, or twice that (``x2``). What decodes on a
GPU is handed batches. Decoders that cannot be imported are left out.

Rates are medians over rounds in which all are measured in turn: of one thread, of a thread for each
core, and of a process for each. Differences are those to the pixels of ``pillow full``, of 255.
``--save`` adds the rows to benchmarks/decoders.csv.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import torch
from PIL import Image, ImageOps
from tables import save
from torch import Tensor

from noiseproof.data import read_image
from noiseproof.data._store import workers

SIDE = 256
SIZES = ((500, 376), (1600, 1200))
FALL = 1.3  # of the amplitude with the frequency, for files as large as those of photographs
BATCH = 64
GPU_THREADS = 4
Decoder = Callable[[list[str]], Any]


def make_files(folder: Path, size: tuple[int, int], count: int) -> list[str]:
    """Parts of one large picture with the spectrum of photographs."""
    width, height = size
    side = 2 * max(size)
    rng = np.random.default_rng(0)
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None])
    frequency[0, 0] = 1
    layers = []
    for _ in range(3):
        layer = np.fft.irfft2(np.fft.rfft2(rng.normal(size=(side, side))) / frequency**FALL)
        layers.append(layer / layer.std())
    grey, red, blue = layers  # most of what is in a photograph is in its brightness
    colours = np.stack([grey + 0.3 * red, grey, grey + 0.3 * blue], 2)
    picture = (128 + 50 * colours).clip(0, 255).astype(np.uint8)
    corners = rng.integers((side - height, side - width), size=(count, 2))

    def write(number: int) -> str:
        top, left = corners[number]
        file = str(folder / f"{width}-{number}.jpg")
        cut = Image.fromarray(picture[top : top + height, left : left + width])
        cut.save(file, quality=90)
        return file

    with concurrent.futures.ThreadPoolExecutor(workers()) as pool:
        return list(pool.map(write, range(count)))


def of_package(files: list[str]) -> list[Any]:
    return [read_image(file, (3, SIDE, SIDE)) for file in files]


def pillow(files: list[str], draft: int = 0) -> list[Any]:
    """With libjpeg's part of the reduction down to so many times the side; 0 for none."""
    found = []
    for file in files:
        with Image.open(file) as image:
            if draft:
                image.draft(None, (draft * SIDE, draft * SIDE))
            upright = ImageOps.exif_transpose(image).convert("RGB")
        middle = ImageOps.fit(upright, (SIDE, SIDE), Image.Resampling.BILINEAR)
        found.append(np.asarray(middle, np.uint8))
    return found


def pillow_torch(files: list[str]) -> list[Any]:
    """Decoded by Pillow, resized by torch."""
    found = []
    for file in files:
        with Image.open(file) as image:
            pixels = np.array(image.convert("RGB"), np.uint8)
        found.append(fitted(torch.from_numpy(pixels).permute(2, 0, 1)).numpy())
    return found


def encoded(files: list[str]) -> list[Tensor]:
    return [torch.frombuffer(bytearray(Path(f).read_bytes()), dtype=torch.uint8) for f in files]


def fitted(image: Tensor) -> Tensor:
    """The middle of an image [3, H, W] as [256, 256, 3]; bilinear over all pixels, as Pillow's."""
    side = min(image.shape[1:])
    top, left = ((length - side) // 2 for length in image.shape[1:])
    cut = image[None, :, top : top + side, left : left + side]
    if image.is_cuda:  # where bytes are not resized
        cut = cut.float()
    found = torch.nn.functional.interpolate(cut, (SIDE, SIDE), mode="bilinear", antialias=True)
    if image.is_cuda:
        found = found.round().clamp(0, 255).byte()
    return found[0].permute(1, 2, 0)


def decode_jpeg(module: str) -> Any:
    """Of torchvision or torchcodec, which name it and its arguments alike."""
    return importlib.import_module(module).decode_jpeg


def one_image(module: str, files: list[str]) -> list[Any]:
    decode = decode_jpeg(module)
    return [fitted(decode(content, mode="RGB")).numpy() for content in encoded(files)]


def one_batch(module: str, files: list[str]) -> list[Any]:
    return [fitted(i) for i in decode_jpeg(module)(encoded(files), mode="RGB", device="cuda")]


ON_CPU: dict[str, Decoder] = {
    "noiseproof": of_package,
    "pillow full": pillow,
    "pillow draft": partial(pillow, draft=1),
    "pillow draft x2": partial(pillow, draft=2),
    "pillow, torch resize": pillow_torch,
    "torchvision": partial(one_image, "torchvision.io"),
    "torchcodec": partial(one_image, "torchcodec.decoders"),
}
ON_GPU: dict[str, Decoder] = {
    "torchvision cuda": partial(one_batch, "torchvision.io"),
    "torchcodec cuda": partial(one_batch, "torchcodec.decoders"),
}


def parts(files: Sequence[str], size: int) -> Iterator[list[str]]:
    return (list(files[i : i + size]) for i in range(0, len(files), size))


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def one_by_one(work: Decoder, files: list[str]) -> None:
    for batch in parts(files, BATCH):
        work(batch)


def drop(work: Decoder, files: list[str]) -> None:
    """Decode and keep nothing, so that no pixels are sent between processes."""
    work(files)


def shared(pool: concurrent.futures.Executor, work: Decoder, files: list[str], size: int) -> float:
    """Images a second of work that a pool shares."""

    def run() -> None:
        for done in [pool.submit(drop, work, part) for part in parts(files, size)]:
            done.result()

    return len(files) / seconds(run)


def difference(work: Decoder, files: list[str]) -> tuple[float, int]:
    """The mean and the largest difference to the pixels that Pillow gives without draft."""
    found = np.stack([np.asarray(i.cpu() if isinstance(i, Tensor) else i) for i in work(files)])
    apart = np.abs(found.astype(np.int16) - np.stack(pillow(files)))
    return float(apart.mean()), int(apart.max())


def available(decoders: dict[str, Decoder], file: str) -> dict[str, Decoder]:
    """Those that decode a file here; of others the reason is printed."""
    found = {}
    for name, work in decoders.items():
        try:
            work([file])
        except Exception as error:
            print(f"  {name} is left out: {type(error).__name__} {str(error).splitlines()[:1]}")
        else:
            found[name] = work
    return found


def measure(
    files: list[str], rounds: int, processes: concurrent.futures.Executor
) -> list[dict[str, Any]]:
    """A row for each decoder."""
    few = files[: max(16, len(files) // 8)]
    on_cpu = available(ON_CPU, files[0])
    on_gpu = available(ON_GPU, files[0]) if torch.cuda.is_available() else {}
    rates: dict[tuple[str, str], list[float]] = {}

    def note(name: str, column: str, rate: float) -> None:
        rates.setdefault((name, column), []).append(rate)

    with concurrent.futures.ThreadPoolExecutor(workers()) as threads:
        for _ in range(rounds):
            for name, work in on_cpu.items():
                note(name, "one_thread", len(few) / seconds(partial(work, few)))
                note(name, "threads", shared(threads, work, files, 4))
                note(name, "processes", shared(processes, work, files, 4))
    with concurrent.futures.ThreadPoolExecutor(GPU_THREADS) as threads:
        for _ in range(rounds if on_gpu else 0):
            for name, work in on_gpu.items():
                note(name, "one_thread", len(files) / seconds(partial(one_by_one, work, files)))
                note(name, "threads", shared(threads, work, files, BATCH))
    rows = []
    for name, work in {**on_cpu, **on_gpu}.items():
        mean, largest = difference(work, few)
        row: dict[str, Any] = {"decoder": name}
        for column in ("one_thread", "threads", "processes"):
            found = rates.get((name, column))
            row[column] = round(statistics.median(found)) if found else ""
        row |= {"mean_difference": round(mean, 3), "largest_difference": largest}
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=512, help="small ones; fewer large ones")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)  # each worker is one
    rows = []
    with (
        tempfile.TemporaryDirectory() as folder,
        concurrent.futures.ProcessPoolExecutor(
            workers(), initializer=torch.set_num_threads, initargs=(1,)
        ) as processes,
    ):
        list(processes.map(abs, range(4 * workers())))  # forked before anything is on the GPU
        gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
        machine = f"{gpu} and {workers()} CPU cores" if gpu else f"{workers()} CPU cores"
        for width, height in SIZES:
            count = max(16, args.images * 500 * 376 // (width * height))
            files = make_files(Path(folder), (width, height), count)
            kilobytes = sum(os.path.getsize(f) for f in files) / len(files) / 1024
            print(f"{count} JPEG files of {width}x{height}, {kilobytes:.0f} KB each, {machine}")
            for row in measure(files, args.rounds, processes):
                print(f"  {row['decoder']:21} {row['one_thread']:7,} images/s in one thread, "
                      f"{row['threads']:7,} in threads, {row['processes'] or '-':>7} in processes; "
                      f"differs by {row['mean_difference']:.3f}, at most "
                      f"{row['largest_difference']}")  # fmt: skip
                rows.append({"machine": machine, "size": f"{width}x{height}"} | row)
    if args.save:
        versions = {"pillow": PIL.__version__, "torch": torch.__version__}
        save(__file__, [row | versions | {"python": platform.python_version()} for row in rows],
             beside="machine")  # fmt: skip


if __name__ == "__main__":
    main()
