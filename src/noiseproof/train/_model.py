"""A trained network with its preprocessing, as it is used."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .. import models
from .._errors import UsageError
from .._files import write_atomically
from .._imports import is_import
from ..data import Augment, Dataset, ImageFiles, TextCoding, parts_of
from ..results import Folder
from ..runs import ResolvedRun
from ..sources import Kind

MODEL, EMA_MODEL, INPUTS = "model.pt", "model-ema.pt", "model.json"


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
            values: dict[str, Any] = dict(content or {})
            for name in ("shape", "mean", "std", "classes"):
                values[name] = tuple(values[name])
            for name in ("columns", "stored"):
                values[name] = tuple(values.get(name, ()))
            if values.get("coding"):
                values["coding"] = TextCoding(**values["coding"])
            return cls(**values)
        except (KeyError, TypeError, ValueError):
            raise folder.damaged(INPUTS) from None


class Model(nn.Module):
    """A network that takes inputs as they are stored, and its preprocessing.

    ``model(inputs)`` gives logits. Images are uint8 of 0 to 255, or floating point of 0 to 1:
    [N, H, W], [N, C, H, W] or [N, H, W, C], as a tensor or an array. Features and token ids are as
    they were trained on; texts are a list of them.

    Attributes:
        network: the trained network, in eval mode.
        classes: the name of each class.
        inputs: the kind, shape and normalization of what it takes.
    """

    def __init__(self, network: nn.Module, inputs: Inputs) -> None:
        super().__init__()
        self.network = network.eval()
        self.inputs = inputs
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
        batches = torch.split(self._as_batch(inputs), batch_size)
        device = self.get_buffer("mean").device
        found = [self(batch.to(device)).softmax(1).cpu() for batch in batches]
        return torch.cat(found) if found else torch.zeros(0, len(self.classes))

    def predict(self, inputs: Any, batch_size: int = 512) -> Tensor:
        """The most probable class of each input, [N]; ``model.classes`` has the names."""
        return self.predict_proba(inputs, batch_size).argmax(1)

    def _as_batch(self, inputs: Any) -> Tensor:
        coding = self.inputs.coding
        if coding is not None and not isinstance(inputs, Tensor | np.ndarray):
            if isinstance(inputs, str):
                raise UsageError("give a list of texts, also for one")
            return torch.from_numpy(coding(inputs))
        if self.inputs.kind == "image":
            return self._as_images(inputs)
        batch = inputs if isinstance(inputs, Tensor) else torch.from_numpy(np.array(inputs))
        if tuple(batch.shape[1:]) != tuple(self.inputs.shape) or batch.dim() < 2:
            expected = ", ".join(map(str, self.inputs.shape))
            raise UsageError(
                f"inputs must be [N, {expected}], as in training; they were {list(batch.shape)}"
            )
        return batch.float() if self.inputs.mean else batch.long()

    def _as_images(self, images: Any) -> Tensor:
        batch = images if isinstance(images, Tensor) else torch.from_numpy(np.array(images))
        channels, height, width = self.inputs.shape
        if batch.dtype != torch.uint8 and not batch.is_floating_point():
            kind = str(batch.dtype).removeprefix("torch.")
            raise UsageError(f"images are uint8, 0 to 255, or floats, 0 to 1; they were {kind}")
        if batch.dim() == 3 and channels == 1:
            batch = batch.unsqueeze(1)
        elif batch.dim() == 4 and batch.shape[1:] == (height, width, channels) != self.inputs.shape:
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


def load(
    folder: Path | str,
    *,
    network: nn.Module | Callable[..., nn.Module] | None = None,
    ema: bool = False,
) -> Model:
    """The trained model of a run, ready to predict.

    The weights are read without running code, but a network that the run names as ``module:name``
    is imported again, with a warning if its source has changed since.

    Args:
        folder: of the run.
        network: one of the same architecture, or what makes it, for a run that was given a network
            of your own; the weights are loaded into it.
        ema: load the exponential moving average of the weights.

    >>> import tempfile
    >>> from noiseproof import data, train
    >>> digits = data.load("digits")
    >>> with tempfile.TemporaryDirectory() as out:
    ...     result = train.fit(train.Run(epochs=2, device="cpu"), out=out)
    ...     model = train.load(result.folder)
    >>> model.predict(digits.test.images).shape
    torch.Size([360])
    """
    path = Path(folder)
    kept = Folder(path)
    described = kept.read_json("run.json")
    weights = path / (EMA_MODEL if ema else MODEL)
    if described is None or not weights.exists():
        missing = weights.name if described is not None else "run.json"
        hint = "; train it with ema=0.999" if ema else "; a bench keeps models with --keep-models"
        raise UsageError(f"{path} has no {missing}{hint if described is not None else ''}")
    inputs = Inputs.read(kept)
    shape, classes = inputs.shape, len(inputs.classes)
    if network is not None and not isinstance(network, nn.Module):
        network = models.from_factory(network, classes, shape, vocabulary=inputs.vocabulary)
    elif network is None:
        run = ResolvedRun.from_settings(described["settings"])
        if "network" in run.overrides:
            raise UsageError(
                f"the run {path} has a network of your own, {run.model}: give network=..., one of "
                "the same architecture"
            )
        if is_import(run.model):
            network = models.imported(
                run.model, classes, shape, vocabulary=inputs.vocabulary, strict=False
            )
        else:
            network = models.build(run.model, classes, shape=shape, vocabulary=inputs.vocabulary)
    try:
        network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    except Exception as error:
        first = str(error).strip().split("\n")[0]
        raise UsageError(
            f"{weights} cannot be loaded into {type(network).__name__}: {first}"
        ) from None
    return Model(network, inputs)
