"""This machine: a worker process for each core, or for each GPU."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..runs import ResolvedRun
from ._machine import cores, gpus
from ._work import RunEvent, WorkerConfig
from ._worker import FREE, READY

_MAIN = f"from {__package__}._worker import main; main()"
_MAX_FAILED_STARTS = 3  # workers that may end before they are ready


@dataclass(frozen=True)
class WorkerDied:
    """A worker ended with these runs under way."""

    runs: list[ResolvedRun]
    why: str


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    config: WorkerConfig
    pack: list[ResolvedRun] = field(default_factory=list)
    text: bytes = b""
    ready: bool = False

    def assign(self, pack: Sequence[ResolvedRun]) -> None:
        self.pack = list(pack)
        runs = [
            {
                "settings": run.settings(),
                "device": run.device,
                "paths": dict(run.paths),
                "stream": run.stream,
            }
            for run in pack
        ]
        content = {"runs": runs, "config": self.config.to_json()}
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its output has ended too: `wait` finds out
            self.process.stdin.write(json.dumps(content).encode() + b"\n")
            self.process.stdin.flush()

    @property
    def output(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()


class LocalExecutor:
    """Worker processes that are kept for many runs: importing torch takes a while."""

    def __init__(self, config: WorkerConfig, workers: int | None, max_workers: int) -> None:
        self.config = config
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []
        self._failed_starts = 0
        self.on_gpu = False
        devices = [config.device]
        try:
            if config.device != "cpu" and gpus():
                first = self._start(config)
                count = self._ready(first)
                self.on_gpu = count > 0
                if self.on_gpu and config.device == "auto":
                    devices = [f"cuda:{i}" for i in range(count)]
                    first.config = replace(config, device=devices[0])
            total = min(workers or (len(devices) if self.on_gpu else cores()), max_workers)
            for i in range(len(self._workers), total):
                self._start(replace(config, device=devices[i % len(devices)]))
        except BaseException:
            self.close()
            raise

    def idle(self) -> bool:
        return any(not worker.pack for worker in self._workers)

    def start(self, pack: Sequence[ResolvedRun]) -> None:
        next(worker for worker in self._workers if not worker.pack).assign(pack)

    def wait(self, seconds: float) -> list[RunEvent | WorkerDied]:
        """What has happened, waiting for something at most so long."""
        events: list[RunEvent | WorkerDied] = []
        for key, _ in self._selector.select(seconds):
            events += self._read(key.data)
        return events

    def close(self) -> None:
        """End every worker. What it was at goes on from its last epoch another time."""
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            self._reap(worker)
        self._workers.clear()
        self._selector.close()

    def _start(self, config: WorkerConfig) -> _Worker:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        here = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            [sys.executable, "-c", _MAIN],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=os.environ | threads | {"PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C reaches this process, which then ends them
        )  # fmt: skip
        worker = _Worker(process, config)
        self._workers.append(worker)
        self._selector.register(worker.output, selectors.EVENT_READ, worker)
        return worker

    def _ready(self, worker: _Worker) -> int:
        """How many GPUs a worker's torch sees; it says so first."""
        assert worker.process.stdout is not None
        with os.fdopen(os.dup(worker.output), "rb", buffering=0) as output:
            line = output.readline()
        if not line:
            raise OSError("a worker ended before it was ready; what it wrote is above")
        worker.ready = True
        return int(json.loads(line)["gpus"])

    def _read(self, worker: _Worker) -> list[RunEvent | WorkerDied]:
        content = os.read(worker.output, 1 << 16)
        if not content:
            return self._died(worker)
        *lines, worker.text = (worker.text + content).split(b"\n")
        events: list[RunEvent | WorkerDied] = []
        for line in lines:
            message = json.loads(line)
            if message["what"] == FREE:
                worker.pack = []
            elif message["what"] == READY:
                worker.ready = True
            else:
                events.append(RunEvent(**message))
        return events

    def _died(self, worker: _Worker) -> list[RunEvent | WorkerDied]:
        self._selector.unregister(worker.output)
        self._workers.remove(worker)
        code = self._reap(worker)
        self._failed_starts += not worker.ready
        if self._failed_starts >= _MAX_FAILED_STARTS:
            raise OSError(f"workers end before they are ready (status {code}); see what they wrote")
        self._start(worker.config)
        why = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        return [WorkerDied(worker.pack, f"its worker {why}")] if worker.pack else []

    def _reap(self, worker: _Worker) -> int:
        for pipe in (worker.process.stdin, worker.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # what it was given and never read
                    pipe.close()
        try:
            return worker.process.wait(5)
        except subprocess.TimeoutExpired:
            worker.process.kill()
            return worker.process.wait()
