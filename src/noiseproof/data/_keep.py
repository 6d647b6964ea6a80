"""Where decoded images are kept: as one tensor, in part, or in a file; decided by what is free."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._errors import UsageError, require
from .._files import PART, write_atomically
from ..sources import Problems
from ._download import lock
from ._store import ImageStore, workers
from ._stream import ImageFiles, Inputs

STREAM = ("auto", "yes", "no")
_SHARE = 0.4  # of free memory that images may take: a part held out is a copy, networks need some
_UNKNOWN = 4 << 30  # bytes that are taken to be free where nobody says
_FORMAT = 2  # of cache files
_LARGE = 1 << 30  # bytes of a cache whose writing takes a while


class StreamingNote(UserWarning):
    """What is done with images that take much memory."""


@dataclass(frozen=True)
class Keeping:
    """How decoded images are kept; nothing here changes a number.

    Attributes:
        stream: ``"yes"`` decodes images as they are read, ``"no"`` keeps them all in memory, and
            ``"auto"`` does so where they fit.
        cache: a folder for files of decoded images, which the next run reads.
        device: that images are copied to where they fit.
    """

    stream: str = "auto"
    cache: Path | None = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def __post_init__(self) -> None:
        if self.stream not in STREAM:
            raise UsageError(f"stream is one of {', '.join(STREAM)}; it was {self.stream!r}")

    def streams(self, name: str, counts: Sequence[int], shape: Sequence[int]) -> bool:
        """Whether images are decoded as they are read; where that is decided here, it is said."""
        if self.stream != "auto":
            return self.stream == "yes"
        needed = sum(counts) * int(np.prod(shape))
        free, where = free_memory(), "this machine"
        if self.device.type == "cuda":
            on_gpu = torch.cuda.mem_get_info(self.device)[0]
            free, where = min((on_gpu, "the GPU"), (free, where))
        if needed <= _SHARE * free:
            return False
        size = "x".join(map(str, shape))
        kept = f"kept in {self.cache}" if self.cache else f"{_gb(self.in_memory())} are kept"
        warnings.warn(
            f"{name}: {sum(counts):,} images of {size} take {_gb(needed)}, and {where} has "
            f"{_gb(free)} of memory free: they are decoded as they are read, by {workers()} "
            f"workers, and {kept}" + ("" if self.cache else "; --cache DIR decodes them once"),
            StreamingNote,
            stacklevel=2,
        )
        return True

    def in_memory(self) -> int:
        """How many bytes of decoded images to keep while they stream."""
        return 0 if self.cache else int(_SHARE * free_memory())


def _gb(count: float) -> str:
    return f"{count / 1e9:,.1f} GB"


def free_memory() -> int:
    """Bytes of main memory that this process could still take."""
    free = []
    with suppress(OSError, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free += [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    with suppress(OSError, ValueError):  # the limit of a container
        group = Path("/sys/fs/cgroup")
        used = int((group / "memory.current").read_text())
        free.append(max(0, int((group / "memory.max").read_text()) - used))
    return min(free, default=_UNKNOWN)


@dataclass(frozen=True, eq=False)
class Kept:
    """Images as they were kept.

    Attributes:
        inputs: resident, or decoded where they are read.
        readable: the indices of the files that could be read; None where all of them can, or where
            not all were looked at.
        counts: of each channel, how often each of the 256 values occurs, if all were looked at.
    """

    inputs: Inputs
    readable: list[int] | None
    counts: NDArray[np.int64] | None


def keep(
    files: Sequence[str | Path],
    shape: Sequence[int],
    places: Sequence[str] | None,
    problems: Problems,
    *,
    digest: str,
    streams: bool,
    how: Keeping,
    look_at_all: bool,
) -> Kept:
    """Image files as inputs.

    Args:
        files: of the images.
        shape: channels, height and width that they are brought to.
        places: what to call each in a message; by default its file.
        problems: where those are reported that cannot be read.
        digest: of the files, their order and their content.
        streams: whether they are decoded as they are read.
        how: where they are kept.
        look_at_all: whether to decode all of them once, so that each one that cannot be read is
            found before anything is trained.
    """
    image_bytes = int(np.prod(shape))
    count = how.in_memory() // max(1, image_bytes) if streams else len(files)
    store = ImageStore(files, shape, places, digest=_digest(digest, shape), keep=count)
    counts = None
    bad: list[int] = []
    if how.cache is not None:
        cache = _Cache(Path(how.cache).expanduser(), store)
        counts = cache.open()
        if counts is None:
            counts = cache.fill(Problems(problems.skip))  # what is left out is reported below
    if not streams or look_at_all:
        known = counts is not None and streams and how.cache is not None
        counts, bad = (counts, _unreadable(store, problems)) if known else _pass(store, problems)
    if len(bad) == len(files):
        raise UsageError(f"none of {len(files)} images can be read")
    readable = np.setdiff1d(np.arange(len(files)), bad).tolist() if bad else None
    if not streams:
        images = torch.from_numpy(store.memory).permute(0, 3, 1, 2)
        return Kept(images if readable is None else images[readable], readable, counts)
    found = ImageFiles(store)
    if readable is not None:
        found = found.select(torch.tensor(readable))
    return Kept(found, readable, counts)


def _pass(store: ImageStore, problems: Problems) -> tuple[NDArray[np.int64], list[int]]:
    """Decode everything once: how often each value occurs, and what cannot be read."""
    counts = np.zeros((store.shape[0], 256), np.int64)
    checksums = np.zeros(len(store.files), np.uint32)
    bad: list[int] = []
    for part in store.blocks():
        found = part.wait()
        store.report(found, problems)
        bad += [at for at, _ in found]
        checksums[part.index] = part.checksums()
        counts += part.counts()
    if store.cached is None:
        store.checksums = checksums
    return counts, bad


def _unreadable(store: ImageStore, problems: Problems) -> list[int]:
    """Of a store with a cache, what could not be read when that was written, nor can be now."""
    assert store.checksums is not None
    bad = []
    image = np.empty(store.stored, np.uint8)
    for at in np.flatnonzero(store.checksums == _NONE).tolist():
        problem = store.load(at, image)
        if problem is not None:
            store.report([(at, problem)], problems)
            bad.append(at)
    return bad


def _digest(content: str, shape: Sequence[int]) -> str:
    """Of files that are decoded by this Pillow to this shape."""
    version = require("PIL", "images", "an image file").__version__
    told = json.dumps([_FORMAT, content, list(shape), version])
    return hashlib.sha256(told.encode()).hexdigest()[:24]


_NONE = np.uint32(0)  # in place of the checksum of an image that could not be read


class _Cache:
    """A file of decoded images, uint8 [N, H, W, C], and beside it an index with their checksums.

    Both are named by the digest of the images. The index is written last, so that where there is
    one the images are whole; an image that does not have its checksum is decoded again.
    """

    def __init__(self, folder: Path, store: ImageStore) -> None:
        self.store = store
        self.images = folder / f"{store.digest}.images"
        self.index = folder / f"{store.digest}.npz"
        self.shape = (len(store.files), *store.stored)

    def open(self) -> NDArray[np.int64] | None:
        """Read what an earlier run wrote: how often each value occurs; None if there is none."""
        try:
            with np.load(io.BytesIO(self.index.read_bytes()), allow_pickle=False) as found:
                shape, checksums, counts = (found[k] for k in ("shape", "checksums", "counts"))
            if shape.tolist() != list(self.shape) or checksums.shape != self.shape[:1]:
                return None
            if counts.shape != (self.shape[3], 256) or checksums.dtype != np.uint32:
                return None
            if self.images.stat().st_size != int(np.prod(self.shape)):
                return None
            self.store.cached = np.memmap(self.images, np.uint8, "r", shape=self.shape)
            self.store.checksums = checksums
            return np.asarray(counts, np.int64)
        except Exception:  # missing, damaged, or not ours: it is written anew
            return None

    def fill(self, problems: Problems) -> NDArray[np.int64]:
        """Decode everything into the file; another process that does so is waited for."""
        needed = int(np.prod(self.shape))
        folder = self.images.parent
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is a file; --cache names a folder")
        folder.mkdir(parents=True, exist_ok=True)
        with lock(self.images):
            if (counts := self.open()) is not None:
                return counts
            if needed > (free := shutil.disk_usage(folder).free):
                raise UsageError(
                    f"the decoded images take {_gb(needed)}, and {folder} has {_gb(free)} free: "
                    "name another folder with --cache, or none"
                )
            if needed > _LARGE:
                warnings.warn(
                    f"{self.shape[0]:,} images are decoded once into {folder}, {_gb(needed)}",
                    StreamingNote,
                    stacklevel=2,
                )
            part = self.images.with_name(self.images.name + PART)
            try:
                counts, index = self._write(part, problems)
                part.replace(self.images)
            finally:
                part.unlink(missing_ok=True)
            write_atomically(self.index, index)
            self.open()
            return counts

    def _write(self, path: Path, problems: Problems) -> tuple[NDArray[np.int64], bytes]:
        checksums = np.zeros(self.shape[0], np.uint32)
        counts = np.zeros((self.shape[3], 256), np.int64)
        with path.open("wb") as file:
            for part in self.store.blocks():
                self.store.report(part.wait(), problems)
                checksums[part.index] = part.checksums()
                counts += part.counts()
                file.write(part.pixels.numpy().data)
        content = io.BytesIO()
        arrays: dict[str, Any] = {"shape": np.array(self.shape), "checksums": checksums}
        np.savez(content, counts=counts, **arrays)
        return counts, content.getvalue()
