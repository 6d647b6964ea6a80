"""What a bench has still to do: which runs are there, and how long the rest will take here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from .._errors import UsageError
from ..catalogue import runs_per_gpu
from ..results import ERROR, Folder, Reading, Record, outdated, read
from ..runs import ResolvedRun, Run
from ._bench import Bench
from ._machine import cores, gpus, processor

# Seconds an epoch and run: packed on one NVIDIA H200; on one core.
_ON_GPU = {
    ("mnist", "cnn4", 128): 0.063,
    ("fashion-mnist", "cnn4", 128): 0.063,
    ("cifar10", "cnn8", 128): 0.21,
    ("cifar100", "resnet34", 128): 1.28,
}
_ON_CPU = {("digits", "mlp", 32): 0.08, ("digits", "mlp", 128): 0.045}


@dataclass(frozen=True)
class Plan:
    """The runs of a bench, sorted by what is known of them in a folder of results."""

    bench: Bench
    done: list[Record]
    waiting: list[Run]
    begun: list[Run]
    """of those that wait: there is a checkpoint to go on from"""
    problems: list[str]
    """a line for each folder of this bench that is damaged; its run is left alone"""
    seconds: float | None
    """how long the waiting ones will take here; None if nothing is known of their kind"""
    resolved: dict[Run, tuple[ResolvedRun, ...]] = field(default_factory=dict, repr=False)
    """the resolutions of each run, once and for all: a file of the user's may change meanwhile"""

    def resolutions(self, run: Run) -> tuple[ResolvedRun, ...]:
        return self.resolved.get(run) or run.resolutions()


def plan(
    bench: Bench, out: Path | str, *, workers: int | None = None, device: str = "auto"
) -> Plan:
    """Look at what is there; nothing is run and torch is not imported.

    A run counts as done if its folder, or a bundle of results in ``out``, has it.
    """
    out = Path(out)
    if out.is_file():
        raise UsageError(f"{out} is a file; --out names the folder of the results")
    bundles = read(*sorted(out.glob("*.jsonl"))) if out.is_dir() else Reading([], [])
    bundled = {record.hash: record for record in bundles.records}
    done, waiting, problems = [], [], [*bundles.problems, *_of_older_version(out)]
    resolved = {run: run.resolutions() for run in bench.runs}
    for run in bench.runs:
        record, damage = _look_up(resolved[run], out, bundled)
        problems += damage
        if record is not None:
            done.append(record)
        elif not damage:
            waiting.append(run)
    begun = [run for run in waiting if any(_has_checkpoint(out, r) for r in resolved[run])]
    on_gpu = device != "cpu" and bool(gpus())
    seconds = _estimate(waiting, out, done, on_gpu, workers)
    return Plan(bench, done, waiting, begun, problems, seconds, resolved)


def _look_up(
    resolutions: Iterable[ResolvedRun], out: Path, bundled: dict[str, Record]
) -> tuple[Record | None, list[str]]:
    """The record of a run that has ended, and what is wrong where its folder cannot be read."""
    problems: list[str] = []
    for resolved in resolutions:
        if "loss" in resolved.overrides:
            raise UsageError(
                f"the loss {resolved.loss} has a part that a module of yours declares: name that "
                'module, import = ["mymodule"], so that workers find it'
            )
        if resolved.hash in bundled:
            return bundled[resolved.hash], []
        folder = out / resolved.folder
        if (folder / "result.json").exists():
            reading = read(folder)
            found = [r for r in reading.records if r.hash == resolved.hash]
            if found:
                return found[0], []
            other = [f"{folder} holds another run, {r.hash}" for r in reading.records]
            problems += reading.problems + other
    return None, problems


def ended_since(plan: Plan, out: Path) -> tuple[list[Record], list[str]]:
    """The records of runs that were waiting and have ended since, and what cannot be read."""
    records, problems = [], []
    for run in plan.waiting:
        record, damage = _look_up(plan.resolutions(run), out, {})
        problems += damage
        if record is not None:
            records.append(record)
    return records, problems


def failures(plan: Plan, out: Path) -> list[tuple[Run, str]]:
    """The runs that could not be trained, and why."""
    found = []
    for run in plan.waiting:
        for resolved in plan.resolutions(run):
            folder = Folder(out / resolved.folder)
            try:
                content = folder.read_json(ERROR)
            except UsageError as error:
                content = {"error": str(error)}
            if content is not None and not (folder.path / "result.json").exists():
                found.append((run, str(content.get("error"))))
                break
    return found


def _of_older_version(out: Path) -> list[str]:
    count = len(outdated(out)) if out.is_dir() else 0
    if not count:
        return []
    runs = "1 run is" if count == 1 else f"{count} runs are"
    return [f"{runs} of an older version: noiseproof results {out} --upgrade renames them"]


def _has_checkpoint(out: Path, run: ResolvedRun) -> bool:
    return (out / run.folder / "checkpoint.pt").exists()


def _estimate(
    waiting: Iterable[Run], out: Path, done: Iterable[Record], on_gpu: bool, workers: int | None
) -> float | None:
    """From the seconds of runs that have ended on a machine like this, else from a table."""
    here = set(gpus()) if on_gpu else {processor()}
    spent: dict[tuple[str, str, int], list[float]] = {}
    for record in done:
        if record.about.get("machine", {}).get("device") in here and record.history:
            seconds = record.column("seconds")
            spent.setdefault(_size(record.run), []).append(fmean(seconds[1:] or seconds))
    table = _ON_GPU if on_gpu else _ON_CPU
    total = 0.0
    for run in waiting:
        resolved = run.resolve(on_gpu=on_gpu)
        size = _size(resolved)
        each = fmean(spent[size]) if size in spent else table.get(size)
        if each is None:
            return None
        total += each * (resolved.epochs - _epochs_done(out, resolved))
    return total / (workers or (len(gpus()) if on_gpu else cores()))


def _size(run: ResolvedRun) -> tuple[str, str, int]:
    """What decides how long an epoch takes."""
    return run.dataset, run.model, run.batch_size


def _epochs_done(out: Path, run: ResolvedRun) -> int:
    """How many epochs a run that has not ended has behind it."""
    try:
        folder = Folder(out / run.folder)
        return len(folder.read_history()) if _has_checkpoint(out, run) else 0
    except UsageError:
        return 0


def packs(runs: Iterable[ResolvedRun], on_gpu: bool) -> list[list[ResolvedRun]]:
    """Runs as they are handed out: one by one, or those that a GPU trains side by side."""
    if not on_gpu:
        return [[run] for run in runs]
    groups: dict[tuple[object, ...], list[ResolvedRun]] = {}
    for run in runs:
        groups.setdefault(run.pack_key, []).append(run)
    found = []
    for alike in groups.values():
        width = runs_per_gpu(alike[0].model)
        found += [alike[i : i + width] for i in range(0, len(alike), width)]
    return found
