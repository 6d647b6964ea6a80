"""This machine: a worker process for each core, or for each GPU."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ..train import Run
from ._machine import cores, gpus
from ._work import Place, Said
from ._worker import FREE, READY

_MAIN = f"from {__package__}._worker import main; main()"
_STILLBORN = 3  # so many workers may end before they are ready, killed by whomever


@dataclass(frozen=True)
class Died:
    """A worker ended with these runs under way."""

    runs: list[Run]
    why: str


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    place: Place
    pack: list[Run] = field(default_factory=list)
    text: bytes = b""
    ready: bool = False

    def give(self, pack: Sequence[Run]) -> None:
        self.pack = list(pack)
        content = {"runs": [asdict(run) for run in pack], "place": self.place.plain()}
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its output has ended too: `wait` finds out
            self.process.stdin.write(json.dumps(content).encode() + b"\n")
            self.process.stdin.flush()

    @property
    def output(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()


class Local:
    """Worker processes that are kept for many runs: importing torch takes a while."""

    def __init__(self, place: Place, workers: int | None, most: int) -> None:
        self.place = place
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []
        self._stillborn = 0
        self.on_gpu = False
        devices = [place.device]
        try:
            if place.device != "cpu" and gpus():
                first = self._start(place)
                count = self._ready(first)
                self.on_gpu = count > 0
                if self.on_gpu and place.device == "auto":
                    devices = [f"cuda:{i}" for i in range(count)]
                    first.place = replace(place, device=devices[0])
            total = min(workers or (len(devices) if self.on_gpu else cores()), most)
            for i in range(len(self._workers), total):
                self._start(replace(place, device=devices[i % len(devices)]))
        except BaseException:
            self.close()
            raise

    def idle(self) -> bool:
        return any(not worker.pack for worker in self._workers)

    def start(self, pack: Sequence[Run]) -> None:
        next(worker for worker in self._workers if not worker.pack).give(pack)

    def wait(self, seconds: float) -> list[Said | Died]:
        """What was said, waiting for something at most so long."""
        said: list[Said | Died] = []
        for key, _ in self._selector.select(seconds):
            said += self._read(key.data)
        return said

    def close(self) -> None:
        """End every worker. What it was at goes on from its last epoch another time."""
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            self._bury(worker)
        self._workers.clear()
        self._selector.close()

    def _start(self, place: Place) -> _Worker:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        here = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            [sys.executable, "-c", _MAIN],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=os.environ | threads | {"PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C is for us, who then end them
        )  # fmt: skip
        worker = _Worker(process, place)
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

    def _read(self, worker: _Worker) -> list[Said | Died]:
        content = os.read(worker.output, 1 << 16)
        if not content:
            return self._died(worker)
        *lines, worker.text = (worker.text + content).split(b"\n")
        said: list[Said | Died] = []
        for line in lines:
            message = json.loads(line)
            if message["what"] == FREE:
                worker.pack = []
            elif message["what"] == READY:
                worker.ready = True
            else:
                said.append(Said(**message))
        return said

    def _died(self, worker: _Worker) -> list[Said | Died]:
        self._selector.unregister(worker.output)
        self._workers.remove(worker)
        code = self._bury(worker)
        self._stillborn += not worker.ready
        if self._stillborn >= _STILLBORN:
            raise OSError(f"workers end before they are ready (status {code}); see what they wrote")
        self._start(worker.place)
        why = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        return [Died(worker.pack, f"its worker {why}")] if worker.pack else []

    def _bury(self, worker: _Worker) -> int:
        for pipe in (worker.process.stdin, worker.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # what it was given and never read
                    pipe.close()
        try:
            return worker.process.wait(5)
        except subprocess.TimeoutExpired:
            worker.process.kill()
            return worker.process.wait()
