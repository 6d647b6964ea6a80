"""A data set: images and labels as tensors, and what is needed to read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._errors import UsageError

_CHANNELS = (1, 3)  # grey and colour; from these the layout is inferred
_UNNAMED_CLASSES = 1000  # that labels may go up to without names, be there ever so few images
_RENUMBER = (
    "number them: classes, labels = np.unique(labels, return_inverse=True), "
    "and give classes=classes"
)


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Images, uint8 [N, C, H, W], and their labels, int64 [N]."""

    images: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        if self.images.dtype != torch.uint8 or self.images.ndim != 4:
            raise UsageError(
                f"images must be uint8 [N, C, H, W], not {_describe(self.images)}; "
                "from_arrays takes other layouts"
            )
        if 0 in self.images.shape[1:]:
            raise UsageError(f"images of {_shape(self.images)} have no pixels; give others")
        if self.labels.dtype != torch.int64 or self.labels.shape != self.images.shape[:1]:
            raise UsageError(
                f"labels must be int64, one for each of {len(self.images)} images, "
                f"not {_describe(self.labels)}"
            )

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        return f"Split({len(self)} images {_shape(self.images)})"


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Training and test images with their labels and the names of the classes.

    Attributes:
        name: the name that ``load`` takes.
        train: the training images and their labels.
        test: the test images and their labels.
        classes: the name of each class.
        mean: of each channel over the training images, scaled to 0..1.
        std: the standard deviation of each channel, likewise.
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
            raise UsageError(f"{self.name} has no images to train on")
        if len(self.test) and self.test.images.shape[1:] != self.train.images.shape[1:]:
            sizes = f"{_shape(self.train.images)}, those to test on {_shape(self.test.images)}"
            raise UsageError(f"images to train on are {sizes}; they must be of one size")
        numbers = (*self.mean, *self.std)
        if (
            not len(self.mean) == len(self.std) == channels
            or not all(map(math.isfinite, numbers))
            or not all(s > 0 for s in self.std)
        ):
            raise UsageError(
                f"mean and std must have a number for each of {channels} channels, std above 0; "
                f"they are {self.mean} and {self.std}"
            )
        for split in (self.train, self.test):
            _check_range(split.labels, self.num_classes)
        if self.num_classes < 2:
            raise UsageError(
                f"{self.name} has {self.num_classes} class; a classifier needs two: name also "
                "those that no image here is of, with classes="
            )

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, {len(self.train)} + {len(self.test)} images "
            f"{_shape(self.train.images)}, {self.num_classes} classes)"
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
    """A data set from NumPy arrays or tensors, which are copied.

    Args:
        train_images: uint8, [N, H, W], [N, C, H, W] or [N, H, W, C].
        train_labels: integers [N], from 0.
        test_images: like ``train_images``; an empty list if there are none.
        test_labels: like ``train_labels``.
        classes: the name of each class. Default: the numbers from 0 to the largest label, which
            may be no larger than the number of images or 999.
        mean: of each channel, images scaled to 0..1. Default: that of the training images.
        std: the standard deviation of each channel, likewise.
        layout: ``"NCHW"`` or ``"NHWC"``; needed where the shape does not tell.
        name: of the data set.

    >>> import numpy as np
    >>> photos = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
    >>> pets = from_arrays(photos, [0, 1], photos, [0, 1], classes=["cat", "dog"])
    >>> pets
    Dataset('own', 2 + 2 images 3x4x4, 2 classes)
    >>> pets.train.images.shape
    torch.Size([2, 3, 4, 4])
    """
    train = Split(_as_images(_as_tensor(train_images, "images"), layout), _as_labels(train_labels))
    tested = _as_tensor(test_images, "images")
    none = tested.ndim and not len(tested)  # whatever the type and shape of an empty list
    test = Split(
        train.images[:0].clone() if none else _as_images(tested, layout), _as_labels(test_labels)
    )
    names = _number_classes(train, test) if classes is None else _class_names(classes)
    if len(train) and (mean is None or std is None):
        computed = channel_statistics(train.images)
        mean, std = (computed[0] if mean is None else mean), (computed[1] if std is None else std)
    return Dataset(name, train, test, names, _as_floats(mean, "mean"), _as_floats(std, "std"))


def _number_classes(train: Split, test: Split) -> tuple[str, ...]:
    """A name for each number up to the largest label, unless labels are no class numbers."""
    largest = max((int(s.labels.max()) for s in (train, test) if len(s)), default=-1)
    images = len(train) + len(test)
    if largest >= max(images, _UNNAMED_CLASSES):
        raise UsageError(f"labels go up to {largest}, with {images} images in all; {_RENUMBER}")
    return tuple(map(str, range(largest + 1)))


def _class_names(classes: Any) -> tuple[str, ...]:
    try:
        if isinstance(classes, str):
            raise TypeError
        return tuple(map(str, classes))
    except TypeError:
        raise UsageError(f"classes are a list of names, not {classes!r:.60}") from None


def _as_floats(given: Any, name: str) -> tuple[float, ...]:
    try:
        return () if given is None else tuple(map(float, given))
    except (TypeError, ValueError):
        raise UsageError(f"{name} must have a number for each channel, not {given!r:.60}") from None


def channel_statistics(images: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel of uint8 images, scaled to 0..1.

    They are computed from the counts of the 256 values, so they are exact. A channel that is
    constant has a standard deviation of 1, so that one can divide by it.

    >>> channel_statistics(torch.tensor([0, 255], dtype=torch.uint8).reshape(2, 1, 1, 1))
    ((0.5,), (0.5,))
    """
    channels = images.shape[1]
    counts = torch.zeros(channels, 256, dtype=torch.int64)
    for start in range(0, len(images), 4096):  # bincount converts the bytes to int64
        block = images[start : start + 4096]
        for channel in range(channels):
            counts[channel] += torch.bincount(block[:, channel].flatten(), minlength=256).cpu()
    value = torch.arange(256, dtype=torch.float64) / 255
    share = counts.double() / counts.sum(1, keepdim=True)
    mean = share @ value
    deviation = (share * (value - mean[:, None]).square()).sum(1).sqrt()
    deviation[deviation == 0] = 1
    return tuple(mean.tolist()), tuple(deviation.tolist())


def _as_images(images: Tensor, layout: str | None) -> Tensor:
    if images.dtype != torch.uint8:
        raise UsageError(
            f"images must be uint8, 0 to 255, not {_describe(images)}; numbers from 0 to 1 become "
            "it with (images * 255).round() and a cast"
        )
    if images.ndim == 3:
        return images.unsqueeze(1)
    if images.ndim != 4:
        raise UsageError(
            f"images must be [N, H, W], [N, C, H, W] or [N, H, W, C], not {_describe(images)}"
        )
    if layout is None:
        first, last = images.shape[1] in _CHANNELS, images.shape[3] in _CHANNELS
        if first == last and images.shape[1:] != (1, 1, 1):  # of one pixel both are the same
            raise UsageError(
                f"images {list(images.shape)} could be [N, C, H, W] or [N, H, W, C]; "
                'say which with layout="NCHW" or layout="NHWC"'
            )
        layout = "NCHW" if first else "NHWC"
    if layout.upper() not in ("NCHW", "NHWC"):
        raise UsageError(f'layout must be "NCHW" or "NHWC", not {layout!r}')
    return images if layout.upper() == "NCHW" else images.permute(0, 3, 1, 2).contiguous()


def _as_labels(given: Any) -> Tensor:
    labels = _as_tensor(given, "labels")
    if not labels.numel():
        return labels.long()
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise UsageError(f"labels must be integers [N], from 0, not {_describe(labels)}")
    if labels.dtype == torch.uint64 and bool((labels.long() < 0).any()):
        raise UsageError(f"labels must be class numbers of 64 bits; {_RENUMBER}")
    return labels.long()


def _as_tensor(given: Any, name: str) -> Tensor:
    """A copy, so that later changes of the original do not change the data set."""
    if isinstance(given, Tensor):
        return given.detach().clone(memory_format=torch.contiguous_format)
    try:
        array = np.array(given)  # copies, which a read-only array needs
    except ValueError:  # lists of several lengths
        array = np.array(None)
    if array.dtype.kind not in "biuf" or array.ndim == 0:
        raise UsageError(_not_numbers(array, given, name))
    return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), order="C", copy=False))


def _not_numbers(array: NDArray[Any], given: Any, name: str) -> str:
    """Why an array that holds no numbers is refused."""
    types = {type(v) for v in array.flat} if array.dtype.kind == "O" else {array.dtype.type}
    if name == "labels" and any(issubclass(t, str | bytes) for t in types):
        return f"labels are texts; {_RENUMBER}"
    if name == "labels" and types == {int}:
        return f"labels must be class numbers of 64 bits; {_RENUMBER}"
    return f"{name} must be a NumPy array or a tensor, not {type(given).__name__}"


def _check_range(labels: Tensor, num_classes: int) -> None:
    if len(labels):
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= num_classes:
            raise UsageError(
                f"labels must be from 0 to {num_classes - 1}, for {num_classes} classes; "
                f"they go from {low} to {high}; {_RENUMBER}"
            )


def _describe(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def _shape(images: Tensor) -> str:
    return "x".join(map(str, images.shape[1:]))
