"""A data set: inputs and labels as tensors, and what is needed to read them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._errors import UsageError
from ..catalogue import DataSummary
from ..sources import Kind, layout_of
from ._stream import ImageFiles, Inputs, parts_of
from ._text import TextCoding

_NOUNS = {"image": "images", "features": "rows of features", "tokens": "rows of token ids",
          "text": "texts"}  # fmt: skip
_BLOCK = 1024  # images whose pixels are counted at a time, as int64
_UNNAMED_CLASSES = 1000  # that labels may go up to without names, be there ever so few images
_RENUMBER = (
    "number them: classes, labels = np.unique(labels, return_inverse=True), "
    "and give classes=classes"
)


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Inputs, one for each sample, and their labels, int64 [N].

    Attributes:
        inputs: images, uint8 [N, C, H, W]; or features, float32 [N, D] or of any further shape; or
            token ids, int64 [N, L]. Images that do not fit into memory are like a tensor, and are
            decoded where they are read.
        labels: as they are given.
        truth: the true labels, where they are known and differ from those given.
    """

    inputs: Inputs
    labels: Tensor
    truth: Tensor | None = None

    def __post_init__(self) -> None:
        if kind_of(self.inputs) is None:
            raise UsageError(
                f"images must be uint8 [N, C, H, W], not {_describe(self.inputs)}; "
                "from_arrays takes other layouts"
            )
        if 0 in self.inputs.shape[1:]:
            empty = "have no pixels" if self.inputs.dtype == torch.uint8 else "are empty"
            raise UsageError(f"{_NOUNS[self.kind]} of {_shape(self.inputs)} {empty}; give others")
        for name, labels in (("labels", self.labels), ("true labels", self.truth)):
            if labels is None:
                continue
            if labels.dtype != torch.int64 or labels.shape != self.inputs.shape[:1]:
                raise UsageError(
                    f"{name} must be int64, one for each of {len(self.inputs)} "
                    f"{_NOUNS[self.kind]}, not {_describe(labels)}"
                )

    @property
    def kind(self) -> Kind:
        """What the inputs are."""
        return kind_of(self.inputs) or "image"

    @property
    def images(self) -> Tensor:
        """The inputs, where they are images."""
        return self.inputs  # type: ignore[return-value]  # image files are like a tensor

    def __len__(self) -> int:
        return len(self.inputs)

    def __repr__(self) -> str:
        return f"Split({len(self)} {_NOUNS[self.kind]} {_shape(self.inputs)})"


def kind_of(inputs: Inputs) -> Kind | None:
    """What inputs are, by their type; None if they are nothing that is known."""
    if inputs.dtype == torch.uint8 and inputs.ndim == 4:
        return "image"
    if inputs.dtype == torch.float32 and inputs.ndim >= 2:
        return "features"
    if inputs.dtype == torch.int64 and inputs.ndim == 2:
        return "tokens"
    return None


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Inputs to train and to test on with their labels and the names of the classes.

    Attributes:
        name: the name that ``load`` takes.
        train: what is trained on.
        test: what is tested on; it may be empty.
        classes: the name of each class.
        mean: over the training set, of each channel of images, scaled to 0..1, or of each feature
            (of features of several dimensions: of each entry of the first); empty for token ids.
        std: the standard deviation, likewise.
        coding: how texts become token ids, if the inputs are texts.
        columns: of a table, those that the inputs come from.
        left_out: a line on each sample that could not be read.
        learnt: whether mean and std are those of this training set; what a run holds out of it is
            then left out of them too.
    """

    name: str
    train: Split
    test: Split
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    coding: TextCoding | None = None
    columns: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    learnt: bool = False

    def __post_init__(self) -> None:
        kind, noun = self.train.kind, _NOUNS[self.train.kind]
        if not len(self.train):
            raise UsageError(f"{self.name} has no {noun} to train on")
        ours, theirs = self.train.inputs, self.test.inputs
        if len(self.test) and (ours.shape[1:] != theirs.shape[1:] or ours.dtype != theirs.dtype):
            sizes = f"{_shape(ours)}, those to test on {_shape(theirs)}"
            raise UsageError(f"{noun} to train on are {sizes}; they must be of one size")
        numbers = (*self.mean, *self.std)
        channels = 0 if kind == "tokens" else ours.shape[1]
        if (
            not len(self.mean) == len(self.std) == channels
            or not all(map(math.isfinite, numbers))
            or not all(s > 0 for s in self.std)
        ):
            what = "channels" if kind == "image" else "features"
            raise UsageError(
                f"mean and std must have a number for each of {channels} {what}, std above 0; "
                f"they are {self.mean!s:.80} and {self.std!s:.80}"
            )
        for split in (self.train, self.test):
            for labels in (split.labels, split.truth):
                if labels is not None:
                    _check_range(labels, self.num_classes)
        if self.num_classes < 2:
            raise UsageError(
                f"{self.name} has {self.num_classes} class; a classifier needs two: name also "
                f"those that no {noun.removesuffix('s')} here is of, with classes="
            )

    @property
    def kind(self) -> Kind:
        """What is classified: ``image``, ``text``, ``features`` or ``tokens``."""
        return "text" if self.coding is not None else self.train.kind

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def summary(self) -> DataSummary:
        """What settings that suit it follow from."""
        shape, tested = tuple(self.train.inputs.shape[1:]), len(self.test) > 0
        return DataSummary(self.kind, shape, len(self.train), self.num_classes, tested)

    @property
    def vocabulary(self) -> int:
        """How many token ids there are; 0 where inputs are none."""
        if self.coding is not None:
            return self.coding.buckets
        if self.train.kind != "tokens":
            return 0
        parts = [s.inputs for s in (self.train, self.test) if len(s)]
        return max(int(part.max()) for part in parts if isinstance(part, Tensor)) + 1

    def __repr__(self) -> str:
        what = f"{_NOUNS[self.kind]} {_shape(self.train.inputs)}"
        return (
            f"Dataset({self.name!r}, {len(self.train)} + {len(self.test)} {what}, "
            f"{self.num_classes} classes)"
        )


def from_arrays(
    train_inputs: Any,
    train_labels: Any,
    test_inputs: Any = (),
    test_labels: Any = (),
    *,
    truth: Any = None,
    classes: Sequence[str] | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    layout: str | None = None,
    name: str = "own",
) -> Dataset:
    """A data set from NumPy arrays or tensors, which are copied.

    Without anything to test on, a run holds a part of the training set out.

    Args:
        train_inputs: images, uint8 [N, H, W], [N, C, H, W] or [N, H, W, C]; or features, floating
            point [N, D] or of more dimensions, such as float images [N, C, H, W]; or token ids,
            integers [N, L], padded with 0.
        train_labels: integers [N], from 0; or names of classes.
        test_inputs: like ``train_inputs``; an empty list if there are none.
        test_labels: like ``train_labels``.
        truth: the true labels of the training set, where they are known.
        classes: the name of each class. Default: the names that the labels have, or the numbers
            from 0 to the largest label, which may be no larger than the number of samples or 999.
        mean: of each channel, images scaled to 0..1, or of each feature. Default: that of the
            training set.
        std: the standard deviation, likewise.
        layout: ``"NCHW"`` or ``"NHWC"``; needed where the shape of images does not tell, and of
            float images [N, H, W, C], which are otherwise taken for features as they are.
        name: of the data set.

    >>> import numpy as np
    >>> photos = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
    >>> pets = from_arrays(photos, ["cat", "dog"], photos, ["cat", "dog"])
    >>> pets
    Dataset('own', 2 + 2 images 3x4x4, 2 classes)
    >>> pets.train.images.shape, pets.classes
    (torch.Size([2, 3, 4, 4]), ('cat', 'dog'))
    >>> from_arrays(np.eye(4, 3, dtype=np.float32), [0, 1, 0, 1])
    Dataset('own', 4 + 0 rows of features 3, 2 classes)
    """
    (train_labels, test_labels, truth), classes = _numbered(
        train_labels, test_labels, truth, classes=classes
    )
    learnt = mean is None and std is None
    inputs = _as_inputs(_as_tensor(train_inputs, "images"), layout)
    true = None if truth is None else _as_labels(truth)
    train = Split(inputs, _as_labels(train_labels), true)
    tested = _as_tensor(test_inputs, "images")
    none = tested.ndim and not len(tested)  # whatever the type and shape of an empty list
    test = Split(
        inputs[:0].clone() if none else _as_inputs(tested, layout), _as_labels(test_labels)
    )
    names = _number_classes(train, test) if classes is None else _class_names(classes)
    if len(train) and (mean is None or std is None):
        computed = channel_statistics(inputs)
        mean, std = (computed[0] if mean is None else mean), (computed[1] if std is None else std)
    mean, std = _as_floats(mean, "mean"), _as_floats(std, "std")
    return Dataset(name, train, test, names, mean, std, learnt=learnt)


def _numbered(
    *labels: Any, classes: Sequence[str] | None
) -> tuple[tuple[Any, ...], Sequence[str] | None]:
    """Labels that are names as numbers, and the names in their order; others as they are."""
    given = [[] if part is None or isinstance(part, Tensor) else part for part in labels]
    try:
        values = [np.asarray(part, dtype=object).tolist() for part in given]
    except ValueError:  # lists of several lengths
        return labels, classes
    if not all(isinstance(part, list) for part in values):
        return labels, classes
    texts = [isinstance(value, str) for part in values for value in part]
    if not texts or not all(texts) or any(isinstance(part, Tensor) for part in labels):
        return labels, classes
    found_names = sorted({name for part in values for name in part})
    names = found_names if classes is None else _class_names(classes)
    number = {name: i for i, name in enumerate(names)}
    unknown = [name for name in found_names if name not in number]
    if unknown:
        raise UsageError(f"the label {unknown[0]!r:.60} is not among classes")
    found = tuple(
        None if part is None else np.array([number[name] for name in value], np.int64)
        for part, value in zip(labels, values, strict=True)
    )
    return found, names


def _number_classes(train: Split, test: Split) -> tuple[str, ...]:
    """A name for each number up to the largest label, unless labels are no class numbers."""
    known = [s.labels for s in (train, test)] + ([] if train.truth is None else [train.truth])
    largest = max((int(labels.max()) for labels in known if len(labels)), default=-1)
    samples = len(train) + len(test)
    if largest >= max(samples, _UNNAMED_CLASSES):
        noun = _NOUNS[train.kind]
        raise UsageError(f"labels go up to {largest}, with {samples} {noun} in all; {_RENUMBER}")
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


def channel_statistics(inputs: Inputs) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel of uint8 images, scaled to 0..1, or of features.

    Those of images are computed from the counts of the 256 values, so they are exact. A channel
    that is constant has a standard deviation of 1, so that one can divide by it.

    >>> channel_statistics(torch.tensor([0, 255], dtype=torch.uint8).reshape(2, 1, 1, 1))
    ((0.5,), (0.5,))
    """
    if isinstance(inputs, ImageFiles):
        return _image_statistics(parts_of(inputs, _BLOCK), inputs.shape[1])
    if inputs.dtype == torch.int64:
        return (), ()
    if inputs.is_floating_point():
        values = inputs.double().transpose(0, 1).flatten(1)
        mean, deviation = values.mean(1), values.std(1, correction=0)
        deviation[deviation < 1e-12] = 1
        return tuple(mean.tolist()), tuple(deviation.tolist())
    return _image_statistics(torch.split(inputs, _BLOCK), inputs.shape[1])


def _image_statistics(
    blocks: Iterable[Tensor], channels: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    counts = torch.zeros(channels, 256, dtype=torch.int64, device="cpu")
    for block in blocks:
        for channel in range(channels):
            counts[channel] += torch.bincount(block[:, channel].flatten(), minlength=256).cpu()
    return statistics_of(counts)


def statistics_of(counts: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of each channel from the counts of its 256 values, int64 [C, 256]."""
    value = torch.arange(256, dtype=torch.float64, device=counts.device) / 255
    share = counts.double() / counts.sum(1, keepdim=True)
    mean = share @ value
    deviation = (share * (value - mean[:, None]).square()).sum(1).sqrt()
    deviation[deviation == 0] = 1
    return tuple(mean.tolist()), tuple(deviation.tolist())


def _as_inputs(inputs: Tensor, layout: str | None) -> Tensor:
    """Images as uint8 [N, C, H, W], features as float32, token ids as int64."""
    if inputs.dtype == torch.uint8:
        return _as_images(inputs, layout)
    if inputs.ndim < 2:
        raise UsageError(f"inputs must be [N, ...], one for each sample, not {_describe(inputs)}")
    if inputs.is_floating_point():
        finite = torch.isfinite(inputs.flatten(1)).all(1)
        if not bool(finite.all()):
            row = int((~finite).nonzero()[0])
            raise UsageError(f"features must be finite numbers; row {row} holds others")
        # Where they are images, only who gave them knows it: nothing is inferred from a shape.
        named = layout is not None and inputs.ndim == 4
        return _channels_first(inputs, str(layout)).float() if named else inputs.float()
    if inputs.dtype != torch.bool and not inputs.is_complex() and inputs.ndim == 2:
        if inputs.numel() and int(inputs.min()) < 0:
            raise UsageError("token ids are 0 or more; features have to be floating point")
        return inputs.long()
    raise UsageError(
        f"inputs must be uint8 images, floating-point features or rows of token ids, "
        f"not {_describe(inputs)}"
    )


def _as_images(images: Tensor, layout: str | None) -> Tensor:
    if images.ndim == 3:
        return images.unsqueeze(1)
    if images.ndim != 4:
        raise UsageError(
            f"images must be [N, H, W], [N, C, H, W] or [N, H, W, C], not {_describe(images)}"
        )
    found = layout_of(images.shape) if layout is None else layout
    if found is None:
        raise UsageError(
            f"images {list(images.shape)} could be [N, C, H, W] or [N, H, W, C]; "
            'say which with layout="NCHW" or layout="NHWC"'
        )
    return _channels_first(images, found)


def _channels_first(images: Tensor, layout: str) -> Tensor:
    if layout.upper() not in ("NCHW", "NHWC"):
        raise UsageError(f'layout must be "NCHW" or "NHWC", not {layout!r}')
    return images if layout.upper() == "NCHW" else images.permute(0, 3, 1, 2).contiguous()


def _as_labels(given: Any) -> Tensor:
    labels = _as_tensor(given, "labels")
    if not labels.numel():
        return labels.long()
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        gaps = labels.isnan().nonzero()
        if len(gaps):
            raise UsageError(_missing(int(gaps[0, 0])))
        one_hot = labels.ndim == 2 and labels.shape[1] > 1
        remedy = "one-hot, give labels.argmax(1)" if one_hot else "whole, give labels.astype(int)"
        raise UsageError(
            f"labels must be integers [N], from 0, not {_describe(labels)}: if they are {remedy}"
        )
    if labels.dtype == torch.uint64 and bool((labels.long() < 0).any()):
        raise UsageError(f"labels must be class numbers of 64 bits; {_RENUMBER}")
    return labels.long()


def _as_tensor(given: Any, name: str) -> Tensor:
    """A copy, so that later changes of the original do not change the data set."""
    if hasattr(given, "toarray") or (isinstance(given, Tensor) and given.layout != torch.strided):
        dense = "to_dense" if isinstance(given, Tensor) else "toarray"
        raise UsageError(f"inputs and labels are no sparse arrays: give {dense}() of them")
    if isinstance(given, Tensor):
        return given.detach().clone(memory_format=torch.contiguous_format)
    try:
        array = np.array(given)  # copies, which a read-only array needs
    except ValueError:  # lists of several lengths
        array = np.array(None)
    if name == "labels" and array.dtype.kind == "O" and {*map(type, array.flat)} == {int}:
        # as in some columns of pandas
        with contextlib.suppress(OverflowError):
            array = array.astype(np.int64)
    if array.dtype.kind not in "biuf" or array.ndim == 0:
        raise UsageError(_not_numbers(array, given, name))
    return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), order="C", copy=False))


def _not_numbers(array: NDArray[Any], given: Any, name: str) -> str:
    """Why an array that holds no numbers is refused."""
    values = list(np.array(given, object).flat) if array.dtype.kind in "OU" and array.ndim else []
    types = {type(v) for v in values} or {array.dtype.type}
    gaps = [i for i, v in enumerate(values) if str(v) in _GAPS and not isinstance(v, str)]
    if name == "labels" and gaps:
        return _missing(gaps[0])
    if name == "labels" and any(issubclass(t, str | bytes) for t in types):
        return f"labels are texts; {_RENUMBER}"
    if name == "labels" and types == {int}:
        return f"labels must be class numbers of 64 bits; {_RENUMBER}"
    others = [v for v in values if not isinstance(v, int | float | np.number)]
    if name == "images" and others:
        return f"inputs must be numbers, and these hold {others[0]!r:.60} ({type(given).__name__})"
    return f"{name} must be a NumPy array or a tensor, not {type(given).__name__}"


_GAPS = ("None", "nan", "<NA>", "NaT")  # None, and what NumPy and pandas have for a missing value


def _missing(sample: int) -> str:
    return f"sample {sample} has no label; leave out the samples without one"


def _check_range(labels: Tensor, num_classes: int) -> None:
    if len(labels):
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= num_classes:
            raise UsageError(
                f"labels must be from 0 to {num_classes - 1}, for {num_classes} classes; "
                f"they go from {low} to {high}; {_RENUMBER}"
            )


def _describe(tensor: Inputs) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def _shape(images: Inputs) -> str:
    return "x".join(map(str, images.shape[1:]))
