"""Read published files and check their content: keys, shapes, labels, digest."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..catalogue import DatasetEntry
from ._errors import DamagedFileError
from ._idx import read_idx
from ._pickles import printable, read_pickle

Arrays = tuple[NDArray[np.uint8], NDArray[np.uint8]]  # images [N, C, H, W], labels


def check_digest(path: Path, expected: str | None, *arrays: NDArray[Any]) -> None:
    """Check the sha256 of the arrays, as bytes, which finds damage in any file format."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array, dtype=np.uint8).data)
    if expected is not None and digest.hexdigest() != expected:
        raise DamagedFileError(
            path,
            "its content is not what was published",
            "delete it, or name another root, and load again",
        )


def check_keys(path: Path, content: dict[str, Any], keys: tuple[str, ...]) -> None:
    """Check that the file has all of these keys."""
    if missing := [key for key in keys if key not in content]:
        present = ", ".join(map(printable, list(content)[:5])) or "nothing"
        raise DamagedFileError(path, f"it has no {missing[0]!r}, only {present}")


def check_labels(path: Path, labels: Any, count: int, num_classes: int) -> NDArray[np.int64]:
    """The labels as int64, checked to be one for each image and within range."""
    array = _as_array(path, labels)
    if array.shape != (count,) or array.dtype.kind not in "iu":
        raise DamagedFileError(
            path, f"its labels are {array.dtype} {list(array.shape)}, not {count} integers"
        )
    if count and not 0 <= array.min() <= array.max() < num_classes:
        found = f"{array.min()} to {array.max()}"
        raise DamagedFileError(path, f"its labels go from {found}, not from 0 to {num_classes - 1}")
    return array.astype(np.int64)


def read_idx_files(files: dict[str, Path], source: DatasetEntry) -> tuple[Arrays, Arrays]:
    """Training and test images with their labels, from four idx files."""
    assert source.files is not None
    digests = source.files.digests
    splits = []
    for start, count in zip(("train", "t10k"), source.sizes, strict=True):
        name, label_name = f"{start}-images-idx3-ubyte", f"{start}-labels-idx1-ubyte"
        shape = (count, *source.shape[1:])
        images, labels = read_idx(files[name], shape), read_idx(files[label_name], (count,))
        _check_shape(files[name], images, shape)
        check_labels(files[label_name], labels, count, len(source.classes))
        check_digest(files[name], digests[name], images)
        check_digest(files[label_name], digests[label_name], labels)
        splits.append((images.reshape(count, *source.shape).copy(), labels.copy()))
    return splits[0], splits[1]


def read_cifar_files(files: dict[str, Path], source: DatasetEntry) -> tuple[Arrays, Arrays]:
    """Training and test images with their labels, from CIFAR's pickles."""
    splits = []
    tests = [name for name in files if name.startswith("test")]
    trains = [name for name in files if name not in tests]
    for parts, count in zip((trains, tests), source.sizes, strict=True):
        images = np.empty((count, *source.shape), np.uint8)
        labels = np.empty(count, np.uint8)
        size = count // len(parts)
        for i, name in enumerate(parts):
            rows = slice(i * size, (i + 1) * size)
            images[rows], labels[rows] = _read_cifar_file(files[name], size, source)
            assert source.files is not None
            check_digest(files[name], source.files.digests[name], images[rows], labels[rows])
        splits.append((images, labels))
    return splits[0], splits[1]


def _read_cifar_file(path: Path, count: int, source: DatasetEntry) -> Arrays:
    pixels = count * math.prod(source.shape)
    # Python 3 may write a byte as two; the rest is labels and the names of the images.
    content = read_pickle(path, 2 * pixels + 256 * count + (1 << 16), max_values=count)
    key = "fine_labels" if "fine_labels" in content else "labels"
    check_keys(path, content, ("data", key))
    images = _as_array(path, content["data"])
    _check_shape(path, images, (count, math.prod(source.shape)))
    labels = check_labels(path, content[key], count, len(source.classes))
    return images.reshape(count, *source.shape), labels.astype(np.uint8)


def _check_shape(path: Path, images: NDArray[Any], expected: tuple[int, ...]) -> None:
    if images.shape != expected or images.dtype != np.uint8:
        found = f"{images.dtype} {list(images.shape)}"
        raise DamagedFileError(path, f"its images are {found}, not uint8 {list(expected)}")


def _as_array(path: Path, values: Any) -> NDArray[Any]:
    if not isinstance(values, np.ndarray | list):
        raise DamagedFileError(path, f"it holds a {type(values).__name__} in place of an array")
    try:
        if isinstance(values, list) and not all(isinstance(v, int | float) for v in values):
            raise ValueError
        return np.asarray(values)
    except (ValueError, OverflowError):  # the latter of numbers that are too large
        raise DamagedFileError(path, "a list in it is not one of numbers") from None
