"""A trained network with its preprocessing, as it is used."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .. import models
from .._errors import UsageError
from .._files import write_atomically
from ..data import Dataset
from ..results import Folder
from ..runs import ResolvedRun

MODEL, EMA_MODEL, INPUTS = "model.pt", "model-ema.pt", "model.json"


@dataclass(frozen=True)
class Inputs:
    """What a network was trained on: the shape of an image, its normalization, the classes."""

    shape: tuple[int, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    classes: tuple[str, ...]

    @classmethod
    def of(cls, data: Dataset) -> Inputs:
        return cls(tuple(data.train.images.shape[1:]), data.mean, data.std, data.classes)

    def write(self, path: Path) -> None:
        write_atomically(path, json.dumps(asdict(self), indent=1).encode())

    @classmethod
    def read(cls, folder: Folder) -> Inputs:
        content = folder.read_json(INPUTS)
        try:
            return cls(**{name: tuple(content[name]) for name in cls.__dataclass_fields__})  # type: ignore[index]
        except (KeyError, TypeError):
            raise folder.damaged(INPUTS) from None


class Model(nn.Module):
    """A network that takes images as they are stored, and its preprocessing.

    ``model(images)`` gives logits. Images are uint8 of 0 to 255, or floating point of 0 to 1:
    [N, H, W], [N, C, H, W] or [N, H, W, C], as a tensor or an array.

    Attributes:
        network: the trained network, in eval mode.
        classes: the name of each class.
        inputs: the shape and normalization of its images.
    """

    def __init__(self, network: nn.Module, inputs: Inputs) -> None:
        super().__init__()
        self.network = network.eval()
        self.inputs = inputs
        self.classes = inputs.classes
        shape = (1, -1, 1, 1)
        self.register_buffer("mean", torch.tensor(inputs.mean).view(shape), persistent=False)
        self.register_buffer("std", torch.tensor(inputs.std).view(shape), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Logits [N, K] of images [N, C, H, W]."""
        scaled = images / 255 if images.dtype == torch.uint8 else images
        mean, std = self.get_buffer("mean"), self.get_buffer("std")
        logits: Tensor = self.network((scaled.to(mean) - mean) / std)
        return logits

    @torch.no_grad()
    def predict_proba(self, images: Any, batch_size: int = 512) -> Tensor:
        """The probability of each class, [N, K], on the CPU."""
        batches = torch.split(self._as_batch(images), batch_size)
        device = self.get_buffer("mean").device
        found = [self(batch.to(device)).softmax(1).cpu() for batch in batches]
        return torch.cat(found) if found else torch.zeros(0, len(self.classes))

    def predict(self, images: Any, batch_size: int = 512) -> Tensor:
        """The most probable class of each image, [N]; ``model.classes`` has the names."""
        return self.predict_proba(images, batch_size).argmax(1)

    def _as_batch(self, images: Any) -> Tensor:
        batch = images if isinstance(images, Tensor) else torch.from_numpy(np.array(images))
        channels, height, width = self.inputs.shape
        if batch.dtype != torch.uint8 and not batch.is_floating_point():
            kind = str(batch.dtype).removeprefix("torch.")
            raise UsageError(f"images are uint8, 0 to 255, or floats, 0 to 1; they were {kind}")
        if batch.dim() == 3 and channels == 1:
            batch = batch.unsqueeze(1)
        elif batch.dim() == 4 and batch.shape[1:] == (height, width, channels) != self.inputs.shape:
            batch = batch.permute(0, 3, 1, 2)
        if tuple(batch.shape[1:]) != tuple(self.inputs.shape):
            expected = "x".join(map(str, self.inputs.shape))
            raise UsageError(
                f"images must be [N, C, H, W] of {expected}; their shape was {list(batch.shape)}"
            )
        if batch.is_floating_point() and batch.numel() and not 0 <= float(batch.max()) <= 1:
            raise UsageError("floating-point images go from 0 to 1; give uint8 for 0 to 255")
        return batch


def load(folder: Path | str, *, network: nn.Module | None = None, ema: bool = False) -> Model:
    """The trained model of a run, ready to predict.

    Args:
        folder: of the run.
        network: one of the same architecture, for a run with a network of your own; the weights
            are loaded into it.
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
    if network is None:
        run = ResolvedRun.from_settings(described["settings"])
        if "network" in run.overrides:
            raise UsageError(
                f"the run {path} has a network of your own, {run.model}: give network=..., one of "
                "the same architecture"
            )
        channels, size = inputs.shape[:2]
        network = models.build(run.model, len(inputs.classes), channels, image_size=size)
    try:
        network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    except Exception as error:
        first = str(error).strip().split("\n")[0]
        raise UsageError(
            f"{weights} cannot be loaded into {type(network).__name__}: {first}"
        ) from None
    return Model(network, inputs)
