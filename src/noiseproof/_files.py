"""Files: how they are written, and what they may be called."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import stat
import tempfile
from pathlib import Path

from ._errors import UsageError

PART = ".part"
"""Ends the name of a file that is not yet whole."""


def write_atomically(path: Path | str, content: bytes) -> None:
    """Write a file so that it is there whole or not at all, whatever happens meanwhile.

    A link is followed, and the file that it leads to is replaced. What is no file, such as a device
    or a pipe, is written to and stays what it is.

    Raises:
        UsageError: the path is a folder.
        OSError: it could not be written; a file is then as it was.
    """
    path = Path(path)
    refuse_folder(path)
    special = False
    try:
        special = _is_special(path)
        if special:
            _write_through(path, content)
        else:
            _replace(Path(os.path.realpath(path)), content)
    except OSError as error:
        failed = "could not be written" if special else "could not be written and is as it was"
        raise OSError(error.errno, f"{path} {failed}: {error.strerror}") from error


def refuse_folder(path: Path) -> None:
    """Raise an error where a file is to be written and there is a folder."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder; give the name of a file")


def _is_special(path: Path) -> bool:
    """Whether there is something that is no regular file, itself or at the end of a link."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def _write_through(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY), "wb") as file:
        file.write(content)


def _replace(path: Path, content: bytes) -> None:
    """Write beside and rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(PART, f".{path.name}.", path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            os.chmod(beside, 0o666 & ~_umask())  # as any other file, and not for its owner alone
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


@functools.cache
def _umask() -> int:
    now = os.umask(0o022)  # it can be read only by setting it
    os.umask(now)
    return now


def safe_name(text: str) -> str:
    """A text as the name of a file: letters, digits, ``.``, ``_`` and ``-``, at most 100.

    A text that has to be changed for that ends in a digest, so that no two become the same name.

    >>> safe_name("accuracy-digits-0.4"), safe_name("x/../../home/logo")
    ('accuracy-digits-0.4', 'x-home-logo-6e7542e6')
    """
    if re.fullmatch(r"\w[\w.-]{0,99}", text, re.ASCII):
        return text
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]
    words = "-".join(re.findall(r"\w[\w.-]*", text, re.ASCII))[:80]
    return f"{words}-{digest}" if words else digest
