"""A Ray cluster: a task is a run on one core, or a pack of runs on one GPU.

Nodes need noiseproof installed. Where they share the folder of results, a run whose worker died
goes on from its last epoch; where they do not, what a run kept is sent back.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._errors import require
from ..runs import ResolvedRun
from ._local import WorkerDied
from ._work import RunEvent, WorkerConfig, work

Files = dict[str, dict[str, bytes]]  # by run, by name
_SENT = (
    "run.json",
    "history.csv",
    "result.json",
    "error.json",
    "model.pt",
    "model-ema.pt",
    "model-chosen.pt",
    "model.json",
)


def _task(
    runs: Sequence[ResolvedRun], config: WorkerConfig, token: str
) -> tuple[list[RunEvent], Files]:
    """Runs on a node: train, and send back what the folder of results here does not show there."""
    import torch

    torch.set_num_threads(1)
    events: list[RunEvent] = []
    work(runs, config, events.append)
    if (config.out / token).exists():
        return [e for e in events if e.what != "epoch"], {}
    files: Files = {}
    for name in (e.hash for e in events if e.what == "ended"):  # others are another process's
        folder = config.out / name
        paths = [folder / name for name in _SENT]
        files[name] = {path.name: path.read_bytes() for path in paths if path.exists()}
        if "result.json" in files[name]:  # one that failed may go on from what it kept
            shutil.rmtree(folder, ignore_errors=True)
    return [e for e in events if e.what != "epoch"], files


class RayExecutor:
    """The nodes of a Ray cluster as one place to train."""

    def __init__(self, config: WorkerConfig, address: str | None, workers: int | None) -> None:
        self.config = config
        self._ray: Any = _connect(address, workers)
        self._token = f".shared-{secrets.token_hex(8)}"  # seen by nodes that share the folder
        self._tasks: dict[Any, list[ResolvedRun]] = {}
        self._epochs_seen: dict[str, int] = {}
        self._max_tasks = workers
        self.on_gpu = config.device != "cpu" and self._ray.cluster_resources().get("GPU", 0) >= 1
        config.out.mkdir(parents=True, exist_ok=True)
        (config.out / self._token).touch()
        # A worker that dies is our matter, as it is elsewhere: Ray is not to try again by itself.
        options = {"num_cpus": 1, "num_gpus": int(self.on_gpu), "max_retries": 0}
        self._remote = self._ray.remote(**options)(_task)

    def idle(self) -> bool:
        has = self._ray.cluster_resources()  # nodes come and go
        slots = int(has.get("GPU" if self.on_gpu else "CPU", 1))
        return len(self._tasks) < min(max(slots, 1), self._max_tasks or slots)

    def start(self, pack: Sequence[ResolvedRun]) -> None:
        device = self.config.device if self.on_gpu else "cpu"
        task = self._remote.remote(list(pack), replace(self.config, device=device), self._token)
        self._tasks[task] = list(pack)

    def wait(self, seconds: float) -> list[RunEvent | WorkerDied]:
        if not self._tasks:
            return []
        ended, _ = self._ray.wait(list(self._tasks), timeout=seconds)
        found: list[RunEvent | WorkerDied] = list(self._epochs())
        for task in ended:
            pack = self._tasks.pop(task)
            try:
                events, files = self._ray.get(task)
            except self._ray.exceptions.RayError as error:
                found.append(WorkerDied(pack, f"its Ray worker died ({type(error).__name__})"))
                continue
            for name, contents in files.items():
                _keep(self.config.out / name, contents)
            found += events
        return found

    def _epochs(self) -> Iterator[RunEvent]:
        """How far the runs under way are, where the nodes' folder is ours."""
        for run in (run for pack in self._tasks.values() for run in pack):
            history = self.config.out / run.folder / "history.csv"
            done = history.read_bytes().count(b"\n") - 1 if history.exists() else 0
            if done > self._epochs_seen.get(run.hash, 0):
                self._epochs_seen[run.hash] = done
                yield RunEvent("epoch", run.hash, done, run.epochs)

    def close(self) -> None:
        for task in self._tasks:
            self._ray.cancel(task, force=True)
        (self.config.out / self._token).unlink(missing_ok=True)
        self._ray.shutdown()  # a cluster that was there before is only left


def _keep(folder: Path, contents: dict[str, bytes]) -> None:
    """Put what was sent back into place, the file that marks the end last."""
    from ..results import write_atomically

    for name in sorted(contents, key=lambda name: name == "result.json"):
        write_atomically(folder / name, contents[name])


def _connect(address: str | None, workers: int | None) -> Any:
    if address is None:  # a cluster of our own, on this machine alone, that no other may use
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(16))
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Without this Ray takes this machine's address for its own, and listens on every interface.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray: Any = require("ray", "ray", "the executor ray")
    host, colon, port = (address or "").rpartition(":")
    if colon and port.isdigit() and "/" not in host:  # Ray itself takes minutes to give up
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        except OSError as error:
            why = error.strerror or error
            raise OSError(f"no Ray cluster answers at {address}: {why}") from None
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        options |= {"address": "local", "num_cpus": workers, "include_dashboard": False}
        options |= {"_node_ip_address": "127.0.0.1"}
    else:
        options |= {"address": address}
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        line = str(error).strip().split("\n")[0]
        raise OSError(f"no Ray cluster answers at {address or 'this machine'}: {line}") from None
    return ray
