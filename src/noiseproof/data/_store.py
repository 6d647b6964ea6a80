"""Image files, decoded by workers, and what is kept of them.

The workers are threads, which on many cores hand many files on to a process each.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import functools
import os
import threading
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .. import _torchrun
from .._errors import require
from ..sources import Problems
from ..sources._decode import UnreadableError, read_image
from ..sources._decoder import SPACE, Decoder

AHEAD = 2  # parts that are decoded before they are asked for, or more where parts are small
_MOST_TOGETHER = 16  # images that a worker is handed at once
_FEWEST_TOGETHER = 8  # where it hands them on
_BLOCK = 1 << 26  # bytes that are read together in a pass over all images
_Problem = tuple[int, str]
# From so many workers on, and for so many files, each has a process, which is faster there
# (benchmarks/decoders.py) and takes a moment to start.
_APART_WORKERS, _APART_FILES = 4, 1000


def workers() -> int:
    """How many threads decode: one for each core that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = (os.cpu_count() or 1) if affinity is None else len(affinity(0))
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "") if _torchrun.place() else ""
    return max(1, cores // (int(ranks) if ranks.isdecimal() and int(ranks) else 1))


class _Mine(threading.local):
    """What a thread has: one of the pool its process, once it needs one."""

    decodes = False
    decoder: Decoder | None = None


_mine = _Mine()


def _begin_thread() -> None:
    _mine.decodes = True


@functools.cache
def _pool(process: int) -> concurrent.futures.ThreadPoolExecutor:
    """The threads of this process; one that it was forked from has its own."""
    return concurrent.futures.ThreadPoolExecutor(workers(), "decode", initializer=_begin_thread)


def _decoder() -> Decoder | None:
    """The process of this thread, if it can have one."""
    if _mine.decodes and _mine.decoder is None:
        try:
            _mine.decoder = Decoder()
            atexit.register(_mine.decoder.close)
        except OSError:
            _mine.decodes = False  # by a process
    return _mine.decoder if _mine.decodes else None


def checksum(image: NDArray[np.uint8]) -> int:
    """Of a decoded image; never 0, which stands for one that could not be read."""
    return zlib.crc32(image.data) or 1


def _read(file: str, shape: Sequence[int], into: NDArray[np.uint8]) -> str | None:
    """Write an image; what is wrong with it, if it cannot be read."""
    try:
        into[...] = read_image(file, shape)
    except UnreadableError as error:
        into[...] = 0
        return str(error)
    return None


def value_counts(pixels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How often each of the 256 values occurs in each channel of [N, H, W, C]."""
    channels = torch.from_numpy(pixels).flatten(0, 2).unbind(1)
    return torch.stack([torch.bincount(c, minlength=256) for c in channels]).numpy()


class ImageStore:
    """Image files, and what is kept of them once they are decoded.

    Args:
        files: of the images.
        shape: channels, height and width that they are brought to.
        places: what to call each in a message.
        digest: of the files and of how they are decoded.
        keep: how many of the first ones to keep in memory. Every epoch reads each image once, so
            that any fixed part is worth as much as any other, and none has to make room.
    """

    def __init__(
        self,
        files: Sequence[str | Path],
        shape: Sequence[int],
        places: Sequence[str] | None = None,
        *,
        digest: str = "",
        keep: int = 0,
    ) -> None:
        require("PIL.Image", "images", "an image file")
        self.files = files
        self.shape = tuple(shape)
        self.places = places
        self.digest = digest
        self.stored = (*self.shape[1:], self.shape[0])  # channels last, as decoders give them
        self.memory = np.empty((min(keep, len(files)), *self.stored), np.uint8)
        self.kept = np.zeros(len(self.memory), np.bool_)
        self.cached: NDArray[np.uint8] | None = None  # [N, H, W, C], in a file
        self.checksums: NDArray[np.uint32] | None = None  # of all, once they have been decoded
        self._most = min(_MOST_TOGETHER, SPACE // max(1, int(np.prod(self.shape))))
        many = workers() >= _APART_WORKERS and len(files) >= _APART_FILES
        self.apart = many and self._most > 0

    def place(self, at: int) -> str:
        """What a message calls an image: its file, or its line in a table with its file."""
        file = str(self.files[at])
        if self.places is None or file in self.places[at]:
            return file if self.places is None else self.places[at]
        return f"{self.places[at]} ({file})"

    def load(self, at: int, into: NDArray[np.uint8]) -> str | None:
        """Write an image [H, W, C]; what is wrong with it, if it cannot be read."""
        if self._load_kept(at, into):
            return None
        (problem,) = self._decode([at], into[None])
        return problem

    def _load_kept(self, at: int, into: NDArray[np.uint8]) -> bool:
        """Whether an image is in memory or in the cache."""
        if at < len(self.kept) and self.kept[at]:
            into[...] = self.memory[at]
            return True
        if not self._load_cached(at, into):
            return False
        self._keep(at, into)
        return True

    def _keep(self, at: int, image: NDArray[np.uint8]) -> None:
        if at < len(self.kept):
            self.memory[at] = image
            self.kept[at] = True

    def _decode(self, index: Sequence[int], into: NDArray[np.uint8]) -> list[str | None]:
        """Write images [N, H, W, C]; of each what is wrong with it, if it cannot be read."""
        files = [os.path.abspath(self.files[at]) for at in index]
        problems = None
        decoder = _decoder() if self.apart and files else None
        if decoder is not None:
            try:
                into[...], problems = decoder.decode(files, self.shape)
            except OSError:  # it was killed
                _mine.decodes = False
        if problems is None:
            problems = [_read(file, self.shape, row) for file, row in zip(files, into, strict=True)]
        for at, row, problem in zip(index, into, problems, strict=True):
            if problem is None:
                self._keep(at, row)
        return problems

    def _load_cached(self, at: int, into: NDArray[np.uint8]) -> bool:
        """Whether the cache has an image, which is not so if it could not be read or is damaged."""
        if self.cached is None or self.checksums is None:
            return False
        into[...] = self.cached[at]
        return checksum(into) == int(self.checksums[at])

    def load_many(self, index: Sequence[int], into: NDArray[np.uint8], count: bool) -> _Loaded:
        rest = [n for n, at in enumerate(index) if not self._load_kept(at, into[n])]
        missing = [index[n] for n in rest]
        rows = into if len(rest) == len(index) else np.empty((len(rest), *self.stored), np.uint8)
        found = zip(missing, self._decode(missing, rows), strict=True)
        problems = [(at, problem) for at, problem in found if problem is not None]
        if rows is not into:
            into[rest] = rows
        if not count:
            return _Loaded(problems)
        bad = {at for at, _ in problems}
        good = [number for number, at in enumerate(index) if at not in bad]
        checksums = [0 if at in bad else checksum(row) for at, row in zip(index, into, strict=True)]
        return _Loaded(problems, checksums, value_counts(into[good] if bad else into))

    def begin(self, index: NDArray[np.int64], *, pin: bool = False, count: bool = False) -> Part:
        """Have images decoded, and their pixels counted; `Part.wait` waits for it."""
        pixels = torch.empty((len(index), *self.stored), dtype=torch.uint8, pin_memory=pin)
        rows = pixels.numpy()
        fewest = _FEWEST_TOGETHER if self.apart else 1
        together = max(1, min(self._most, max(fewest, len(index) // (4 * workers()))))
        pool = _pool(os.getpid())
        futures = [
            pool.submit(
                self.load_many, index[i : i + together].tolist(), rows[i : i + together], count
            )
            for i in range(0, len(index), together)
        ]
        return Part(index, pixels, futures)

    def blocks(self) -> Iterator[Part]:
        """All images in their order, some at a time, with their pixels counted."""
        size = max(1, _BLOCK // max(1, int(np.prod(self.shape))))
        numbers = np.arange(len(self.files), dtype=np.int64)
        parts = (numbers[i : i + size] for i in range(0, len(numbers), size))
        started: deque[Part] = deque()
        for index in parts:
            started.append(self.begin(index, count=True))
            if len(started) > AHEAD:
                yield started.popleft()
        yield from started

    def report(self, found: Iterable[_Problem], problems: Problems) -> None:
        for at, problem in found:
            problems.add(self.place(at), problem)


class _Loaded(NamedTuple):
    """What a worker says of images that it has decoded."""

    problems: list[_Problem]
    checksums: Sequence[int] = ()
    counts: NDArray[np.int64] | None = None


@dataclass(frozen=True, eq=False)
class Part:
    """Some images that are being decoded, uint8 [n, H, W, C]."""

    index: NDArray[np.int64]
    pixels: Tensor
    futures: list[concurrent.futures.Future[_Loaded]]

    @property
    def images(self) -> Tensor:
        """The same memory as [n, C, H, W]."""
        return self.pixels.permute(0, 3, 1, 2)

    def wait(self) -> list[_Problem]:
        """Those that could not be read, when all are done."""
        return [problem for future in self.futures for problem in future.result().problems]

    def checksums(self) -> list[int]:
        """Of each that could be read, and 0 of others, if they were counted."""
        return [found for future in self.futures for found in future.result().checksums]

    def counts(self) -> NDArray[np.int64]:
        """The `value_counts` of those that could be read, likewise."""
        found = (future.result().counts for future in self.futures)
        return np.sum([counts for counts in found if counts is not None], 0)  # type: ignore[no-any-return]
