"""Folders of runs that an older version wrote, brought to the format of this one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._errors import UsageError
from ..runs import ResolvedRun
from ._legacy import upgraded_about, upgraded_columns, upgraded_settings
from ._store import ERROR, FORMAT, Folder

RUN = "run.json"


def outdated(place: Path | str) -> list[Path]:
    """The folders of runs under a folder, or the folder itself, that are of an older format."""
    return [path for path, content in _described(Path(place)) if _is_old(path, content)]


def _is_old(path: Path, content: dict[str, Any]) -> bool:
    if content.get("format", 1) == 1:
        return True
    # An upgrade that was interrupted has rewritten the file and not renamed the folder.
    return "upgraded" in content and content.get("hash") != path.name


def upgrade(place: Path | str) -> tuple[list[Path], list[str]]:
    """Rewrite and rename the folders of runs under a folder that are of an older format.

    Returns:
        The folders by their new names, and a line for each that was left as it is.
    """
    done, problems = [], []
    for path in outdated(place):
        try:
            done.append(_upgrade_folder(path))
        except (UsageError, KeyError, TypeError, AttributeError) as error:
            why = f"{type(error).__name__}: {error}"
            problems.append(f"{path} is left as it is ({why})")
    return done, problems


def _described(place: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    files = [place / RUN] if (place / RUN).exists() else sorted(place.glob(f"*/{RUN}"))
    for file in files:
        try:
            content = Folder(file.parent).read_json(RUN)
        except UsageError:
            continue  # damaged, which `read` reports
        if content is not None and isinstance(content.get("settings"), dict):
            yield file.parent, content


def _upgrade_folder(path: Path) -> Path:
    folder = Folder(path)
    content = folder.read_json(RUN) or {}
    settings = content.pop("settings")
    if content.get("format", 1) == 1:
        settings = upgraded_settings(settings, content)
    run = ResolvedRun.from_settings(settings)
    new = path.with_name(run.folder)
    if new != path and new.exists():
        raise UsageError(f"{new} holds this run already; delete one of the two")
    about = upgraded_about(content) | {"format": FORMAT, "hash": run.folder, "upgraded": True}
    history = [upgraded_columns(row) for row in folder.read_history()]
    if history:
        folder.write_history(history)
    ended = folder.read_json("result.json")
    if ended is not None:
        folder.write_json("result.json", upgraded_columns(ended))
    folder.write_json(RUN, {"format": FORMAT, "settings": run.settings(), **about})
    os.replace(path, new)
    return new


def clear_failed(place: Path | str) -> int:
    """Forget the runs under a folder that could not be trained; how many there were."""
    cleared = 0
    for file in sorted(Path(place).glob(f"*/{ERROR}")):
        if not (file.parent / "result.json").exists():
            file.unlink()
            cleared += 1
            with contextlib.suppress(OSError):  # there is a checkpoint to go on from
                file.parent.rmdir()
    return cleared
