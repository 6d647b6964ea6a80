"""Where files are searched for and downloaded to: a root that the user names, or a cache folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ..catalogue import FileSet
from ._contents import is_file, is_folder
from ._download import fetch, has_archives, lock, report_unwritable
from ._errors import OTHER_ROOT, DamagedFileError, MissingDataError

ENV_VARIABLE = "NOISEPROOF_DATA"
T = TypeVar("T")


@dataclass(frozen=True)
class Root:
    """A folder with data sets, and the folder inside it that downloads go to."""

    path: Path
    downloads: Path


def find_root(root: str | os.PathLike[str] | None) -> Root:
    """The root that is given, else ``NOISEPROOF_DATA``, else the user's cache folder."""
    given = root if root is not None else os.environ.get(ENV_VARIABLE)
    if given:
        path = Path(given).expanduser()
        return Root(path, path / "noiseproof")
    path = _user_cache_dir() / "noiseproof"
    return Root(path, path)


def _user_cache_dir() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


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
    for folder in _folders(published, dirs):
        if folder != downloaded and (files := _all_files(published, folder)):
            return read(files)
    try:
        return _read_downloaded(published, downloaded, read)
    except MissingDataError:
        if not (download or has_archives(published, dirs.path)):
            searched = _searched(published, dirs)
            raise MissingDataError(
                f"{searched}; load with download=True, or {OTHER_ROOT}"
            ) from None
    except DamagedFileError as damage:
        if not (download or has_archives(published, dirs.path)):
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
    files = _all_files(published, folder)
    if not files:
        raise MissingDataError(f"{published.name} is not in {folder}")
    return read(files)


def _all_files(published: FileSet, folder: Path) -> dict[str, Path]:
    """The path of every file; empty where one is missing."""
    found = {}
    for name in published.digests:
        forms = (
            [folder / name, folder / f"{name}.gz"] if name.endswith("ubyte") else [folder / name]
        )
        path = next((form for form in forms if is_file(form)), None)
        if path is None:
            return {}
        found[name] = path
    return found


def _folders(published: FileSet, dirs: Root) -> list[Path]:
    """The folders to search in, that of downloads among them."""
    others = [dirs.path / folder for folder in published.folders]
    return list(dict.fromkeys([*others, dirs.downloads / published.name]))


def _searched(published: FileSet, dirs: Root) -> str:
    names = list(published.digests)
    files = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    places = ", ".join(map(str, _folders(published, dirs)))
    return f"{published.name} is not here: looked for {files} in {places}"
