"""What a worker does, wherever it runs: claim runs, train them, and say how they ended.

A run is claimed by a lock on a file of its own under ``.locks`` in the folder of results. The
operating system holds it, on a shared disk too, and lets go when the process ends, however it does:
nobody waits for the dead, and a run that was killed is taken up from its last epoch.
"""

from __future__ import annotations

import contextlib
import gc
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..results import ERROR, Folder
from ..train import Run

if TYPE_CHECKING:
    from ..train import Progress, Result


@dataclass(frozen=True)
class Said:
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


@dataclass(frozen=True)
class Place:
    """Where results go, data sets lie and runs are trained."""

    out: Path
    data_root: Path | None = None
    device: str = "auto"
    keep_models: bool = False

    def plain(self) -> dict[str, Any]:
        root = None if self.data_root is None else str(self.data_root)
        return asdict(self) | {"out": str(self.out), "data_root": root}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Place:
        root = plain["data_root"]
        return cls(**plain | {"out": Path(plain["out"]), "data_root": root and Path(root)})


def has_ended(out: Path, run: Run) -> bool:
    return (out / run.hash / "result.json").exists()


def work(runs: Sequence[Run], place: Place, tell: Callable[[Said], None]) -> None:
    """Train those of the runs that are not done and that nobody else is at, side by side."""
    with ExitStack() as stack:
        mine = []
        for run in runs:
            try:
                claimed = _claim(stack, place.out, run.hash)
            except OSError as error:  # a disk that is full, or not ours to write to
                tell(Said("ended", run.hash, error=record_error(place.out, run, error)))
                continue
            if not claimed:
                tell(Said("busy", run.hash))
            elif has_ended(place.out, run):
                tell(Said("ended", run.hash))
            else:
                mine.append(replace(run, device=_device(run, place)))
        if mine:
            _train(mine, place, tell)


def _claim(stack: ExitStack, out: Path, name: str) -> bool:
    from filelock import FileLock, Timeout

    (out / ".locks").mkdir(parents=True, exist_ok=True)
    lock = FileLock(out / ".locks" / name)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    stack.callback(lock.release)
    return True


def _device(run: Run, place: Place) -> str:
    return place.device if run.device == "auto" else run.device


def _train(runs: Sequence[Run], place: Place, tell: Callable[[Said], None]) -> None:
    from ..train import fit_many

    def watch(progress: Progress) -> None:
        accuracy = progress.row["test_accuracy"]
        tell(Said("epoch", progress.run.hash, progress.epoch, progress.epochs, accuracy))

    try:
        results = fit_many(runs, out=place.out, data_root=place.data_root, on_epoch=watch)
    except Exception as error:
        if len(runs) == 1:
            tell(Said("ended", runs[0].hash, error=record_error(place.out, runs[0], error)))
            return
    else:
        _tell_results(results, place, tell)
        return
    # One that cannot be trained must not keep the others from it, and a GPU that is too small for
    # all may hold half of them. The error is forgotten by now: with it goes the memory it held.
    gc.collect()
    for part in (runs[: len(runs) // 2], runs[len(runs) // 2 :]):
        _train(part, place, tell)


def _tell_results(results: Sequence[Result], place: Place, tell: Callable[[Said], None]) -> None:
    for result in results:
        assert result.folder is not None
        (result.folder / ERROR).unlink(missing_ok=True)
        if not place.keep_models:
            (result.folder / "model.pt").unlink(missing_ok=True)
        accuracy = result.accuracy if result.history else None
        tell(Said("ended", result.run.hash, accuracy=accuracy, error=result.error))


def record_error(out: Path, run: Run, error: Exception) -> str:
    """Keep beside the run why it could not be trained; the next bench tries it again."""
    text = str(error).strip().split("\n")[0]
    line = text if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: {text}"
    trace = "".join(traceback.format_exception(error))
    content = {"error": line, "settings": run.settings(), "traceback": trace}
    with contextlib.suppress(OSError):  # a full disk may be what went wrong
        Folder(out / run.hash).write_json(ERROR, content)
    return line
