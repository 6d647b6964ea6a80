"""Errors of missing or damaged data files; each message says what to do."""

from __future__ import annotations

from pathlib import Path

from .._errors import UsageError

OTHER_ROOT = "name another root with root=, --data-root or NOISEPROOF_DATA"


class DataError(UsageError):
    """A data set cannot be loaded."""


class MissingDataError(DataError):
    """The files were not found, and were not or could not be downloaded."""


class DamagedFileError(DataError):
    """The content of a file is not what its authors published.

    Attributes:
        path: the file.
        problem: what is wrong with it.
        remedy: what to do.
    """

    def __init__(
        self, path: str | Path, problem: str, remedy: str = "delete it and load again"
    ) -> None:
        super().__init__(f"{path} is damaged: {problem}; {remedy}")
        self.path = Path(path)
        self.problem = problem
        self.remedy = remedy

    @classmethod
    def unreadable(cls, path: str | Path, error: OSError) -> DamagedFileError:
        """The error of a file that the system does not let us read."""
        return cls(path, f"it cannot be read ({error.strerror})", f"mend that, or {OTHER_ROOT}")

    def __reduce__(self) -> tuple[type, tuple[Path, str, str]]:  # to be pickled by worker processes
        return type(self), (self.path, self.problem, self.remedy)
