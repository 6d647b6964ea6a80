"""Bring a bench to its end: hand out runs, watch, retry what died, gather what came out."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .. import _torchrun
from .._errors import UsageError
from .._hints import one_of
from ..results import Record
from ..results._claim import LOCKS
from ..runs import ResolvedRun, Run
from ._bench import Bench
from ._local import LocalExecutor, WorkerDied
from ._plan import Plan, ended_since, failures, packs, plan
from ._work import RunEvent, WorkerConfig, has_ended, record_error

_TRIES = 3  # so often a worker may die of a run that has not come an epoch further
_POLL = 1.0  # seconds between looks at the runs that another process has


class Executor(Protocol):
    """Where packs of runs are trained."""

    on_gpu: bool

    def idle(self) -> bool: ...
    def start(self, pack: Sequence[ResolvedRun]) -> None: ...
    def wait(self, seconds: float) -> list[RunEvent | WorkerDied]: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Outcome:
    """What came of a bench."""

    bench: Bench
    records: list[Record]
    """of every run of the bench that has ended, now or before"""
    failed: list[tuple[Run, str]]
    """the runs that could not be trained, and why; the next time they are tried again"""
    problems: list[str]
    """a line for each folder that is damaged"""
    seconds: float


def run(
    bench: Bench | Plan,
    out: Path | str = "runs",
    *,
    data_root: Path | str | None = None,
    executor: str = "local",
    address: str | None = None,
    workers: int | None = None,
    device: str = "auto",
    keep_models: bool = False,
    watch: Callable[[RunEvent], None] | None = None,
) -> Outcome:
    """Run what is not there yet.

    Any number of processes may run the same bench in the same folder at once: each run is trained
    by one of them. Stopped in any way and started again it goes on where it was.

    Args:
        bench: what to run; `noiseproof.bench.bench` has those of the package by name. Or a `plan`
            of it in the same folder.
        out: the folder of results, each run in a folder of its own.
        data_root: where data sets lie.
        executor: local, which is this machine, or ray, a Ray cluster.
        address: of the cluster; one is started on this machine without it.
        workers: processes; by default one for each core, or for each GPU.
        device: auto, cpu, cuda, ...
        keep_models: keep the trained networks too.
        watch: called with everything that happens to a run.
    """
    if _torchrun.place() is not None:
        raise UsageError("a bench starts the processes of its runs itself: leave out torchrun")
    before = bench if isinstance(bench, Plan) else None
    bench = bench.bench if isinstance(bench, Plan) else bench
    executor = one_of("executor", executor, ("local", "ray"))
    if address is not None and executor != "ray":
        raise UsageError("an address is that of a Ray cluster; give --executor ray with it")
    if workers is not None and workers < 1:
        raise UsageError(f"workers is 1 or more; it was {workers}")
    began = time.monotonic()
    out = Path(out).absolute()
    data_root = None if data_root is None else Path(data_root).absolute()
    before = before or plan(bench, out)
    if before.waiting:
        config = WorkerConfig(out, data_root, device, keep_models)
        where: Executor
        if executor == "ray":
            from ._ray import RayExecutor

            where = RayExecutor(config, address, workers)
        else:
            (out / LOCKS).mkdir(parents=True, exist_ok=True)  # or say now that it cannot be written
            where = LocalExecutor(config, workers, max_workers=len(before.waiting))
        try:
            _drive(before, where, out, watch or (lambda event: None))
        finally:
            where.close()
    records, problems = ended_since(before, out)
    failed = failures(before, out)
    return Outcome(
        bench, before.done + records, failed, before.problems + problems, time.monotonic() - began
    )


def _drive(plan: Plan, where: Executor, out: Path, watch: Callable[[RunEvent], None]) -> None:
    """Train the waiting runs, each to its end, and retry those whose worker died."""
    runs = {r.hash: r for r in (_resolved(plan, run, where.on_gpu) for run in plan.waiting)}
    queue = deque(packs(runs.values(), where.on_gpu))
    open_runs = set(runs)  # not ended
    busy: set[str] = set()  # of those, the ones that another process has
    died: Counter[str] = Counter()
    looked = time.monotonic()
    while open_runs:
        while queue and where.idle():
            where.start(queue.popleft())
        for event in where.wait(_POLL):
            if isinstance(event, WorkerDied):
                for run in (r for r in event.runs if r.hash in open_runs):
                    died[run.hash] += 1
                    if died[run.hash] < _TRIES:
                        queue.appendleft([run])
                    else:
                        error = OSError(f"{event.why}, {_TRIES} times")
                        line = record_error(out, run, error)
                        open_runs.discard(run.hash)
                        watch(RunEvent("ended", run.hash, error=line))
            elif event.what == "busy":
                busy.add(event.hash)
            else:
                if event.what == "ended":
                    open_runs.discard(event.hash)
                    if event.data_missing:
                        dataset = runs[event.hash].dataset
                        for run in _drop(queue, dataset):  # they would all fail alike
                            line = record_error(out, run, OSError(event.error))
                            open_runs.discard(run.hash)
                            watch(RunEvent("ended", run.hash, error=line))
                else:
                    del died[event.hash]  # it got on, so it will come to its end
                watch(event)
        if busy and time.monotonic() - looked > _POLL:
            looked = time.monotonic()
            for name in [n for n in busy if has_ended(out, runs[n])]:
                busy.discard(name)
                open_runs.discard(name)
                watch(RunEvent("ended", name))
            if not queue and where.idle():  # try the next: its process may be gone
                queue += packs([runs[name] for name in busy], where.on_gpu)
                busy.clear()


def _drop(queue: deque[list[ResolvedRun]], dataset: str) -> list[ResolvedRun]:
    """Take the runs on a data set out of the queue."""
    dropped = [run for pack in queue for run in pack if run.dataset == dataset]
    kept = [[run for run in pack if run.dataset != dataset] for pack in queue]
    queue.clear()
    queue.extend(pack for pack in kept if pack)
    return dropped


def _resolved(plan: Plan, run: Run, on_gpu: bool) -> ResolvedRun:
    """The run as this executor will train it."""
    here = on_gpu if run.device == "auto" else run.device.startswith("cuda")
    found = plan.resolutions(run)
    return found[0] if here else found[-1]
