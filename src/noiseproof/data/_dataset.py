"""A data set: inputs and labels as tensors, and what they have to be."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .._errors import UsageError
from ..catalogue import DataSummary
from ..sources import Kind
from ._stream import Inputs
from ._text import TextCoding

NOUNS = {"image": "images", "features": "rows of features", "tokens": "rows of token ids",
         "text": "texts"}  # fmt: skip
RENUMBER = (
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
                f"images must be uint8 [N, C, H, W], not {describe(self.inputs)}; "
                "from_arrays takes other layouts"
            )
        if 0 in self.inputs.shape[1:]:
            empty = "have no pixels" if self.inputs.dtype == torch.uint8 else "are empty"
            raise UsageError(f"{NOUNS[self.kind]} of {_shape(self.inputs)} {empty}; give others")
        for name, labels in (("labels", self.labels), ("true labels", self.truth)):
            if labels is None:
                continue
            if labels.dtype != torch.int64 or labels.shape != self.inputs.shape[:1]:
                raise UsageError(
                    f"{name} must be int64, one for each of {len(self.inputs)} "
                    f"{NOUNS[self.kind]}, not {describe(labels)}"
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
        return f"Split({len(self)} {NOUNS[self.kind]} {_shape(self.inputs)})"


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
        kind, noun = self.train.kind, NOUNS[self.train.kind]
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
        what = f"{NOUNS[self.kind]} {_shape(self.train.inputs)}"
        return (
            f"Dataset({self.name!r}, {len(self.train)} + {len(self.test)} {what}, "
            f"{self.num_classes} classes)"
        )


def _check_range(labels: Tensor, num_classes: int) -> None:
    if len(labels):
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= num_classes:
            raise UsageError(
                f"labels must be from 0 to {num_classes - 1}, for {num_classes} classes; "
                f"they go from {low} to {high}; {RENUMBER}"
            )


def describe(tensor: Inputs) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def _shape(images: Inputs) -> str:
    return "x".join(map(str, images.shape[1:]))
