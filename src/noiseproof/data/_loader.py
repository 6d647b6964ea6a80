"""Batches made on the device: the data set is there as one tensor, or is decoded as it is read."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._errors import UsageError
from .._seeds import derive
from ._augment import Augment, AugmentParams
from ._dataset import kind_of
from ._stream import ImageFiles, Inputs

# Pixels augmented together: on a GPU many batches, so that there are few kernel launches, on a CPU
# what fits into the cache.
_CHUNK_PIXELS = {"cpu": 1 << 19, "cuda": 1 << 23}
_TEST_BATCH = 2048  # at most


class Batch(NamedTuple):
    """Normalized inputs, their labels, and their indices in the data set."""

    inputs: Tensor
    labels: Tensor
    index: Tensor  # type: ignore[assignment]  # a tuple has a method of that name

    @property
    def images(self) -> Tensor:
        """The inputs, where they are images."""
        return self.inputs


class Loader:
    """Every sample once an epoch, in random order, augmented and normalized on the device.

    The order and the augmentation of an epoch depend only on the seed and on the number of the
    epoch, so any epoch can be repeated. Each iteration over the loader is the next epoch;
    ``epoch(n)`` is a chosen one.

    Args:
        inputs: images, uint8 [N, C, H, W]; features, float32 [N, D, ...]; or token ids, int64
            [N, L], which are not normalized. Image files are decoded by workers, as many batches
            ahead as keeps them busy.
        labels: int64 tensor [N].
        mean: of each channel, images scaled to 0..1, or of each feature.
        std: the standard deviation, likewise.
        batch_size: the last batch of an epoch is smaller where it does not divide N.
        augment: random transforms of images, with new parameters every epoch. Default: none.
        shuffle: whether every epoch has a random order, or that of the data set.
        device: where the inputs are kept and the batches are made.
        dtype: of the normalized inputs of a batch.
        seed: of the order and of the augmentation, which are independent of each other.

    >>> images, labels = torch.zeros(10, 1, 8, 8, dtype=torch.uint8), torch.arange(10)
    >>> augment = Augment(crop=1)
    >>> loader = Loader(images, labels, mean=[0.5], std=[0.5], batch_size=4, augment=augment)
    >>> [len(batch.images) for batch in loader]
    [4, 4, 2]
    """

    def __init__(
        self,
        inputs: Inputs,
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
        kind = kind_of(inputs)
        if kind is None:
            raise UsageError(
                f"images must be a uint8 tensor [N, C, H, W]; "
                f"got {inputs.dtype} {list(inputs.shape)}"
            )
        if labels.shape != inputs.shape[:1]:
            raise UsageError(
                f"{len(inputs)} inputs need as many labels, a tensor [N]; got {list(labels.shape)}"
            )
        channels = 0 if kind == "tokens" else inputs.shape[1]
        if not len(mean) == len(std) == channels:
            raise UsageError(
                f"mean and std have one number for each of {channels} channels; "
                f"got {len(mean)} and {len(std)}"
            )
        if augment and inputs.ndim != 4:
            raise UsageError("crop, flip and rotate are for images; leave them out")
        if batch_size < 1:
            raise UsageError(f"batch_size must be at least 1; got {batch_size}")
        self.device = torch.device(device)
        if isinstance(inputs, ImageFiles):
            self.inputs: Inputs = inputs.on(self.device)
        else:
            self.inputs = inputs.to(self.device)
        self.labels = labels.to(self.device, torch.int64)
        self.batch_size = batch_size
        self.augment = augment or Augment()
        self.shape = self.augment.output_shape(inputs.shape[1:])
        self.shuffle = shuffle
        self.dtype = dtype
        self.seed = seed
        # (x / 255 - mean) / std as one multiplication and one addition; features have no 255
        deviation = torch.tensor(std, dtype=torch.float64)
        scale = 1 / (deviation * (255 if kind == "image" else 1))
        shift = -torch.tensor(mean, dtype=torch.float64) / deviation
        shape = (1, -1, *(1,) * (inputs.ndim - 2))
        self.scale = scale.to(self.device, torch.float32).view(shape) if channels else None
        self.shift = shift.to(self.device, torch.float32).view(shape) if channels else None
        self._next_epoch = 0
        # Where image files are copied and augmented while the device is at those before them.
        self._side = self._begun = None
        if isinstance(inputs, ImageFiles) and self.device.type == "cuda":
            self._side = torch.cuda.Stream(self.device, priority=-1)  # type: ignore[no-untyped-call]
            self._begun = torch.cuda.Event()  # type: ignore[no-untyped-call]

    @property
    def images(self) -> Tensor:
        """The inputs, where they are images."""
        return self.inputs  # type: ignore[return-value]  # image files are like a tensor

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return -(-len(self.inputs) // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        number = self._next_epoch
        self._next_epoch += 1
        return self.epoch(number)

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of one epoch."""
        order, params = self.order(number), self.augment_params(number)
        chunk = self.batch_size * max(1, self.chunk_size() // self.batch_size)
        self.expect(number, chunk)
        for start in range(0, len(order), chunk):
            index = order[start : start + chunk]
            inputs = self.normalize(self.take(index, params[start : start + chunk]))
            labels = self.labels[index]
            parts = (torch.split(t, self.batch_size) for t in (inputs, labels, index))
            yield from map(Batch, *parts)

    def order(self, epoch: int) -> Tensor:
        """The indices of the samples in the order of this epoch."""
        n = len(self.inputs)
        if not self.shuffle:
            return torch.arange(n, device=self.device)
        return torch.randperm(n, generator=self._generator("order", epoch), device=self.device)

    def augment_params(self, epoch: int) -> AugmentParams:
        """The parameters of this epoch's augmentation, for its samples in order."""
        return self.augment.sample_params(len(self.inputs), self._generator("augment", epoch))

    def expect(self, epoch: int, chunk: int, rows: Callable[[int], Tensor] | None = None) -> None:
        """Say that this epoch will be read, so many samples at a time, and then the next one.

        Image files are then decoded before they are asked for; to a tensor it is all the same.

        Args:
            epoch: that begins.
            chunk: how many samples are read at a time.
            rows: of a chunk of so many samples, those that will be read. Default: all.
        """
        if not isinstance(self.inputs, ImageFiles):
            return
        if self._side is not None:  # order and augmentation of the epoch have been drawn
            self._side.wait_stream(torch.cuda.current_stream(self.device))
        parts = self._chunks(epoch, chunk, rows)
        if not self.inputs.expects(next(parts)):
            self.inputs.expect(self._chunks(epoch, chunk, rows))

    def _chunks(
        self, epoch: int, chunk: int, rows: Callable[[int], Tensor] | None
    ) -> Iterator[Tensor]:
        for number in itertools.count(epoch):
            for part in torch.split(self.order(number).cpu(), chunk):
                yield part if rows is None else part[rows(len(part))]

    def take(self, index: Tensor, params: AugmentParams, rows: Tensor | None = None) -> Tensor:
        """The inputs at ``index``, or at these rows of it, augmented, not yet normalized."""
        if self._side is None or self._begun is None:
            return self._take(index, params, rows)
        self._begun.synchronize()  # one chunk ahead and no more, or memory would fill
        with torch.cuda.stream(self._side):
            taken = self._take(index, params, rows)
        main = torch.cuda.current_stream(self.device)
        main.wait_stream(self._side)
        taken.record_stream(main)
        self._begun.record(main)
        return taken

    def _take(self, index: Tensor, params: AugmentParams, rows: Tensor | None) -> Tensor:
        if rows is not None:
            rows = rows.to(self.device)
            index, params = index[rows], params[rows]
        if isinstance(self.inputs, ImageFiles):
            read = self.inputs[index].to(self.device, non_blocking=True)
            return self.augment(read, params)
        return self.augment(self.inputs, params, index)

    def evaluated(self, inputs: Tensor) -> Tensor:
        """Inputs as they are tested on: not augmented, normalized."""
        moved = inputs.to(self.device, non_blocking=True)
        if moved.ndim == 4:  # in one order in memory, as convolutions in another round otherwise
            moved = self.augment.center(moved).contiguous()
        return self.normalize(moved)

    def normalize(self, inputs: Tensor) -> Tensor:
        """Subtract the mean and divide by the standard deviation; token ids stay as they are."""
        if self.scale is None or self.shift is None:
            return inputs
        return torch.addcmul(self.shift, inputs.to(torch.float32), self.scale).to(self.dtype)

    def chunk_size(self) -> int:
        """The number of samples to augment together on this device."""
        pixels = _CHUNK_PIXELS.get(self.device.type, _CHUNK_PIXELS["cpu"])
        shape = self.inputs.shape[2:] if self.inputs.ndim == 4 else self.inputs.shape[1:]
        return max(1, pixels // max(1, math.prod(shape)))  # channels move together

    def test_batch_size(self) -> int:
        """The number of samples to test on together on this device: on a CPU few large ones.

        What a layer computes of them then stays in the cache, and is no fresh memory each time.
        """
        if self.device.type == "cpu":
            return min(_TEST_BATCH, max(16, self.chunk_size() // 8))
        return max(self.batch_size, min(_TEST_BATCH, self.chunk_size()))

    def _generator(self, *purpose: Any) -> torch.Generator:
        return torch.Generator(self.device).manual_seed(derive(self.seed, *purpose))
