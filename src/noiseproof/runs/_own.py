"""What a run names of the user's own: told apart by digests, and where it is."""

from __future__ import annotations

from pathlib import Path

from .._errors import UsageError
from .._imports import file_digest, identify


class Own:
    """What a run names of the user's own: told apart by digests, and where it is."""

    def __init__(self) -> None:
        self.paths: dict[str, str] = {}
        self.modules: list[str] = []

    def identified(self, name: str, what: str) -> str:
        """A name with its digest."""
        found, folder = identify(name.strip(), what)
        module = found.partition("@")[0].partition(":")[0]
        if folder:
            self.paths[f"import {module}"] = folder
        self.modules += [module] if what == "import" else []
        return found

    def file(self, name: str, what: str) -> str:
        """The name of a file, without its folder, with its digest."""
        try:
            path = Path(name).expanduser().absolute()
            there = path.is_file()
        except (OSError, ValueError, RuntimeError):  # a text that can be the name of no file
            there = False
        if not there:
            raise UsageError(f"{what}: there is no file {name!r:.200}")
        self.paths[what] = str(path)
        return f"{path.name}@{file_digest(path)}"
