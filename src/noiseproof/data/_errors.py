"""What can be wrong with data on a disk, each as one line that says what to do."""

from __future__ import annotations

from pathlib import Path


class DataError(ValueError):
    """A data set cannot be had as asked."""


class MissingDataError(DataError):
    """It is not where it was looked for, and was not or could not be downloaded."""


class DamagedFileError(DataError):
    """A file does not hold what its authors published.

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

    def __reduce__(self) -> tuple[type, tuple[Path, str, str]]:  # so that a worker can send it
        return type(self), (self.path, self.problem, self.remedy)
