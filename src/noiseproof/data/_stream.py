"""Image files like a tensor that is decoded where it is read, ahead of who reads it."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._errors import UsageError
from ..sources import Problems
from ._store import AHEAD, ImageStore, Part, checksum, workers

_AHEAD_IMAGES = 16  # that are decoded before they are asked for, for each worker


class ImageFiles:
    """Images of a store like a tensor uint8 [N, C, H, W] in main memory, with its channels last.

    ``images[index]`` is a tensor. Who knows what will be read next says so by `expect`, and is
    then served by workers that are ahead. `select` gives others of the same store.

    Attributes:
        shape: [N, C, H, W], as of a tensor.
        dtype: uint8.
        pin: whether what is read lies in memory that a GPU copies from by itself.
    """

    dtype = torch.uint8
    ndim = 4
    device = torch.device("cpu")
    is_cuda = False

    def __init__(
        self, store: ImageStore, index: NDArray[np.int64] | None = None, *, pin: bool = False
    ) -> None:
        self.store = store
        self.index = np.arange(len(store.files), dtype=np.int64) if index is None else index
        self.shape = torch.Size((len(self.index), *store.shape))
        self.pin = pin
        self._expected: Iterator[NDArray[np.int64]] = iter(())
        self._parts: deque[Part] = deque()

    def __len__(self) -> int:
        return len(self.index)

    def select(self, index: Tensor | slice) -> ImageFiles:
        """The images at these indices, of the same store, with an order of reading of its own."""
        at = index if isinstance(index, slice) else _host(index)
        return ImageFiles(self.store, self.index[at], pin=self.pin)

    def on(self, device: torch.device) -> ImageFiles:
        """The same for one who copies them there, likewise with an order of its own."""
        return ImageFiles(self.store, self.index, pin=device.type == "cuda")

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        """The images at these indices, decoded."""
        chosen = self.index[index if isinstance(index, slice) else _host(index)]
        if self._parts and np.array_equal(self._parts[0].index, chosen):
            part = self._parts.popleft()
            self._start_ahead()
        else:
            part = self.store.begin(chosen, pin=self.pin)
        self.store.report(part.wait(), Problems(skip=False))
        return part.images

    def expect(self, parts: Iterable[Tensor]) -> None:
        """Say which indices will be asked for, in this order; what was said before is forgotten."""
        self._forget()
        self._expected = (self.index[_host(part)] for part in parts)
        self._start_ahead()

    def expects(self, index: Tensor) -> bool:
        """Whether these are what is next in the order that `expect` was told."""
        chosen = self.index[_host(index)]
        return bool(self._parts) and np.array_equal(self._parts[0].index, chosen)

    def _forget(self) -> None:
        for part in self._parts:
            for future in part.futures:
                future.cancel()
        self._parts.clear()

    def __del__(self) -> None:  # or the end of the program would wait for what nobody reads
        self._forget()

    def _start_ahead(self) -> None:
        """Keep workers busy; and no more in memory than that takes."""
        fewest = _AHEAD_IMAGES * workers()
        while len(self._parts) < AHEAD or sum(len(p.index) for p in self._parts) < fewest:
            index = next(self._expected, None)
            if index is None:
                return
            self._parts.append(self.store.begin(index, pin=self.pin))


def _host(index: Tensor) -> NDArray[Any]:
    return index.detach().cpu().numpy()


Inputs = Tensor | ImageFiles
"""Samples, resident or decoded where they are read."""


def select(inputs: Inputs, index: Tensor | slice) -> Inputs:
    """Some of the inputs; of image files without decoding any."""
    return inputs.select(index) if isinstance(inputs, ImageFiles) else inputs[index]


def parts_of(inputs: Inputs, size: int) -> Iterator[Tensor]:
    """The inputs in their order, a part at a time; of image files the next ones are decoded."""
    if not isinstance(inputs, ImageFiles):
        yield from torch.split(inputs, size)
        return
    parts = torch.split(torch.arange(len(inputs)), size)
    inputs.expect(parts)
    for part in parts:
        yield inputs[part]


def content_digest(images: Inputs) -> str:
    """Of the pixels of images, the same whether they are resident or in files.

    Of files that have not been decoded before (`decoded_before`) it is one of what they are.
    """
    if isinstance(images, ImageFiles):
        if images.store.checksums is None:
            told = repr((images.store.digest, images.index.tolist()))
            return hashlib.sha256(told.encode()).hexdigest()
        checksums = images.store.checksums[images.index]
    else:
        pixels = (image.permute(1, 2, 0).contiguous().cpu().numpy() for image in images)
        checksums = np.fromiter(map(checksum, pixels), np.uint32, len(images))
    return hashlib.sha256(repr(tuple(images.shape)).encode() + checksums.tobytes()).hexdigest()


def decoded_before(images: Inputs) -> bool:
    """Whether all have been decoded once, so that their pixels are known."""
    return not isinstance(images, ImageFiles) or images.store.checksums is not None


def resident(inputs: Inputs, what: str) -> Tensor:
    """The inputs as a tensor.

    Raises:
        UsageError: they are decoded as they are read.
    """
    if isinstance(inputs, ImageFiles):
        raise UsageError(f"{what} needs all images in memory at once: give --stream no")
    return inputs
