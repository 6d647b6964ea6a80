"""What a worker does, wherever it runs: claim runs, train them, and say how they ended.

A run is claimed by `noiseproof.results.claim` while it is trained. One whose process was killed is
taken up from its last epoch.
"""

from __future__ import annotations

import contextlib
import gc
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .._errors import MissingExtraError, UsageError
from ..results import ERROR, Folder, accuracy_column, claim
from ..runs import ResolvedRun

if TYPE_CHECKING:
    from ..train import Progress


@dataclass(frozen=True)
class RunEvent:
    """Something that happened to a run.

    ``epoch``: one has ended. ``ended``: the run has, with an error or without. ``busy``: another
    process has it.
    """

    what: Literal["epoch", "ended", "busy"]
    hash: str
    epoch: int = 0
    epochs: int = 0
    accuracy: float | None = None
    error: str | None = None
    data_missing: bool = False
    """whether the error is that the data set is not there, as for all runs on it"""


@dataclass(frozen=True)
class WorkerConfig:
    """Where results go, where data sets are, and what runs are trained on."""

    out: Path
    data_root: Path | None = None
    device: str = "auto"
    keep_models: bool = False

    def to_json(self) -> dict[str, Any]:
        root = None if self.data_root is None else str(self.data_root)
        return asdict(self) | {"out": str(self.out), "data_root": root}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> WorkerConfig:
        root = content["data_root"]
        return cls(**content | {"out": Path(content["out"]), "data_root": root and Path(root)})


def has_ended(out: Path, run: ResolvedRun) -> bool:
    return (out / run.folder / "result.json").exists()


def work(
    runs: Sequence[ResolvedRun], config: WorkerConfig, tell: Callable[[RunEvent], None]
) -> None:
    """Train those of the runs that are not done and that no other process has, side by side."""
    with ExitStack() as stack:
        mine = []
        for run in runs:
            try:
                claimed = claim(stack, config.out, run.folder)
            except OSError as error:  # a disk that is full, or not ours to write to
                tell(RunEvent("ended", run.hash, error=record_error(config.out, run, error)))
                continue
            if not claimed:
                tell(RunEvent("busy", run.hash))
            elif has_ended(config.out, run):
                tell(RunEvent("ended", run.hash))
            else:
                device = config.device if run.device == "auto" else run.device
                mine.append(replace(run, device=device))
        if mine:
            _train(mine, config, tell)


def _train(
    runs: Sequence[ResolvedRun], config: WorkerConfig, tell: Callable[[RunEvent], None]
) -> None:
    from ..train import UnpredictedClassWarning, WeightsWarning, fit_many

    def watch(progress: Progress) -> None:
        column = accuracy_column(progress.row)
        accuracy = None if column is None else progress.row[column]
        tell(RunEvent("epoch", progress.run.hash, progress.epoch, progress.epochs, accuracy))

    try:
        with warnings.catch_warnings():
            # Each run keeps a note of it; lines on the terminal would be as many as runs.
            warnings.simplefilter("ignore", UnpredictedClassWarning)
            warnings.simplefilter("once", WeightsWarning)
            results = fit_many(
                runs, out=config.out, data_root=config.data_root, on_epoch=watch,
                keep_models=config.keep_models, claimed=True,
            )  # fmt: skip
    except Exception as error:
        if len(runs) == 1:
            line = record_error(config.out, runs[0], error)
            missing = type(error).__name__ == "MissingDataError"
            tell(RunEvent("ended", runs[0].hash, error=line, data_missing=missing))
            return
    else:
        for result in results:
            assert result.folder is not None
            (result.folder / ERROR).unlink(missing_ok=True)
            accuracy = result.accuracy if result.history else None
            tell(RunEvent("ended", result.run.hash, accuracy=accuracy, error=result.error))
        return
    # One that cannot be trained must not keep the others from it, and a GPU that is too small for
    # all may hold half of them. The error is forgotten by now: with it goes the memory it held.
    gc.collect()
    for part in (runs[: len(runs) // 2], runs[len(runs) // 2 :]):
        _train(part, config, tell)


def record_error(out: Path, run: ResolvedRun, error: Exception) -> str:
    """Keep beside the run why it could not be trained; the next bench tries it again."""
    text = str(error).strip().split("\n")[0]
    expected = isinstance(error, UsageError | MissingExtraError | OSError)
    line = text if expected else f"{type(error).__name__}: {text}"
    trace = "".join(traceback.format_exception(error))
    content = {"error": line, "settings": run.settings(), "traceback": trace}
    with contextlib.suppress(OSError):  # a full disk may be what went wrong
        Folder(out / run.folder).write_json(ERROR, content)
    return line
