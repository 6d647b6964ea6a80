"""Files: whether they are there, and their content, of which no more is read than was published."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from pathlib import Path

from ._errors import OTHER_ROOT, DamagedFileError, DataError


def is_file(path: Path) -> bool:
    """Whether there is a file; where that cannot be seen, a :class:`DataError` says so."""
    return stat.S_ISREG(_mode(path))


def is_folder(path: Path) -> bool:
    """Whether there is a folder, likewise."""
    return stat.S_ISDIR(_mode(path))


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        raise DataError(
            f"cannot read {path} ({error.strerror}); make it readable, or {OTHER_ROOT}"
        ) from None


def read_bytes(path: Path, limit: int) -> bytes:
    """The content of a file, decompressed where its name ends in ``.gz``.

    A file that cannot be read or holds more than ``limit`` bytes counts as damaged; nothing beyond
    the limit is read or decompressed.
    """
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size > 2 * limit + 1024:  # compressed or not
                raise _too_long(path, limit)
            stream = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
            content: bytes = stream.read(limit + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DamagedFileError(path, f"it does not decompress ({error})") from None
    except OSError as error:
        raise DamagedFileError.unreadable(path, error) from None
    if len(content) > limit:
        raise _too_long(path, limit)
    return content


def _too_long(path: Path, limit: int) -> DamagedFileError:
    return DamagedFileError(path, f"it holds more than {limit:,} bytes, which was not published")
