"""Small files in the layouts that data sets are published in."""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import struct
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from noiseproof import catalogue

SIZES = {"mnist": (20, 10), "fashion-mnist": (20, 10), "cifar10": (50, 10), "cifar100": (30, 10)}
HUMAN_SIZE = 40


def arrays(name: str) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Images [N, C, H, W] and labels of both splits, the same at every call."""
    source = catalogue.DATASETS[name]
    draw = np.random.RandomState(len(name))
    train, test = (
        (
            draw.randint(0, 256, (count, *source.shape)).astype(np.uint8),
            draw.randint(0, len(source.classes), count),
        )
        for count in SIZES[name]
    )
    return train, test


def columns(name: str) -> dict[str, np.ndarray]:
    source = catalogue.HUMAN_FILES[name]
    draw = np.random.RandomState(len(name))
    return {c: draw.randint(0, source.num_classes, HUMAN_SIZE) for c in source.columns}


def digest(*parts: Any) -> str:
    return hashlib.sha256(b"".join(np.asarray(p, np.uint8).tobytes() for p in parts)).hexdigest()


def checksum(path: Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def source_of(name: str, **published: Any) -> Any:
    """The source as the table has it, but for the sizes and digests of the small files."""
    if name in catalogue.HUMAN_FILES:
        table = catalogue.HUMAN_FILES[name]
        digests = {next(iter(table.files.digests)): digest(*columns(name).values())}
        return replace(
            table, files=replace(table.files, digests=digests, **published), size=HUMAN_SIZE
        )
    digests = {file: digest(*content) for file, content in contents(name).items()}
    source = catalogue.DATASETS[name]
    return replace(
        source, files=replace(source.files, digests=digests, **published), sizes=SIZES[name]
    )


def contents(name: str) -> dict[str, tuple[np.ndarray, ...]]:
    """By file, the arrays in it."""
    (x, y), (x_test, y_test) = arrays(name)
    if name == "cifar10":
        parts = zip(np.split(x, 5), np.split(y, 5), strict=True)
        found = {f"data_batch_{i}": part for i, part in enumerate(parts, 1)}
        return {**found, "test_batch": (x_test, y_test)}
    if name == "cifar100":
        return {"train": (x, y), "test": (x_test, y_test)}
    return {
        "train-images-idx3-ubyte": (x,),
        "train-labels-idx1-ubyte": (y,),
        "t10k-images-idx3-ubyte": (x_test,),
        "t10k-labels-idx1-ubyte": (y_test,),
    }


def idx(array: np.ndarray) -> bytes:
    array = array.squeeze(1) if array.ndim == 4 else array
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(np.uint8).tobytes()


def write_idx(name: str, folder: Path) -> None:
    for file, (array,) in contents(name).items():
        (folder / file).write_bytes(idx(array))


def write_idx_gz(name: str, folder: Path) -> None:
    for file, (array,) in contents(name).items():
        (folder / f"{file}.gz").write_bytes(gzip.compress(idx(array), mtime=0))


def write_cifar(name: str, folder: Path, dump: Callable[[dict[str, Any]], bytes]) -> None:
    for file, (images, labels) in contents(name).items():
        content: dict[str, Any] = {"data": images.reshape(len(images), -1)}
        content["fine_labels" if name == "cifar100" else "labels"] = labels.tolist()
        content["filenames"] = [f"{i}.png" for i in range(len(labels))]
        (folder / file).write_bytes(dump(content))


def python3(protocol: int) -> Callable[[dict[str, Any]], bytes]:
    def dump(content: dict[str, Any]) -> bytes:
        return pickle.dumps({k.encode(): v for k, v in content.items()}, protocol)

    return dump


def python2(content: dict[str, Any]) -> bytes:
    """What Python 2 writes at protocol 2, as the authors of CIFAR published it, by hand."""

    def text(value: str) -> bytes:
        return b"U" + bytes([len(value)]) + value.encode()

    def number(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    def array(value: np.ndarray) -> bytes:
        start = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + number(0) + b"\x85"
        kind = b"cnumpy\ndtype\n(" + text("u1") + number(0) + number(1) + b"tR"
        state = number(3) + text("|") + b"NNN" + number(-1) + number(-1) + number(0)
        shape = b"(" + b"".join(number(n) for n in value.shape) + b"t"
        raw = value.tobytes()
        data = b"\x89T" + struct.pack("<i", len(raw)) + raw
        return (
            start + text("b") + b"tR(" + number(1) + shape + kind + b"(" + state + b"tb" + data
        ) + b"tb"

    def items(values: list[Any]) -> bytes:
        return b"](" + b"".join(text(v) if isinstance(v, str) else number(v) for v in values) + b"e"

    pairs = b"".join(
        text(k) + (array(v) if isinstance(v, np.ndarray) else items(v)) for k, v in content.items()
    )
    return b"\x80\x02}(" + pairs + b"u."


def write_human(name: str, folder: Path) -> None:
    (file,) = catalogue.HUMAN_FILES[name].files.digests
    torch.save(columns(name), folder / file)


def write_archive(name: str, folder: Path) -> Path:
    """The published archive of a CIFAR set, with a file in it that nobody asked for."""
    source = catalogue.DATASETS[name].files
    (archive,) = source.downloads
    path = folder / archive
    unpacked = folder / "unpacked"
    unpacked.mkdir(parents=True, exist_ok=True)
    write_cifar(name, unpacked, python2)
    with tarfile.open(path, "w:gz") as tar:
        for file in sorted(unpacked.iterdir()):
            tar.add(file, f"{source.folders[0]}/{file.name}")
        surprise = tarfile.TarInfo("../surprise")
        surprise.size = 3
        tar.addfile(surprise, io.BytesIO(b"boo"))
    return path


# By layout: the data set, the folder in a root, and what writes the files.
LAYOUTS: dict[str, tuple[str, str, Callable[[str, Path], None]]] = {
    "mnist gz": ("mnist", "MNIST/raw", write_idx_gz),
    "mnist plain": ("mnist", "MNIST/raw", write_idx),
    "mnist in the root": ("mnist", "", write_idx_gz),
    "fashion-mnist": ("fashion-mnist", "FashionMNIST/raw", write_idx_gz),
    "cifar10 python 2": (
        "cifar10",
        "cifar-10-batches-py",
        lambda name, folder: write_cifar(name, folder, python2),
    ),
    "cifar10 protocol 2": (
        "cifar10",
        "cifar-10-batches-py",
        lambda name, folder: write_cifar(name, folder, python3(2)),
    ),
    "cifar10 protocol 4": (
        "cifar10",
        "cifar-10-batches-py",
        lambda name, folder: write_cifar(name, folder, python3(4)),
    ),
    "cifar100 python 2": (
        "cifar100",
        "cifar-100-python",
        lambda name, folder: write_cifar(name, folder, python2),
    ),
    "cifar100 protocol 4 in the root": (
        "cifar100",
        "",
        lambda name, folder: write_cifar(name, folder, python3(4)),
    ),
    "cifar10n": ("cifar10n", "cifar-n", write_human),
    "cifar100n": ("cifar100n", "data", write_human),
}


def write(layout: str, root: Path) -> str:
    """Write the files of a layout, and give the name of the data set."""
    name, folder, writer = LAYOUTS[layout]
    (root / folder).mkdir(parents=True, exist_ok=True)
    writer(name, root / folder)
    return name
