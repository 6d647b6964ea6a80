"""A data set from arrays of one's own: inputs and labels of any usual layout and type, checked."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._errors import UsageError
from ..sources import layout_of
from ._dataset import NOUNS, RENUMBER, Dataset, Split, describe
from ._statistics import channel_statistics

_UNNAMED_CLASSES = 1000  # that labels may go up to without names, be there ever so few images


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
        noun = NOUNS[train.kind]
        raise UsageError(f"labels go up to {largest}, with {samples} {noun} in all; {RENUMBER}")
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


def _as_inputs(inputs: Tensor, layout: str | None) -> Tensor:
    """Images as uint8 [N, C, H, W], features as float32, token ids as int64."""
    if inputs.dtype == torch.uint8:
        return _as_images(inputs, layout)
    if inputs.ndim < 2:
        raise UsageError(f"inputs must be [N, ...], one for each sample, not {describe(inputs)}")
    if inputs.is_floating_point():
        inputs = inputs.float()  # what it cannot hold is found below
        finite = torch.isfinite(inputs.flatten(1)).all(1)
        if not bool(finite.all()):
            row = int((~finite).nonzero()[0])
            raise UsageError(f"features must be finite numbers in float32; row {row} has others")
        # Where they are images, only who gave them knows it: nothing is inferred from a shape.
        named = layout is not None and inputs.ndim == 4
        return _channels_first(inputs, str(layout)) if named else inputs
    if inputs.dtype != torch.bool and not inputs.is_complex() and inputs.ndim == 2:
        if inputs.numel() and int(inputs.min()) < 0:
            raise UsageError("token ids are 0 or more; features have to be floating point")
        return inputs.long()
    raise UsageError(
        f"inputs must be uint8 images, floating-point features or rows of token ids, "
        f"not {describe(inputs)}"
    )


def _as_images(images: Tensor, layout: str | None) -> Tensor:
    if images.ndim == 3:
        return images.unsqueeze(1)
    if images.ndim != 4:
        raise UsageError(
            f"images must be [N, H, W], [N, C, H, W] or [N, H, W, C], not {describe(images)}"
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
            f"labels must be integers [N], from 0, not {describe(labels)}: if they are {remedy}"
        )
    if labels.dtype == torch.uint64 and bool((labels.long() < 0).any()):
        raise UsageError(f"labels must be class numbers of 64 bits; {RENUMBER}")
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
    if name == "labels" and array.dtype.kind == "O" and _are_whole(array):
        # as in some columns of pandas
        with contextlib.suppress(OverflowError):
            array = array.astype(np.int64)
    if array.dtype.kind not in "biuf" or array.ndim == 0:
        raise UsageError(_not_numbers(array, given, name))
    return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), order="C", copy=False))


def _are_whole(array: NDArray[Any]) -> bool:
    types = {*map(type, array.flat)}
    return bool(types) and all(kind is int or issubclass(kind, np.integer) for kind in types)


def _not_numbers(array: NDArray[Any], given: Any, name: str) -> str:
    """Why an array that holds no numbers is refused."""
    values = list(np.array(given, object).flat) if array.dtype.kind in "OU" and array.ndim else []
    types = {type(v) for v in values} or {array.dtype.type}
    gaps = [i for i, v in enumerate(values) if str(v) in _GAPS and not isinstance(v, str)]
    if name == "labels" and gaps:
        return _missing(gaps[0])
    if name == "labels" and any(issubclass(t, str | bytes) for t in types):
        return f"labels are texts; {RENUMBER}"
    if name == "labels" and types == {int}:
        return f"labels must be class numbers of 64 bits; {RENUMBER}"
    others = [v for v in values if not isinstance(v, int | float | np.number)]
    if name == "images" and others:
        return f"inputs must be numbers, and these hold {others[0]!r:.60} ({type(given).__name__})"
    return f"{name} must be a NumPy array or a tensor, not {type(given).__name__}"


_GAPS = ("None", "nan", "<NA>", "NaT")  # None, and what NumPy and pandas have for a missing value


def _missing(sample: int) -> str:
    return f"sample {sample} has no label; leave out the samples without one"
