"""Files found or fetched, and read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ..catalogue import FileSet, Root, files_in, find_root, folders_of, has_archives
from ._contents import is_file, is_folder
from ._download import fetch, lock, report_unwritable
from ._errors import OTHER_ROOT, DamagedFileError, MissingDataError

T = TypeVar("T")


def obtain(
    published: FileSet,
    root: str | os.PathLike[str] | None,
    download: bool,
    read: Callable[[dict[str, Path]], T],
) -> T:
    """Find, unpack or download the files, and return what ``read`` makes of them.

    Files that the user put into the root are never changed, also when they are damaged; a damaged
    download is replaced. Where two processes would download, the second waits for the first and
    reads its files.
    """
    dirs = find_root(root)
    _check_root(dirs)
    downloaded = dirs.downloads / published.name
    for folder in folders_of(published, dirs):
        if folder != downloaded and (files := files_in(published, folder, is_file)):
            return read(files)
    try:
        return _read_downloaded(published, downloaded, read)
    except MissingDataError:
        if not (download or has_archives(published, dirs.path, is_file)):
            raise MissingDataError(
                f"{_searched(published, dirs)}; load with download=True, or {OTHER_ROOT}"
            ) from None
    except DamagedFileError as damage:
        if not (download or has_archives(published, dirs.path, is_file)):
            remedy = "load with download=True to have it fetched again"
            raise DamagedFileError(damage.path, damage.problem, remedy) from None
    with report_unwritable(dirs.downloads), lock(downloaded):
        try:
            return _read_downloaded(published, downloaded, read)  # by another process meanwhile
        except (MissingDataError, DamagedFileError):
            fetch(published, dirs.path, downloaded, _searched(published, dirs))
    return _read_downloaded(published, downloaded, read)


def _check_root(dirs: Root) -> None:
    """Check that a root that was given is there; only the user's cache folder is made."""
    if dirs.path == dirs.downloads or is_folder(dirs.path):
        return
    problem = "is not a folder" if is_file(dirs.path) else "is not there; make it"
    raise MissingDataError(f"the data root {dirs.path} {problem}, or {OTHER_ROOT}")


def _read_downloaded(published: FileSet, folder: Path, read: Callable[[dict[str, Path]], T]) -> T:
    files = files_in(published, folder, is_file)
    if not files:
        raise MissingDataError(f"{published.name} is not in {folder}")
    return read(files)


def _searched(published: FileSet, dirs: Root) -> str:
    names = list(published.digests)
    files = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    places = ", ".join(map(str, folders_of(published, dirs)))
    return f"{published.name} is not here: looked for {files} in {places}"
