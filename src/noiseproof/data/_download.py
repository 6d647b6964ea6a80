"""Downloads: verified, all files or none, and by one process at a time."""

from __future__ import annotations

import errno
import gzip
import hashlib
import itertools
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..catalogue import FileSet, has_archives
from ._contents import is_file
from ._errors import OTHER_ROOT, DamagedFileError, DataError, MissingDataError

if TYPE_CHECKING:
    from filelock import FileLock

_ARCHIVE_SUFFIX = ".tar.gz"
_ATTEMPTS = 100  # to lock in a folder that others remove; one that is no folder fails at the last
_OF_THE_DISK = (errno.EACCES, errno.EDQUOT, errno.ENOSPC, errno.EPERM, errno.EROFS)


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Wait until no other process downloads to the same folder.

    The file of the lock is removed at the end, and the folder around it if nothing came into it.
    """
    path = folder.with_name(f".{folder.name}.lock")
    held = _acquire(path)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows removes no file that is open, but filelock does it then
            path.unlink()  # before the release: whoever waits for it finds it gone, and tries again
        held.release()
        with suppress(OSError):
            path.parent.rmdir()  # which fails if anything is in it


def _acquire(path: Path) -> FileLock:
    from filelock import FileLock

    held = FileLock(path)
    for attempt in itertools.count():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            held.acquire()
        except (FileNotFoundError, FileExistsError):  # another process just removed the folder
            if attempt == _ATTEMPTS:
                raise
            continue
        if path.exists():
            break
        held.release()  # another process removed the file after this one had opened it
    return held


@contextmanager
def report_unwritable(folder: Path) -> Iterator[None]:
    """Raise a :class:`DataError` that names the folder where it cannot be written to."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"cannot write to {folder} ({error.strerror or error}); {OTHER_ROOT}, "
            "to a folder with room that you may write to"
        ) from error


def fetch(published: FileSet, root: Path, folder: Path, searched: str) -> None:
    """Fill the folder of downloads, from archives in the root or from the mirrors.

    All files are gathered in a temporary folder, which is then renamed. If a download fails, the
    files that came whole are kept for the next attempt, and nothing else is.

    Args:
        published: the files.
        root: where archives may be.
        folder: the folder to fill.
        searched: the start of an error message: what was searched for and where.
    """
    parts, new = folder.with_name(f".{folder.name}.parts"), folder.with_name(f".{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir(parents=True)
        for name, checksum in published.downloads.items():
            if has_archives(published, root, is_file):
                path = root / name
                _check_checksum(path, checksum)
            else:
                path = _download(name, checksum, published.mirrors, parts, searched)
            if name.endswith(_ARCHIVE_SUFFIX):
                _unpack(path, published, new)
            else:
                shutil.copyfile(path, new / name)
        _replace_folder(new, folder)
        shutil.rmtree(parts, ignore_errors=True)
    finally:  # of an interrupt as well
        shutil.rmtree(new, ignore_errors=True)
        _remove_incomplete(parts, published)


def _remove_incomplete(parts: Path, published: FileSet) -> None:
    """Keep the files that came whole, which alone have their names; and no empty folder."""
    with suppress(OSError):
        for path in parts.iterdir():
            if path.name not in published.downloads:
                path.unlink()
        parts.rmdir()  # which fails if anything is in it


def _download(
    name: str, checksum: str, mirrors: tuple[str, ...], folder: Path, searched: str
) -> Path:
    try:
        import pooch  # type: ignore[import-untyped]
    except ImportError:
        raise MissingDataError(
            f'{searched}; to download it, pip install "noiseproof[data]"'
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
            if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
                raise
            failed.append(f"{mirror}{name} ({_reason(error)})")
    raise MissingDataError(
        f"{searched}; and it could not be downloaded: {', '.join(failed)}; connect and load "
        "again, or put the files where they were looked for"
    )


def _reason(error: Exception) -> str:
    """Why a download failed, shorter than the messages of requests."""
    if isinstance(error, ValueError) and "hash" in str(error):
        return "what came has another checksum"
    response = getattr(error, "response", None)
    if response is not None:
        return f"{response.status_code} {response.reason}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return {"ConnectionError": "no connection", "SSLError": "no secure connection"}.get(
        type(error).__name__, type(error).__name__
    )


def _check_checksum(path: Path, checksum: str) -> None:
    algorithm, expected = checksum.split(":")
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, algorithm).hexdigest()
    except OSError as error:
        raise DamagedFileError.unreadable(path, error) from None
    if found != expected:
        raise DamagedFileError(path, f"its {algorithm} is {found}, not {expected}")


def _unpack(archive: Path, published: FileSet, target: Path) -> None:
    """Extract the expected files of an archive, and nothing else."""
    folder = published.folders[0]
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for name in published.digests:
                content: Any = tar.extractfile(f"{folder}/{name}")
                with content, (target / name).open("wb") as file:
                    shutil.copyfileobj(content, file, 1 << 20)
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, KeyError, TypeError) as error:
        raise DamagedFileError(archive, f"it does not unpack ({error})") from None


def _replace_folder(new: Path, folder: Path) -> None:
    """Replace a folder by another, by two atomic renames."""
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        os.replace(folder, old)
    os.replace(new, folder)
    shutil.rmtree(old, ignore_errors=True)
