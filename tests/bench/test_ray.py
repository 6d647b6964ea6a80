"""A real Ray cluster of two nodes on this machine, with a token of its own, ended by process id.

The nodes have addresses of their own on the loopback; Ray takes 127.0.0.1 for the machine's outer
address, but no other of 127.0.0.0/8.
"""

from __future__ import annotations

import importlib.util
import math
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from noiseproof.bench import read_bench
from noiseproof.bench._work import WorkerConfig, work

from .processes import (
    PATIENCE,
    descendants,
    end,
    finish,
    gone,
    histories,
    same,
    start,
    stop,
    title,
    until,
    write_grid,
)

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc"),
]
HEAD, NODE = "127.0.0.2", "127.0.0.3"


def free_port() -> int:
    """A port that is free now, and not of those that Ray gives its workers (10002 to 19999)."""
    while True:
        with socket.socket() as listener:
            listener.bind((HEAD, 0))
            port = int(listener.getsockname()[1])
        if port > 20_000:
            return port


class Cluster:
    """Two nodes of one core each."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="np-ray-", dir="/tmp"))  # sockets: a short path
        self.environment = os.environ | {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(16),
            "RAY_USAGE_STATS_ENABLED": "0",
            "PYTHONUNBUFFERED": "1",
        }
        self.address = f"{HEAD}:{free_port()}"
        port = self.address.rpartition(":")[2]
        self.nodes: list[subprocess.Popen[bytes]] = []
        self._start("--head", "--port", port, "--node-ip-address", HEAD, "--include-dashboard",
                    "false", "--temp-dir", str(self.folder / "ray"))  # fmt: skip
        self._await_start()
        self._start("--address", self.address, "--node-ip-address", NODE)
        self._await_start()

    def _start(self, *options: str) -> None:
        command = [
            sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus", "1",
            "--object-store-memory", "80000000", *options,
        ]  # fmt: skip
        with (self.folder / f"{len(self.nodes)}.log").open("wb") as log:
            process = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
        self.nodes.append(process)

    def _await_start(self) -> None:
        log = self.folder / f"{len(self.nodes) - 1}.log"
        end = time.monotonic() + PATIENCE
        while "Ray runtime started" not in log.read_text():
            assert self.nodes[-1].poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)

    def workers(self) -> list[int]:
        """The processes that train at this moment, on either node."""
        started = [pid for node in self.nodes for pid in descendants(node.pid)]
        return [pid for pid in started if title(pid).startswith("ray::_task")]

    def on_nodes(self) -> int:
        """On how many of the nodes processes train at this moment."""
        return sum(
            any(title(pid).startswith("ray::_task") for pid in descendants(node.pid))
            for node in self.nodes
        )

    def close(self) -> None:
        started = [pid for node in self.nodes for pid in descendants(node.pid)]
        for node in reversed(self.nodes):
            node.terminate()
        for node in self.nodes:
            try:
                node.wait(10)
            except subprocess.TimeoutExpired:
                node.kill()
                node.wait()
        if not gone(started, 5):
            end(started)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster():
    made = None
    try:
        made = Cluster()
        yield made
    finally:
        if made is not None:
            made.close()


def check(cluster: Cluster, tmp_path: Path, losses: list[str], epochs: int, kills: int) -> None:
    grid = write_grid(tmp_path / "grid.toml", loss=losses, epochs=epochs)
    peace, out = tmp_path / "peace", tmp_path / "out"
    on_ray = ("--executor", "ray", "--address", cluster.address)
    process = start(grid, out, *on_ray, env=cluster.environment)
    killed, nodes = [], 0
    try:
        until(process, "to do")
        seen: dict[int, float] = {}
        while process.poll() is None and (len(killed) < kills or nodes < 2):
            nodes = max(nodes, cluster.on_nodes())
            workers = [pid for pid in cluster.workers() if pid not in killed]
            for pid in workers:
                seen.setdefault(pid, time.monotonic())
            oldest = min(workers, key=seen.__getitem__, default=0)
            begun = any(out.glob("*/checkpoint.pt"))
            grown = kills == 1 or time.monotonic() - seen.get(oldest, math.inf) > 5
            if oldest and nodes == 2 and begun and grown and len(killed) < kills:
                os.kill(oldest, signal.SIGKILL)
                killed.append(oldest)
            time.sleep(0.05)
        text = finish(process)
    finally:
        stop(process)
    assert process.returncode == 0, text
    assert len(killed) == kills, text
    assert nodes == 2, "the second node was never given a run"
    assert text.count(": accuracy") == len(losses), text
    assert sorted(p.name for p in out.iterdir() if p.name.startswith(".")) == [".locks"]

    runs = [run.resolve() for run in read_bench(grid).runs]
    work(runs, WorkerConfig(peace), lambda event: None)
    assert same(sorted(histories(out).items()), sorted(histories(peace).items()))


@pytest.mark.slow
def test_two_nodes_and_a_worker_killed_in_the_middle(cluster, tmp_path):
    check(cluster, tmp_path, ["ce", "nce", "mae", "rce"], epochs=25, kills=1)


@pytest.mark.long
def test_two_nodes_and_many_workers_killed(cluster, tmp_path):
    losses = [f"{scale}*{loss}" for loss in ("nce", "mae", "rce") for scale in range(1, 9)]
    check(cluster, tmp_path, losses, epochs=60, kills=5)


def test_no_ray_and_no_cluster_are_one_clear_line_each(monkeypatch):
    from noiseproof.bench import _ray

    with pytest.raises(OSError, match=r"no Ray cluster answers at 127\.0\.0\.9:1: "):
        _ray._connect("127.0.0.9:1", None)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r'needs ray: pip install "noiseproof\[ray\]"'):
        _ray._connect("127.0.0.9:1", None)


def test_nodes_without_the_folder_send_back_what_they_kept(tmp_path):
    from noiseproof.bench._ray import _keep, _task
    from noiseproof.train import Run

    run = Run(epochs=1, device="cpu").resolve()
    events, files = _task([run], WorkerConfig(tmp_path / "there", device="cpu"), ".shared-none")
    assert [e.what for e in events] == ["ended"]
    assert not (tmp_path / "there" / run.hash).exists()
    _keep(tmp_path / "here" / run.hash, files[run.hash])
    assert histories(tmp_path / "here").keys() == {run.hash}


def test_what_another_process_is_at_stays_on_its_node(tmp_path):
    from filelock import FileLock

    from noiseproof.bench._ray import _task
    from noiseproof.train import Run

    run = Run(epochs=1, loss="ce", device="cpu").resolve()
    runs = [run, replace(run, loss="nosuch")]
    for run in runs:
        (tmp_path / run.hash).mkdir()
        (tmp_path / run.hash / "checkpoint.pt").touch()
    (tmp_path / ".locks").mkdir()
    with FileLock(tmp_path / ".locks" / runs[0].hash):
        events, files = _task(runs, WorkerConfig(tmp_path, device="cpu"), ".shared-none")
    assert [e.what for e in events] == ["busy", "ended"]
    assert files.keys() == {runs[1].hash}
    assert "error.json" in files[runs[1].hash]
    assert all((tmp_path / run.hash / "checkpoint.pt").exists() for run in runs)


LISTENING = """
import os, sys
from pathlib import Path
from noiseproof.bench._ray import _connect
from tests.bench.processes import descendants
ray = _connect(None, 1)
assert ray.get(ray.remote(lambda: 1).remote()) == 1
mine = {os.getpid(), *descendants(os.getpid())}
sockets = set()
for pid in mine:
    for fd in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            sockets.add(os.readlink(fd))
        except OSError:
            pass
found = []
for table in ("tcp", "tcp6"):
    for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
        parts = line.split()
        if parts[3] == "0A" and f"socket:[{parts[9]}]" in sockets:
            found.append(parts[1].split(":")[0])
ray.shutdown()
print(*found)
"""


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads Linux's tables of sockets")
@pytest.mark.slow
def test_a_cluster_of_our_own_listens_on_loopback_alone():
    pytest.importorskip("ray", reason="the extra ray is not installed")
    root = Path(__file__).parents[2]
    found = subprocess.run(
        [sys.executable, "-c", LISTENING], capture_output=True, text=True, timeout=PATIENCE,
        cwd=root, env=os.environ | {"PYTHONPATH": str(root)},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    addresses = found.stdout.split()
    assert len(addresses) >= 3
    loopback = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")
    assert set(addresses) <= set(loopback)
