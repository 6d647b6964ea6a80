"""Batches made on the device: the data set stays there as one uint8 tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._errors import UsageError
from .._seeds import derive
from ._augment import Augment, AugmentParams

# Pixels augmented together: on a GPU many batches, so that there are few kernel launches, on a CPU
# what fits into the cache.
_CHUNK_PIXELS = {"cpu": 1 << 19, "cuda": 1 << 23}


class Batch(NamedTuple):
    """Normalized images, their labels, and their indices in the data set."""

    images: Tensor
    labels: Tensor
    index: Tensor  # type: ignore[assignment]  # a tuple has a method of that name


class Loader:
    """Every sample once an epoch, in random order, augmented and normalized on the device.

    The order and the augmentation of an epoch depend only on the seed and on the number of the
    epoch, so any epoch can be repeated. Each iteration over the loader is the next epoch;
    ``epoch(n)`` is a chosen one.

    Args:
        images: uint8 tensor [N, C, H, W].
        labels: int64 tensor [N].
        mean: of each channel, images scaled to 0..1.
        std: of each channel, likewise.
        batch_size: the last batch of an epoch is smaller where it does not divide N.
        augment: random transforms, with new parameters every epoch. Default: none.
        shuffle: whether every epoch has a random order, or that of the data set.
        device: where the images are kept and the batches are made.
        dtype: of the images of a batch.
        seed: of the order and of the augmentation, which are independent of each other.

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
            raise UsageError(
                f"images must be a uint8 tensor [N, C, H, W]; "
                f"got {images.dtype} {list(images.shape)}"
            )
        if labels.shape != images.shape[:1]:
            raise UsageError(
                f"{len(images)} images need as many labels, a tensor [N]; got {list(labels.shape)}"
            )
        if not len(mean) == len(std) == images.shape[1]:
            raise UsageError(
                f"mean and std have one number for each of {images.shape[1]} channels; "
                f"got {len(mean)} and {len(std)}"
            )
        if batch_size < 1:
            raise UsageError(f"batch_size must be at least 1; got {batch_size}")
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
        order, params = self.order(number), self.augment_params(number)
        chunk = self.batch_size * max(1, self.chunk_size() // self.batch_size)
        for start in range(0, len(order), chunk):
            index = order[start : start + chunk]
            images = self.normalize(self.pixels(index, params[start : start + chunk]))
            labels = self.labels[index]
            parts = (torch.split(t, self.batch_size) for t in (images, labels, index))
            yield from map(Batch, *parts)

    def order(self, epoch: int) -> Tensor:
        """The indices of the samples in the order of this epoch."""
        n = len(self.images)
        if not self.shuffle:
            return torch.arange(n, device=self.device)
        return torch.randperm(n, generator=self._generator("order", epoch), device=self.device)

    def augment_params(self, epoch: int) -> AugmentParams:
        """The parameters of this epoch's augmentation, for its samples in order."""
        return self.augment.sample_params(len(self.images), self._generator("augment", epoch))

    def pixels(self, index: Tensor, params: AugmentParams) -> Tensor:
        """The augmented images at ``index``, as uint8."""
        return self.augment(self.images, params, index)

    def normalize(self, pixels: Tensor) -> Tensor:
        """Subtract the mean and divide by the standard deviation of each channel."""
        return torch.addcmul(self.shift, pixels.to(torch.float32), self.scale).to(self.dtype)

    def chunk_size(self) -> int:
        """The number of samples to augment together on this device."""
        pixels = _CHUNK_PIXELS.get(self.device.type, _CHUNK_PIXELS["cpu"])
        return max(1, pixels // max(1, self.images.shape[2] * self.images.shape[3]))

    def _generator(self, *purpose: Any) -> torch.Generator:
        return torch.Generator(self.device).manual_seed(derive(self.seed, *purpose))
