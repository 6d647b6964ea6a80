"""A data set: images and labels as tensors, and what is needed to read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

_CHANNELS = (1, 3)  # grey and colour: how a layout is told


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Images, uint8 [N, C, H, W], and their labels, int64 [N]."""

    images: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        if self.images.dtype != torch.uint8 or self.images.ndim != 4:
            raise ValueError(
                f"images must be uint8 [N, C, H, W], not {_what(self.images)}; "
                "from_arrays takes other layouts"
            )
        if self.labels.dtype != torch.int64 or self.labels.shape != self.images.shape[:1]:
            raise ValueError(
                f"labels must be int64, one for each of {len(self.images)} images, "
                f"not {_what(self.labels)}"
            )

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        return f"Split({len(self)} images {_size(self.images)})"


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Images to train on and to test on, with what the labels are called.

    Attributes:
        name: what ``load`` calls it.
        train: the images to train on, and their labels.
        test: the images to test on, and their labels.
        classes: the name of each label.
        mean: of each channel over the images to train on, scaled to 0..1.
        std: the deviation of each channel, likewise.
    """

    name: str
    train: Split
    test: Split
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        channels = self.train.images.shape[1]
        if not len(self.train):
            raise ValueError(f"{self.name} has no images to train on")
        if len(self.test) and self.test.images.shape[1:] != self.train.images.shape[1:]:
            sizes = f"{_size(self.train.images)}, those to test on {_size(self.test.images)}"
            raise ValueError(f"images to train on are {sizes}; they must be of one size")
        if not len(self.mean) == len(self.std) == channels or not all(s > 0 for s in self.std):
            raise ValueError(
                f"mean and std must have a number for each of {channels} channels, std above 0; "
                f"they are {self.mean} and {self.std}"
            )
        for split in (self.train, self.test):
            _check_range(split.labels, self.num_classes)

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, {len(self.train)} + {len(self.test)} images "
            f"{_size(self.train.images)}, {self.num_classes} classes)"
        )


def from_arrays(
    train_images: Any,
    train_labels: Any,
    test_images: Any,
    test_labels: Any,
    *,
    classes: Sequence[str] | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    layout: str | None = None,
    name: str = "own",
) -> Dataset:
    """A data set of the user's own, from NumPy arrays or tensors, which are copied.

    Args:
        train_images: uint8, [N, H, W], [N, C, H, W] or [N, H, W, C].
        train_labels: integers [N], from 0.
        test_images: like those to train on.
        test_labels: like those to train on.
        classes: the name of each label; without it as many as the largest label asks for.
        mean: of each channel, images scaled to 0..1; computed without it.
        std: of each channel, likewise.
        layout: ``"NCHW"`` or ``"NHWC"``, where the shape leaves it open.
        name: what to call it.

    >>> import numpy as np
    >>> photos = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
    >>> own = from_arrays(photos, [0, 1], photos, [0, 1], classes=["cat", "dog"])
    >>> own
    Dataset('own', 2 + 2 images 3x4x4, 2 classes)
    >>> own.train.images.shape
    torch.Size([2, 3, 4, 4])
    """
    train = Split(_images(train_images, layout), _labels(train_labels))
    test = Split(_images(test_images, layout), _labels(test_labels))
    if classes is None:
        largest = max((int(s.labels.max()) for s in (train, test) if len(s)), default=-1)
        classes = [str(label) for label in range(largest + 1)]
    if len(train) and (mean is None or std is None):
        found = statistics(train.images)
        mean, std = mean or found[0], std or found[1]
    return Dataset(name, train, test, tuple(classes), tuple(mean or ()), tuple(std or ()))


def statistics(images: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of each channel of uint8 images, scaled to 0..1.

    They are exact, because the values are counted. A channel that is the same everywhere has a
    deviation of 1, so that one can divide by it.

    >>> statistics(torch.tensor([0, 255], dtype=torch.uint8).reshape(2, 1, 1, 1))
    ((0.5,), (0.5,))
    """
    channels = images.shape[1]
    counts = torch.zeros(channels, 256, dtype=torch.int64)
    for start in range(0, len(images), 4096):  # counting widens the bytes it counts
        block = images[start : start + 4096]
        for channel in range(channels):
            counts[channel] += torch.bincount(block[:, channel].flatten(), minlength=256).cpu()
    value = torch.arange(256, dtype=torch.float64) / 255
    share = counts.double() / counts.sum(1, keepdim=True)
    mean = share @ value
    deviation = (share * (value - mean[:, None]).square()).sum(1).sqrt()
    deviation[deviation == 0] = 1
    return tuple(mean.tolist()), tuple(deviation.tolist())


def _images(given: Any, layout: str | None) -> Tensor:
    images = _tensor(given, "images")
    if images.dtype != torch.uint8:
        raise ValueError(
            f"images must be uint8, 0 to 255, not {_what(images)}; numbers from 0 to 1 become it "
            "with (images * 255).round() and a cast"
        )
    if images.ndim == 3:
        return images.unsqueeze(1)
    if images.ndim != 4:
        raise ValueError(
            f"images must be [N, H, W], [N, C, H, W] or [N, H, W, C], not {_what(images)}"
        )
    if layout is None:
        first, last = images.shape[1] in _CHANNELS, images.shape[3] in _CHANNELS
        if first == last:
            raise ValueError(
                f"images {list(images.shape)} could be [N, C, H, W] or [N, H, W, C]; "
                'say which with layout="NCHW" or layout="NHWC"'
            )
        layout = "NCHW" if first else "NHWC"
    if layout.upper() not in ("NCHW", "NHWC"):
        raise ValueError(f'layout must be "NCHW" or "NHWC", not {layout!r}')
    return images if layout.upper() == "NCHW" else images.permute(0, 3, 1, 2).contiguous()


def _labels(given: Any) -> Tensor:
    labels = _tensor(given, "labels")
    if not len(labels):
        return labels.long()
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise ValueError(f"labels must be integers [N], from 0, not {_what(labels)}")
    return labels.long()


def _tensor(given: Any, what: str) -> Tensor:
    """A copy, so that nobody's later changes reach into the data set."""
    if isinstance(given, Tensor):
        return given.detach().clone(memory_format=torch.contiguous_format)
    array = np.array(given)  # copies, which a read-only array needs
    if array.dtype.kind not in "biuf" or array.ndim == 0:
        raise ValueError(f"{what} must be a NumPy array or a tensor, not {type(given).__name__}")
    return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), order="C", copy=False))


def _check_range(labels: Tensor, num_classes: int) -> None:
    if len(labels):
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= num_classes:
            raise ValueError(
                f"labels must be from 0 to {num_classes - 1}, for {num_classes} classes; "
                f"they go from {low} to {high}"
            )


def _what(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def _size(images: Tensor) -> str:
    return "x".join(map(str, images.shape[1:]))
