"""Downloads: checked, complete or not there at all, and one process at a time."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ._errors import DamagedFileError, DataError, MissingDataError
from ._sources import Published

_ARCHIVE = ".tar.gz"


@contextmanager
def lock(own: Path) -> Iterator[None]:
    """Hold back other processes that would fill the same folder."""
    from filelock import FileLock  # which torch needs too

    own.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(own.with_name(f".{own.name}.lock")):
        yield


@contextmanager
def cannot_write(folder: Path) -> Iterator[None]:
    """Say which folder it was that could not be written to."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"cannot write to {folder} ({error.strerror or error}); name another root, "
            "or set NOISEPROOF_DATA to a folder with room that you may write to"
        ) from error


def archives(published: Published, root: Path) -> bool:
    """Whether somebody put the archives into the root, and left them unpacked."""
    return all(name.endswith(_ARCHIVE) and (root / name).is_file() for name in published.downloads)


def fetch(published: Published, root: Path, own: Path, looked_for: str) -> None:
    """Fill our own folder, from archives in the root or from the mirrors.

    Everything is gathered beside it and moved there at once. What is downloaded when something
    fails stays, and is not downloaded again.
    """
    parts, ready = own.with_name(f".{own.name}.parts"), own.with_name(f".{own.name}.new")
    shutil.rmtree(ready, ignore_errors=True)
    ready.mkdir(parents=True)
    for name, checksum in published.downloads.items():
        if archives(published, root):
            path = root / name
            _check(path, checksum)
        else:
            path = _download(name, checksum, published.mirrors, parts, looked_for)
        if name.endswith(_ARCHIVE):
            _unpack(path, published, ready)
        else:
            shutil.copyfile(path, ready / name)
    _swap(ready, own)
    shutil.rmtree(parts, ignore_errors=True)


def _download(
    name: str, checksum: str, mirrors: tuple[str, ...], folder: Path, looked_for: str
) -> Path:
    try:
        import pooch  # type: ignore[import-untyped]
    except ImportError:
        raise MissingDataError(
            f'{looked_for}; to download it, pip install "noiseproof[data]"'
        ) from None
    try:
        bar = pooch.HTTPDownloader(progressbar=True, chunk_size=1 << 16)
    except ValueError:  # tqdm is missing
        bar = pooch.HTTPDownloader(chunk_size=1 << 16)
    failed = []
    for mirror in mirrors:
        try:
            pooch.retrieve(mirror + name, checksum, fname=name, path=folder, downloader=bar)
            return folder / name
        except (OSError, ValueError) as error:  # no network, no such file; another checksum
            failed.append(f"{mirror}{name} ({_reason(error)})")
    raise MissingDataError(
        f"{looked_for}; and it could not be downloaded: {', '.join(failed)}; connect and load "
        "again, or put the files where they were looked for"
    )


def _reason(error: Exception) -> str:
    """Why a download failed, in a few words: those of requests go on for lines."""
    if isinstance(error, ValueError) and "hash" in str(error):
        return "what came has another checksum"
    response = getattr(error, "response", None)
    if response is not None:
        return f"{response.status_code} {response.reason}"
    if isinstance(error, OSError) and error.strerror:  # a full disk
        return error.strerror
    return {"ConnectionError": "no connection", "SSLError": "no secure connection"}.get(
        type(error).__name__, type(error).__name__
    )


def _check(path: Path, checksum: str) -> None:
    kind, expected = checksum.split(":")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, kind).hexdigest()
    if found != expected:
        raise DamagedFileError(path, f"its {kind} is {found}, not {expected}")


def _unpack(archive: Path, published: Published, target: Path) -> None:
    """Write the files that are expected in an archive, and look at nothing else in it."""
    folder = published.folders[0]
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for name in published.digests:
                content: Any = tar.extractfile(f"{folder}/{name}")
                with content, (target / name).open("wb") as file:
                    shutil.copyfileobj(content, file, 1 << 20)
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, KeyError, TypeError) as error:
        raise DamagedFileError(archive, f"it does not unpack ({error})") from None


def _swap(new: Path, own: Path) -> None:
    """Put a folder in the place of another, in two steps that are each all or nothing."""
    old = own.with_name(f".{own.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if own.exists():
        os.replace(own, old)
    os.replace(new, own)
    shutil.rmtree(old, ignore_errors=True)
