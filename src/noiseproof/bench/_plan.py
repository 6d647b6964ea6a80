"""What a bench has still to do: which runs are there, and how long the rest will take here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from ..results import ERROR, Folder, Record, read
from ..train import Run, side_by_side
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


def plan(
    bench: Bench, out: Path | str, *, workers: int | None = None, device: str = "auto"
) -> Plan:
    """Look at what is there; nothing is run and torch is not imported.

    A run counts as done if its folder, or a bundle of results in ``out``, has it.
    """
    out = Path(out)
    if out.is_file():
        raise ValueError(f"{out} is a file; --out names the folder of the results")
    wanted = {run.hash: run for run in bench.runs}
    bundles = read(*sorted(out.glob("*.jsonl"))) if out.is_dir() else None
    found = {r.hash: r for r in bundles.records if r.hash in wanted} if bundles else {}
    problems = list(bundles.problems) if bundles else []
    damaged = set()
    for name in wanted:
        if (out / name / "result.json").exists():
            reading = read(out / name)
            own = [r for r in reading.records if r.hash == name]
            found.update((r.hash, r) for r in own)
            if not own:
                damaged.add(name)
                other = [f"{out / name} holds another run, {r.hash}" for r in reading.records]
                problems += reading.problems + other
    waiting = [run for name, run in wanted.items() if name not in found and name not in damaged]
    begun = [run for run in waiting if (out / run.hash / "checkpoint.pt").exists()]
    done = [found[name] for name in wanted if name in found]
    on_gpu = device != "cpu" and bool(gpus())
    seconds = _estimate(waiting, out, done, on_gpu, workers)
    return Plan(bench, done, waiting, begun, problems, seconds)


def failures(bench: Bench, out: Path) -> dict[str, str]:
    """Why runs could not be trained, by hash."""
    found = {}
    for run in bench.runs:
        try:
            content = Folder(out / run.hash).read_json(ERROR)
        except ValueError as error:
            content = {"error": str(error)}
        if content is not None and not (out / run.hash / "result.json").exists():
            found[run.hash] = str(content.get("error"))
    return found


def _estimate(
    waiting: Iterable[Run], out: Path, done: Iterable[Record], on_gpu: bool, workers: int | None
) -> float | None:
    """From the seconds of runs that have ended on a machine like this, else from a table."""
    here = set(gpus()) if on_gpu else {processor()}
    spent: dict[tuple[str, str, int], list[float]] = {}
    for record in done:
        if record.about.get("machine", {}).get("device") in here and record.history:
            seconds = record.column("seconds")
            s = record.settings
            kind = s["dataset"], s["model"], s["batch_size"]
            spent.setdefault(kind, []).append(fmean(seconds[1:] or seconds))
    table = _ON_GPU if on_gpu else _ON_CPU
    total = 0.0
    for run in waiting:
        filled = run.filled()
        assert filled.model is not None
        assert filled.epochs is not None
        assert filled.batch_size is not None
        kind = filled.dataset, filled.model, filled.batch_size
        each = fmean(spent[kind]) if kind in spent else table.get(kind)
        if each is None:
            return None
        total += each * (filled.epochs - _trained(out / run.hash))
    return total / (workers or (len(gpus()) if on_gpu else cores()))


def _trained(folder: Path) -> int:
    """How many epochs a run that has not ended has behind it."""
    try:
        return len(Folder(folder).read_history()) if (folder / "checkpoint.pt").exists() else 0
    except ValueError:
        return 0


def packs(runs: Iterable[Run], on_gpu: bool) -> list[list[Run]]:
    """Runs as they are handed out: one by one, or those that a GPU trains side by side."""
    if not on_gpu:
        return [[run] for run in runs]
    kinds: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        kinds.setdefault(run.kind, []).append(run)
    found = []
    for alike in kinds.values():
        width = side_by_side(alike[0].filled().model)
        found += [alike[i : i + width] for i in range(0, len(alike), width)]
    return found
