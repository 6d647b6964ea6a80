"""What tells one source from another: a digest of its content and of how it is read."""

from __future__ import annotations

import concurrent.futures
import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from .._errors import UsageError
from ._source import LABEL, Source

_VERSION = 1  # of what is made of a file: when that changes, runs on it are others
_DIGEST = 10  # hexadecimal digits in a name


def bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror})") from None


class Digest:
    """Of how a source is read and of what was read."""

    def __init__(self, source: Source) -> None:
        self._hash = hashlib.sha256()
        told = ("form", "label", "text", "image", "truth", "ignore", "image_size")
        values = {name: getattr(source, name) for name in told}
        if source.form in ("csv", "parquet") and source.label == LABEL:
            values["label"] = ""  # as it is by default
        self.add(repr([_VERSION, *values.values()]).encode())

    def add(self, content: bytes) -> None:
        self._hash.update(hashlib.sha256(content).digest())

    def add_files(self, files: Sequence[Path], names: Iterable[str]) -> None:
        """The names and the contents of files; one that cannot be read counts as empty."""
        with concurrent.futures.ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            for name, found in zip(names, pool.map(_digest_of_file, files), strict=True):
                self._hash.update(name.encode(errors="surrogateescape") + b"\0" + found)

    def name(self, source: Source) -> str:
        return f"{source.name}@{self._hash.hexdigest()[:_DIGEST]}"


def _digest_of_file(path: Path) -> bytes:
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return b""
