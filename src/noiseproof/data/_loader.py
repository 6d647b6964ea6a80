"""Batches that are made where they are used: the images stay on the device as one uint8 tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._seeds import derive
from ._augment import Augment, Draws

# Augmenting many batches at once spares a GPU thousands of small kernels; on a CPU what is worked
# on should fit the cache.
_PIXELS_AT_ONCE = {"cpu": 1 << 19, "cuda": 1 << 23}


class Batch(NamedTuple):
    """Normalised images, their labels, and which samples of the data set they are."""

    images: Tensor
    labels: Tensor
    index: Tensor  # type: ignore[assignment]  # a tuple has a method of that name


class Loader:
    """Every sample once an epoch, in random order, augmented and normalised on the device.

    What an epoch looks like follows from the seed and the epoch's number alone, so any epoch can
    be had again: iterating goes from each epoch to the next, ``epoch(n)`` gives a chosen one.

    Args:
        images: uint8 tensor [N, C, H, W].
        labels: int64 tensor [N].
        mean: of each channel, images scaled to 0..1.
        std: of each channel, likewise.
        batch_size: the last batch of an epoch is shorter where it does not divide N.
        augment: random transforms, drawn anew every epoch.
        shuffle: a random order every epoch; False keeps the order of the data set.
        device: where the images are kept and the batches made.
        dtype: of the batches' images.
        seed: of the order and the augmentation, which are drawn independently.

    >>> images, labels = torch.zeros(10, 1, 8, 8, dtype=torch.uint8), torch.arange(10)
    >>> augment = Augment(crop=1)
    >>> loader = Loader(images, labels, mean=[0.5], std=[0.5], batch_size=4, augment=augment)
    >>> [len(batch.images) for batch in loader]
    [4, 4, 2]
    """

    def __init__(
        self,
        images: Tensor,
        labels: Tensor,
        *,
        mean: Sequence[float],
        std: Sequence[float],
        batch_size: int = 128,
        augment: Augment | None = None,
        shuffle: bool = True,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
    ) -> None:
        if images.dtype != torch.uint8 or images.dim() != 4:
            raise ValueError(
                f"images must be a uint8 tensor [N, C, H, W]; "
                f"got {images.dtype} {list(images.shape)}"
            )
        if labels.shape != images.shape[:1]:
            raise ValueError(
                f"{len(images)} images need as many labels, a tensor [N]; got {list(labels.shape)}"
            )
        if not len(mean) == len(std) == images.shape[1]:
            raise ValueError(
                f"mean and std have one number for each of {images.shape[1]} channels; "
                f"got {len(mean)} and {len(std)}"
            )
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1; got {batch_size}")
        self.device = torch.device(device)
        self.images = images.to(self.device)
        self.labels = labels.to(self.device, torch.int64)
        self.batch_size = batch_size
        self.augment = augment or Augment()
        self.shuffle = shuffle
        self.dtype = dtype
        self.seed = seed
        # (x / 255 - mean) / std as one multiplication and one addition
        scale = 1 / (255 * torch.tensor(std, dtype=torch.float64))
        shift = -torch.tensor(mean, dtype=torch.float64) / torch.tensor(std, dtype=torch.float64)
        self.scale = scale.to(self.device, torch.float32).view(1, -1, 1, 1)
        self.shift = shift.to(self.device, torch.float32).view(1, -1, 1, 1)
        self._next_epoch = 0

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return -(-len(self.images) // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        number = self._next_epoch
        self._next_epoch += 1
        return self.epoch(number)

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of one epoch."""
        order, draws = self.order(number), self.draws(number)
        at_once = self.batch_size * max(1, self.samples_at_once() // self.batch_size)
        for start in range(0, len(order), at_once):
            index = order[start : start + at_once]
            images = self.normalise(self.pixels(index, draws[start : start + at_once]))
            labels = self.labels[index]
            parts = (torch.split(t, self.batch_size) for t in (images, labels, index))
            yield from map(Batch, *parts)

    def order(self, epoch: int) -> Tensor:
        """The samples in the order of this epoch."""
        n = len(self.images)
        if not self.shuffle:
            return torch.arange(n, device=self.device)
        return torch.randperm(n, generator=self._generator("order", epoch), device=self.device)

    def draws(self, epoch: int) -> Draws:
        """What this epoch's augmentation draws, by place in its order."""
        return self.augment.draw(len(self.images), self._generator("augment", epoch))

    def pixels(self, index: Tensor, draws: Draws) -> Tensor:
        """The chosen images as uint8, augmented."""
        return self.augment(self.images, draws, index)

    def normalise(self, pixels: Tensor) -> Tensor:
        """Zero mean and unit deviation, by the data set's own numbers."""
        return torch.addcmul(self.shift, pixels.to(torch.float32), self.scale).to(self.dtype)

    def samples_at_once(self) -> int:
        """How many samples are best augmented together on this device."""
        pixels = _PIXELS_AT_ONCE.get(self.device.type, _PIXELS_AT_ONCE["cpu"])
        return max(1, pixels // max(1, self.images.shape[2] * self.images.shape[3]))

    def _generator(self, *purpose: Any) -> torch.Generator:
        return torch.Generator(self.device).manual_seed(derive(self.seed, *purpose))
