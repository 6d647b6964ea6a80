"""A trained network with its preprocessing, as it is used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor, nn

from .. import models
from .._errors import UsageError
from .._files import write_atomically
from ..data import Augment, Dataset, ImageFiles, TextCoding, parts_of
from ..results import Folder
from ..sources import Kind

MODEL, EMA_MODEL, INPUTS = "model.pt", "model-ema.pt", "model.json"
CHOSEN_MODEL = "model-chosen.pt"
_LARGEST = 3e38  # of float32


@dataclass(frozen=True)
class Inputs:
    """What a network was trained on.

    Attributes:
        shape: of one input.
        mean: of each channel or feature; empty for token ids.
        std: the standard deviation, likewise.
        classes: the name of each class.
        kind: ``image``, ``features``, ``tokens`` or ``text``.
        vocabulary: how many token ids there are; 0 where inputs are none.
        columns: of the table that was trained on, those that the inputs come from.
        coding: how texts become token ids.
        stored: of images that a part was cut out of, the shape of the whole.
    """

    shape: tuple[int, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    classes: tuple[str, ...]
    kind: Kind = "image"
    vocabulary: int = 0
    columns: tuple[str, ...] = ()
    coding: TextCoding | None = None
    stored: tuple[int, ...] = ()

    @classmethod
    def of(cls, data: Dataset, crop_size: int = 0) -> Inputs:
        """Of a data set, whose images are cut to this size."""
        stored = tuple(data.train.inputs.shape[1:])
        return cls(
            Augment(size=crop_size).output_shape(stored), data.mean, data.std, data.classes,
            data.kind, data.vocabulary, data.columns, data.coding, stored if crop_size else (),
        )  # fmt: skip

    def write(self, path: Path) -> None:
        write_atomically(path, json.dumps(asdict(self), indent=1).encode())

    @classmethod
    def read(cls, folder: Folder) -> Inputs:
        content = folder.read_json(INPUTS)
        try:
            return cls.from_values(content or {})
        except (KeyError, TypeError, ValueError):
            raise folder.damaged(INPUTS) from None

    @classmethod
    def from_values(cls, content: Mapping[str, Any]) -> Inputs:
        """From what a file holds, which may be anything.

        Raises:
            KeyError, TypeError, ValueError: it cannot be.
        """
        values: dict[str, Any] = dict(content)
        for name in ("shape", "mean", "std", "classes"):
            values[name] = tuple(values[name])
        for name in ("columns", "stored"):
            values[name] = tuple(values.get(name, ()))
        if values.get("coding"):
            values["coding"] = TextCoding(**values["coding"])
        found = cls(**values)
        coding = () if found.coding is None else tuple(vars(found.coding).values())
        counts = (*found.shape, *found.stored, *coding)
        numbers = (*found.mean, *found.std)
        if (
            not found.shape
            or len(found.classes) < 2
            or not all(type(n) is int and n > 0 for n in counts)
            or not all(isinstance(text, str) for text in (*found.classes, *found.columns))
            or not len(found.mean) == len(found.std) == (0 if found.vocabulary else found.shape[0])
            or not all(type(n) in (int, float) and abs(n) < _LARGEST for n in numbers)
            or not all(n > 1 / _LARGEST for n in found.std)
            or type(found.vocabulary) is not int
            or found.kind not in get_args(Kind)
            or (found.kind == "image" and len(found.shape) != 3)
            or (found.stored and len(found.stored) != 3)
            or (found.coding is not None and (found.coding.length,) != found.shape)
        ):
            raise ValueError
        mean, std = tuple(map(float, found.mean)), tuple(map(float, found.std))
        return replace(found, mean=mean, std=std)

    @property
    def raw(self) -> tuple[torch.dtype, tuple[int, ...]]:
        """Type and shape of an input before all preprocessing that the network brings."""
        if self.kind == "image":
            return torch.uint8, self.stored or self.shape
        return (torch.float32 if self.mean else torch.int64), self.shape


class Model(nn.Module):
    """A network that takes inputs as they are stored, and its preprocessing.

    ``model.predict(inputs)`` gives classes, ``model.predict_proba(inputs)`` probabilities. Images
    are uint8 of 0 to 255, or floating point of 0 to 1: [N, H, W], [N, C, H, W] or [N, H, W, C], as
    a tensor or an array. Features and token ids are as they were trained on; texts are a list of
    them. ``model(inputs)`` gives logits of a tensor as `forward` takes it.

    Attributes:
        network: the trained network, in eval mode.
        classes: the name of each class.
        inputs: the kind, shape and normalization of what it takes.
        settings: of the run that it was trained by.
    """

    def __init__(
        self, network: nn.Module, inputs: Inputs, settings: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__()
        self.settings = dict(settings or {})
        self.network = network.eval()
        self.inputs = inputs
        self._takes_channels_last: bool | None = None  # once that is asked
        self.classes = inputs.classes
        shape = (1, -1, *(1,) * (len(inputs.shape) - 1))
        self.register_buffer("mean", torch.tensor(inputs.mean).view(shape), persistent=False)
        self.register_buffer("std", torch.tensor(inputs.std).view(shape), persistent=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits [N, K] of inputs of the shape that was trained on, such as [N, C, H, W]."""
        if not self.inputs.mean:
            logits: Tensor = self.network(inputs)
            return logits
        scaled = inputs / 255 if inputs.dtype == torch.uint8 else inputs
        mean, std = self.get_buffer("mean"), self.get_buffer("std")
        logits = self.network((scaled.to(mean) - mean) / std)
        return logits

    @torch.no_grad()
    def predict_proba(self, inputs: Any, batch_size: int = 512) -> Tensor:
        """The probability of each class, [N, K], on the CPU."""
        if isinstance(inputs, ImageFiles):
            parts = [self.predict_proba(part, batch_size) for part in parts_of(inputs, batch_size)]
            return torch.cat(parts) if parts else torch.zeros(0, len(self.classes))
        self.eval()
        # As in training: a network that flattens with view takes no other layout.
        batches = torch.split(self._as_batch(inputs).contiguous(), batch_size)
        device = self.get_buffer("mean").device
        lay = _channels_last if self._lies_channels_last(device) else torch.Tensor.contiguous
        found = [self(lay(batch.to(device))).softmax(1).cpu() for batch in batches]
        return torch.cat(found) if found else torch.zeros(0, len(self.classes))

    def _lies_channels_last(self, device: torch.device) -> bool:
        """Whether convolutions are faster so on this CPU, and the network takes it."""
        network, shape = self.network, self.inputs.shape
        if device.type != "cpu" or not models.channels_last_pays(device, shape, network):
            return False
        if self._takes_channels_last is None:
            takes = models.takes_channels_last(network, shape, training=False)
            self._takes_channels_last = takes
        return self._takes_channels_last

    def predict(self, inputs: Any, batch_size: int = 512) -> Tensor:
        """The most probable class of each input, [N]; ``model.classes`` has the names."""
        return self.predict_proba(inputs, batch_size).argmax(1)

    def export(self, path: Path | str, to: str | None = None) -> Path:
        """Write the model into a file that other programs read; docs/export.md has examples.

        Args:
            path: of the file.
            to: ``"safetensors"``: the weights, with settings, classes and preprocessing, which
                `load` reads back; or a program from inputs as they are stored to probabilities:
                ``"torch"``, of ``torch.export``, or ``"onnx"``. Default: what the name ends in,
                ``.safetensors``, ``.pt2`` or ``.onnx``.
        """
        from ._export import export

        return export(self, Path(path), to)

    def _as_batch(self, inputs: Any) -> Tensor:
        coding = self.inputs.coding
        if coding is not None and not isinstance(inputs, Tensor | np.ndarray):
            if isinstance(inputs, str):
                raise UsageError("give a list of texts, also for one")
            return torch.from_numpy(coding(inputs))
        if self.inputs.kind == "image":
            return self._as_images(inputs)
        batch = _tensor(inputs)
        if tuple(batch.shape[1:]) != tuple(self.inputs.shape) or batch.dim() < 2:
            expected = ", ".join(map(str, self.inputs.shape))
            raise UsageError(
                f"inputs must be [N, {expected}], as in training; they were {list(batch.shape)}"
            )
        return self._features(batch) if self.inputs.mean else self._token_ids(batch)

    def _features(self, batch: Tensor) -> Tensor:
        features = batch.float()
        finite = features.isfinite().flatten(1).all(1)
        if not bool(finite.all()):
            row = int((~finite).nonzero()[0])
            raise UsageError(f"features must be finite numbers in float32; row {row} has others")
        return features

    def _token_ids(self, batch: Tensor) -> Tensor:
        if batch.is_floating_point() or batch.is_complex():
            kind = str(batch.dtype).removeprefix("torch.")
            raise UsageError(f"token ids are integers; they were {kind}")
        most = self.inputs.vocabulary
        if batch.numel() and not 0 <= int(batch.min()) <= int(batch.max()) < most:
            raise UsageError(
                f"token ids must be from 0 to {most - 1}, as in training; they go from "
                f"{int(batch.min())} to {int(batch.max())}"
            )
        return batch.long()

    def _as_images(self, images: Any) -> Tensor:
        batch = _tensor(images)
        channels, height, _ = self.inputs.shape
        shape, sizes = tuple(batch.shape[1:]), (self.inputs.shape, self.inputs.stored)
        if batch.dtype != torch.uint8 and not batch.is_floating_point():
            kind = str(batch.dtype).removeprefix("torch.")
            raise UsageError(f"images are uint8, 0 to 255, or floats, 0 to 1; they were {kind}")
        if batch.dim() == 3 and channels == 1:
            batch = batch.unsqueeze(1)
        elif shape not in sizes and shape in [(*size[1:], channels) for size in sizes]:
            batch = batch.permute(0, 3, 1, 2)
        if batch.dim() == 4 and tuple(batch.shape[1:]) == self.inputs.stored:
            batch = Augment(size=height).center(batch)
        if tuple(batch.shape[1:]) != tuple(self.inputs.shape):
            expected = "x".join(map(str, self.inputs.shape))
            raise UsageError(
                f"images must be [N, C, H, W] of {expected}; their shape was {list(batch.shape)}"
            )
        if batch.is_floating_point() and batch.numel() and not 0 <= float(batch.max()) <= 1:
            raise UsageError("floating-point images go from 0 to 1; give uint8 for 0 to 255")
        return batch


def _channels_last(images: Tensor) -> Tensor:
    """A copy, as of one channel torch takes any layout for this one."""
    return torch.empty_like(images, memory_format=torch.channels_last).copy_(images)


def _tensor(given: Any) -> Tensor:
    """A tensor as it is; anything else as an array of numbers."""
    if isinstance(given, Tensor):
        return given
    try:
        array = np.array(given)
    except ValueError:  # lists of several lengths
        array = np.array(None)
    if array.dtype.kind not in "biuf" or not array.ndim:
        raise UsageError(f"inputs must be an array of numbers, not {type(given).__name__}")
    return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=False))
