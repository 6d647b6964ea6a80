"""Where files are looked for: a root that the user names, or a folder of our own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ._download import archives, cannot_write, fetch, lock
from ._errors import DamagedFileError, MissingDataError
from ._sources import Published

VARIABLE = "NOISEPROOF_DATA"
T = TypeVar("T")


@dataclass(frozen=True)
class Root:
    """Where others put files, and the folder inside it that only we write to."""

    path: Path
    own: Path


def find_root(root: str | os.PathLike[str] | None) -> Root:
    """The root that is given, else ``NOISEPROOF_DATA``, else the user's cache folder."""
    given = root if root is not None else os.environ.get(VARIABLE)
    if given:
        path = Path(given).expanduser()
        return Root(path, path / "noiseproof")
    path = _cache() / "noiseproof"
    return Root(path, path)


def _cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def obtain(
    published: Published,
    root: str | os.PathLike[str] | None,
    download: bool,
    read: Callable[[dict[str, Path]], T],
) -> T:
    """What ``read`` makes of the files, which are found, unpacked or downloaded.

    Files that others put there are only read; when they are damaged, that is for the user to
    mend. What is damaged in our own folder is replaced. Two processes may do so at once: the
    second waits for the first, and takes what it finds then.
    """
    where = find_root(root)
    own = where.own / published.name
    for folder in _folders(published, where):
        if folder != own and (files := _all_files(published, folder)):
            return read(files)
    try:
        return _read_own(published, own, read)
    except MissingDataError:
        if not (download or archives(published, where.path)):
            looked = _looked_for(published, where)
            raise MissingDataError(f"{looked}; load with download=True, or name its root") from None
    except DamagedFileError as damage:
        if not (download or archives(published, where.path)):
            remedy = "load with download=True to have it fetched again"
            raise DamagedFileError(damage.path, damage.problem, remedy) from None
    with cannot_write(where.own), lock(own):
        try:
            return _read_own(published, own, read)  # another process may have mended it
        except (MissingDataError, DamagedFileError):
            fetch(published, where.path, own, _looked_for(published, where))
    return _read_own(published, own, read)


def _read_own(published: Published, own: Path, read: Callable[[dict[str, Path]], T]) -> T:
    files = _all_files(published, own)
    if not files:
        raise MissingDataError(f"{published.name} is not in {own}")
    return read(files)


def _all_files(published: Published, folder: Path) -> dict[str, Path]:
    """The path of every file, or nothing where one is missing."""
    found = {}
    for name in published.digests:
        forms = (
            [folder / name, folder / f"{name}.gz"] if name.endswith("ubyte") else [folder / name]
        )
        path = next((form for form in forms if form.is_file()), None)
        if path is None:
            return {}
        found[name] = path
    return found


def _folders(published: Published, where: Root) -> list[Path]:
    """Every folder that is looked in; in the cache, one of the names is that of our own."""
    others = [where.path / folder for folder in published.folders]
    return list(dict.fromkeys([*others, where.own / published.name]))


def _looked_for(published: Published, where: Root) -> str:
    names = list(published.digests)
    files = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    places = ", ".join(map(str, _folders(published, where)))
    return f"{published.name} is not here: looked for {files} in {places}"
