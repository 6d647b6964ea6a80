"""Where published files are searched for: a root that the user names, or a cache folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ._files import FileSet

ENV_VARIABLE = "NOISEPROOF_DATA"
_ARCHIVE_SUFFIX = ".tar.gz"


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


def folders_of(published: FileSet, root: Root) -> list[Path]:
    """The folders to search in, that of downloads among them."""
    others = [root.path / folder for folder in published.folders]
    return list(dict.fromkeys([*others, root.downloads / published.name]))


def files_in(
    published: FileSet, folder: Path, is_file: Callable[[Path], bool] = os.path.isfile
) -> dict[str, Path]:
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


def has_archives(
    published: FileSet, root: Path, is_file: Callable[[Path], bool] = os.path.isfile
) -> bool:
    """Whether the root holds the archives that would be downloaded."""
    return all(
        name.endswith(_ARCHIVE_SUFFIX) and is_file(root / name) for name in published.downloads
    )


def is_here(published: FileSet, root: Root) -> bool:
    """Whether the files need no download; what is in them is not looked at."""
    folders = folders_of(published, root)
    return any(files_in(published, f) for f in folders) or has_archives(published, root.path)
