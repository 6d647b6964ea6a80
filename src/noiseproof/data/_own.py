"""Data sets of one's own: folders of images, tables, arrays in a file, torch data sets."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._errors import UsageError, require
from .._imports import without_digest
from ..sources import Content, Part, Problems, Source, left_out_note, read
from ._arrays import from_arrays
from ._dataset import Dataset, Split
from ._keep import Keeping, keep
from ._statistics import channel_statistics, statistics_of
from ._stream import resident, select
from ._text import TextCoding

_PATH = str | os.PathLike[str]


def from_folder(
    path: _PATH,
    test: _PATH | None = None,
    *,
    image_size: int = 0,
    skip_unreadable: bool = False,
    name: str | None = None,
    stream: str = "auto",
    cache: _PATH | None = None,
) -> Dataset:
    """Images in folders, one folder a class.

    Args:
        path: the folder that has a folder for each class; or one with a folder ``train`` and a
            folder ``test`` or ``val`` that have those.
        test: the folder of images to test on. Without one, a run holds a part of the images out.
        image_size: the side in pixels that images are brought to. Default: as they are, if all are
            of one size of at most 96 pixels, else 64.
        skip_unreadable: go on without images that cannot be read, with a warning.
        name: of the data set. Default: that of the folder and a digest of all that was read.
        stream: ``"yes"`` decodes images as they are read, ``"no"`` holds all in memory, and
            ``"auto"`` does so if they fit.
        cache: a folder to keep decoded images in, for the next time.
    """
    source = Source(
        form="folder", path=Path(path), test=None if test is None else Path(test),
        image_size=image_size, skip_unreadable=skip_unreadable,
    )  # fmt: skip
    return _named(load_source(source, _keeping(stream, cache)), name)


def from_table(
    path: _PATH,
    test: _PATH | None = None,
    *,
    label: str = "label",
    text: str = "",
    image: str = "",
    truth: str = "",
    ignore: Sequence[str] = (),
    image_size: int = 0,
    skip_unreadable: bool = False,
    name: str | None = None,
    stream: str = "auto",
    cache: _PATH | None = None,
) -> Dataset:
    """A CSV or Parquet file with a column of labels.

    Args:
        path: of the file; a CSV file has the names of its columns in the first line, and may be
            packed by gzip.
        test: of a file with the same columns to test on. Without one, a run holds a part out.
        label: the column of the labels: names or numbers of classes.
        text: the column of the texts that are classified.
        image: the column of the image files that are classified, relative to the table. With
            neither text nor image, all other columns are features, which are numbers.
        truth: the column of the true labels, where they are known. It is what is tested on, if the
            file to test on has it.
        ignore: columns that are no features.
        image_size: as in :func:`from_folder`.
        skip_unreadable: go on without rows that cannot be read, with a warning.
        name: of the data set. Default: that of the file and a digest of all that was read.
        stream: of images, as in :func:`from_folder`.
        cache: likewise.
    """
    form = "parquet" if Path(path).suffix.lower() == ".parquet" else "csv"
    source = Source(
        form=form, path=Path(path), test=None if test is None else Path(test), label=label,
        text=text, image=image, truth=truth, ignore=tuple(ignore), image_size=image_size,
        skip_unreadable=skip_unreadable,
    )  # fmt: skip
    return _named(load_source(source, _keeping(stream, cache)), name)


def _keeping(stream: str, cache: _PATH | None) -> Keeping:
    return Keeping(stream, None if cache is None else Path(cache))


def from_dataset(
    train: Any,
    test: Any = None,
    *,
    input: str = "",
    label: str = "",
    classes: Sequence[str] | None = None,
    image_size: int = 0,
    name: str = "own",
) -> Dataset:
    """Any map-style ``torch.utils.data.Dataset``, or one of Hugging Face's, read into memory.

    Args:
        train: its items are pairs (input, label), or mappings. An input is an image of Pillow, an
            array or tensor of a fixed shape, or a text.
        test: likewise, to test on. Without one, a run holds a part out.
        input: the key of the input in a mapping. Default: the first of the usual names.
        label: the key of the label, likewise.
        classes: the name of each class. Default: ``train.classes``, or the names that Hugging
            Face's features have.
        image_size: the side in pixels that images are brought to, if they are of several sizes.
        name: of the data set.
    """
    classes = _known_classes(train, label) if classes is None else classes
    parts = [_items(part, input, label) for part in (train, test) if part is not None]
    (inputs, labels), tested = parts[0], parts[1] if len(parts) > 1 else ([], [])
    if not labels:
        raise UsageError("the data set to train on has no items")
    first = inputs[0]
    if isinstance(first, str):
        return _from_texts(inputs, labels, *tested, classes=classes, name=name)
    if hasattr(first, "convert"):
        size = _common_size([*inputs, *tested[0]], image_size)
        inputs, tested = _as_pixels(inputs, size), (_as_pixels(tested[0], size), tested[1])
    return from_arrays(
        _stacked(inputs), labels, _stacked(tested[0]), tested[1], classes=classes,
        layout="NHWC" if hasattr(first, "convert") else None, name=name,
    )  # fmt: skip


def load_source(source: Source, keeping: Keeping | None = None) -> Dataset:
    """What a source holds, as tensors."""
    return load_content(read(source), source, keeping)


def load_content(content: Content, source: Source, keeping: Keeping | None = None) -> Dataset:
    """The same, of what was read already: images are decoded, texts become token ids."""
    problems = Problems(source.skip_unreadable)
    coding = None
    if isinstance(content.train.inputs, list) and content.kind == "image":
        return _load_files(content, problems, keeping or Keeping())
    if content.kind == "text":
        coding = TextCoding.of(list(map(str, content.train.inputs)))
    train = _split(content.train, coding)
    inputs = resident(train.inputs, "")
    test = (
        Split(inputs[:0].clone(), train.labels[:0].clone())
        if content.test is None
        else _split(content.test, coding)
    )
    for note in left_out_note(content.left_out):
        warnings.warn(note, stacklevel=2)
    return Dataset(
        content.name, train, test, content.classes, *channel_statistics(inputs), coding,
        content.columns, content.left_out, learnt=True,
    )  # fmt: skip


def _load_files(content: Content, problems: Problems, keeping: Keeping) -> Dataset:
    """Images in files. All are decoded once, since what normalizes them has to be learnt."""
    parts = [part for part in (content.train, content.test) if part is not None]
    streams = keeping.streams(
        without_digest(content.name), [len(part) for part in parts], content.shape
    )
    splits, counts = [], None
    for at, part in enumerate(parts):
        kept = keep(
            [str(p) for p in part.inputs], content.shape, part.places, problems,
            digest=f"{content.name.rpartition('@')[2]} {at}", streams=streams, how=keeping,
            look_at_all=True,
        )  # fmt: skip
        counts = kept.counts if counts is None else counts
        labels = torch.from_numpy(part.labels)
        truth = None if part.truth is None else torch.from_numpy(part.truth)
        if kept.readable is not None:
            labels, truth = labels[kept.readable], None if truth is None else truth[kept.readable]
        splits.append(Split(kept.inputs, labels, truth))
    if content.test is None:
        empty = select(splits[0].inputs, slice(0))
        splits.append(Split(empty, splits[0].labels[:0].clone()))
    assert counts is not None
    left_out = (*content.left_out, *problems.lines)
    for note in left_out_note(left_out):
        warnings.warn(note, stacklevel=3)
    mean, std = statistics_of(torch.from_numpy(counts))
    return Dataset(
        content.name, splits[0], splits[1], content.classes, mean, std, None, content.columns,
        left_out, learnt=True,
    )  # fmt: skip


def _split(part: Part, coding: TextCoding | None) -> Split:
    labels = torch.from_numpy(part.labels)
    truth = None if part.truth is None else torch.from_numpy(part.truth)
    found = np.ascontiguousarray(part.inputs) if coding is None else coding(map(str, part.inputs))
    return Split(torch.from_numpy(found), labels, truth)


def _named(data: Dataset, name: str | None) -> Dataset:
    return data if name is None else replace(data, name=name)


_INPUTS = (
    "image",
    "img",
    "pixel_values",
    "text",
    "sentence",
    "input_ids",
    "inputs",
    "x",
    "features",
)
_LABELS = ("label", "labels", "fine_label", "target", "y")


def _items(items: Any, input: str, label: str) -> tuple[list[Any], list[Any]]:
    """The inputs and the labels of all items."""
    inputs, labels = [], []
    if hasattr(items, "keys") and not hasattr(items, "features"):
        names = ", ".join(map(str, items.keys()))
        raise UsageError(f"give one part of the data set, such as dataset['train']; it has {names}")
    try:
        count = len(items)
    except TypeError:
        raise UsageError(
            f"a map-style data set is needed, with a length; {type(items).__name__} has none"
        ) from None
    if not hasattr(items, "__getitem__"):
        remedy = "; give loader.dataset" if hasattr(items, "dataset") else ""
        raise UsageError(
            f"a map-style data set is needed, with an item for each index; {type(items).__name__} "
            f"has none{remedy}"
        )
    for at in range(count):
        item = items[at]
        if hasattr(item, "keys"):
            x, y = _key(item, input, _INPUTS, "input"), _key(item, label, _LABELS, "label")
            inputs.append(item[x])
            labels.append(item[y])
        elif isinstance(item, list | tuple) and len(item) >= 2:
            inputs.append(item[0])
            labels.append(item[1])
        else:
            raise UsageError(
                f"item {at} is a {type(item).__name__}, no pair (input, label) and no mapping"
            )
        if inputs[-1] is None or labels[-1] is None:
            raise UsageError(f"item {at} has no {'input' if inputs[-1] is None else 'label'}")
        last = labels[-1]
        labels[-1] = last.item() if isinstance(last, Tensor | np.generic) else last
    return inputs, labels


def _key(item: Any, given: str, usual: Iterable[str], what: str) -> str:
    keys = list(item.keys())
    found = [given] if given else [key for key in usual if key in keys]
    if not found or found[0] not in keys:
        raise UsageError(f"which key has the {what}? Name it with {what}=: {', '.join(keys)}")
    return found[0]


def _known_classes(items: Any, label: str) -> Sequence[str] | None:
    classes = getattr(items, "classes", None)
    features: Any = getattr(items, "features", None)
    if classes is None and hasattr(features, "keys"):
        key = next((k for k in ([label] if label else _LABELS) if k in features), "")
        classes = getattr(features[key], "names", None) if key else None
    return None if classes is None else list(map(str, classes))


def _from_texts(
    texts: Sequence[str], labels: Any, tested: Sequence[str], tested_labels: Any, *,
    classes: Sequence[str] | None, name: str,
) -> Dataset:  # fmt: skip
    coding = TextCoding.of(texts)
    ids = coding(tested) if tested else ()
    data = from_arrays(coding(texts), labels, ids, tested_labels, classes=classes, name=name)
    return replace(data, coding=coding)


def _common_size(images: Sequence[Any], image_size: int) -> tuple[int, int]:
    sizes = {image.size for image in images}
    if image_size:
        return image_size, image_size
    if len(sizes) > 1:
        raise UsageError(
            f"images are of {len(sizes)} sizes; give image_size=64, say, to bring them to one"
        )
    return sizes.pop()  # type: ignore[no-any-return]


def _as_pixels(images: Sequence[Any], size: tuple[int, int]) -> list[Any]:
    ops = require("PIL.ImageOps", "images", "an image")
    mode = "L" if all(image.mode in ("1", "L") for image in images) else "RGB"
    fitted = (ops.fit(image.convert(mode), size, 2) for image in images)  # bilinear, as in `decode`
    return [np.atleast_3d(np.asarray(image, np.uint8)) for image in fitted]


def _stacked(inputs: Sequence[Any]) -> Any:
    arrays = [i.detach().cpu().numpy() if isinstance(i, Tensor) else np.asarray(i) for i in inputs]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        first, second, *_ = sorted(shapes)
        raise UsageError(
            f"inputs must be of one shape; some are {list(first)} and some {list(second)}: pad or "
            "crop them"
        )
    return np.stack(arrays) if arrays else ()
