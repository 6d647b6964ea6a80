"""Arrays of an npz file: which is what, and of what kind."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import UsageError
from . import Kind
from ._layout import layout_of

INPUTS = ("x", "images", "features", "inputs", "tokens", "input_ids", "data")
LABELS = ("y", "labels", "label", "targets")
TRAIN, TEST = ("train",), ("test", "val", "valid")


def read_inputs(path: Path, content: bytes) -> NDArray[Any]:
    """Of a file without labels, or beside them, the array of what is predicted."""
    arrays = read_arrays(path, content, single="x")
    name = next((name for name in INPUTS if name in arrays), None) or pick(arrays, INPUTS, TEST)
    if name is None and len(arrays) == 1:
        name = next(iter(arrays))
    if name is None:
        raise UsageError(f"{path} holds {', '.join(arrays)}; call what is predicted 'x'")
    if not arrays[name].ndim:
        raise UsageError(f"{path}: inputs are [samples, ...], and {name} is a single value")
    return arrays[name]


def read_arrays(path: Path, content: bytes, *, single: str = "") -> dict[str, NDArray[Any]]:
    """The arrays of a file by name; a file that is one array needs a name to call it by."""
    try:
        file = np.load(io.BytesIO(content), allow_pickle=False)
        if isinstance(file, np.ndarray) and single:
            return {single: file}
        if isinstance(file, np.ndarray):
            raise UsageError(f"{path} holds one array; an npz file with x and y is needed")
        with file:
            arrays = {name: file[name] for name in file.files}
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):
            raise ValueError("it holds more than arrays")
        return arrays
    except UsageError:
        raise
    except Exception as error:
        reason = "it holds Python objects" if "allow_pickle" in str(error) else str(error)
        if not content.startswith((b"PK", b"\x93NUMPY")):  # which NumPy takes for a pickle
            reason = "numpy.savez writes such"
        raise UsageError(f"{path} is no npz file that can be read: {reason}") from None


def pick(arrays: Iterable[str], names: Sequence[str], parts: Sequence[str]) -> str | None:
    """The array of a part: ``x_train``, ``train_images``, or for training just ``x``."""
    known = list(arrays)
    for name in names:
        for part in parts:
            for spelled in (f"{name}_{part}", f"{part}_{name}"):
                if spelled in known:
                    return spelled
    if "train" in parts:
        return next((name for name in names if name in known), None)
    return None


def flat_labels(path: Path, labels: NDArray[Any]) -> list[Any]:
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise UsageError(f"{path}: labels are one for each sample, not {list(labels.shape)}")
    return list(labels.tolist())


def array_inputs(path: Path, inputs: NDArray[Any]) -> tuple[Kind, NDArray[Any]]:
    if inputs.ndim < 2 or not inputs.size:
        raise UsageError(f"{path}: inputs are [samples, ...], not {list(inputs.shape)}")
    if inputs.dtype == np.uint8 and inputs.ndim in (3, 4):
        return "image", _channels_first(path, inputs)
    if inputs.dtype.kind in "iu" and inputs.ndim == 2:
        below = np.argwhere(inputs < 0)
        if len(below):
            raise UsageError(
                f"{path}, row {below[0][0]}: integers are token ids, which are 0 or more; save "
                "features as floating point"
            )
        return "tokens", inputs.astype(np.int64)
    if inputs.dtype.kind not in "fiub":
        raise UsageError(f"{path}: inputs are numbers, not {inputs.dtype}")
    with np.errstate(over="ignore"):  # what float32 cannot hold is found below
        features = inputs.astype(np.float32)
    bad = np.argwhere(~np.isfinite(features))
    if len(bad):
        raise UsageError(f"{path}, row {bad[0][0]}: the inputs hold a NaN or an infinity")
    return "features", features


def _channels_first(path: Path, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Images [N, C, H, W]."""
    if images.ndim == 3:
        return images[:, None]
    layout = layout_of(images.shape)
    if layout is None:
        raise UsageError(
            f"{path}: images are [N, C, H, W] or [N, H, W, C] of 1 or 3 channels, and these are "
            f"{list(images.shape)}, which could be both or neither; give them to data.from_arrays "
            "with its layout"
        )
    return images if layout == "NCHW" else np.moveaxis(images, 3, 1)
