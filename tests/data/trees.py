"""Small trees of images in the layouts that WebVision, ILSVRC12 and Clothing1M are published in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

SYNSETS = 50


def write_image(path: Path, number: int, *, size: tuple[int, int] = (12, 10), mode: str = "RGB"):
    """A JPEG (or PNG, by its name) of its own for each number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(number).integers(0, 256, (size[1], size[0], 3), np.uint8)
    image = Image.fromarray(pixels.astype(np.uint16)[:, :, 0] if mode == "I;16" else pixels)
    image.save(path)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def write_folder(root: Path, classes: Sequence[str] = ("cat", "dog"), each: int = 9) -> Path:
    """One folder a class, images of several sizes."""
    for i, name in enumerate(classes):
        for k in range(each):
            write_image(root / name / f"{k}.png", 100 * i + k, size=(14 + k % 3, 12 + k % 2))
    return root


def write_webvision(root: Path, each: int = 2, labels: int = SYNSETS, *, flickr: bool = False):
    """Lists, training images and validation images of WebVision; labels above are in it too."""
    base = root / "webvision"
    sources = ("google", "flickr") if flickr else ("google",)
    for source in sources:
        lines = []
        for label in range(labels + 2):
            for k in range(each):
                name = f"{source}/q{label:04d}/{k}.jpg"
                if label < labels:
                    write_image(base / name, 10 * label + k)
                lines.append(f"{name} {label}")
        write_lines(base / f"info/train_filelist_{source}.txt", lines)
    write_image(base / "google/q0000/unlisted.jpg", 1)
    lines = [f"val{i:06d}.jpg {i}" for i in range(labels)]
    for i in range(labels):
        write_image(base / "val_images_256" / f"val{i:06d}.jpg", 5000 + i)
    write_lines(base / "info/val_filelist.txt", lines)
    return base


def write_imagenet(root: Path, synsets: int = SYNSETS + 1) -> Path:
    """ILSVRC12's validation images, one folder a synset."""
    folder = root / "imagenet/val"
    for i in range(synsets):
        write_image(folder / f"n{i:08d}" / f"ILSVRC2012_val_{i:08d}.JPEG", 9000 + i)
    return folder


def write_clothing(root: Path, each: int = 2) -> Path:
    base = root / "clothing1m"
    for at, (name, count) in enumerate(
        (("noisy_train", each), ("clean_val", 1), ("clean_test", 1))
    ):
        lines = []
        for label in range(14):
            for k in range(count):
                file = f"images/{at}/{label}/{k}.jpg"
                write_image(base / file, 1000 * at + 10 * label + k)
                lines.append(f"{file} {label}")
        write_lines(base / f"annotations/{name}.txt", lines)
    return base


def write_lines(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
