"""Benches on this machine's cores, in real processes that are killed, stopped and doubled."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest
import torch

from noiseproof import bench
from noiseproof.bench import _local
from noiseproof.bench._local import LocalExecutor

from .processes import (
    alive,
    descendants,
    finish,
    gone,
    histories,
    same,
    start,
    stop,
    title,
    until,
    workers,
    write_grid,
)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc"),
    pytest.mark.slow,
]

LOSSES = ["ce", "nce", "mae", "rce"]
EPOCHS = 25


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    return write_grid(tmp_path_factory.mktemp("grid") / "four.toml", loss=LOSSES, epochs=EPOCHS)


@pytest.fixture(scope="module")
def whole(grid, tmp_path_factory):
    """The bench run in peace but for one worker, killed in the middle by its id.

    It is stopped first, and goes on if there is no checkpoint to take up.
    """
    out = tmp_path_factory.mktemp("whole")
    killed, said = {}, []

    def watch(event):
        said.append(event)
        if event.what == "epoch" and not killed:
            (worker,) = workers(os.getpid())
            os.kill(worker, signal.SIGSTOP)
            if not list(out.glob("*/checkpoint.pt")):
                os.kill(worker, signal.SIGCONT)
                return
            os.kill(worker, signal.SIGKILL)
            assert gone([worker])
            for path in out.glob("*/checkpoint.pt"):
                kept = torch.load(path, weights_only=True)["epoch"]
                killed.update(pid=worker, run=path.parent.name, epoch=kept)

    outcome = bench.run(bench.read_bench(grid), out, workers=1, watch=watch)
    return out, outcome, said, killed


def test_a_worker_that_dies_is_replaced(whole):
    _, outcome, said, killed = whole
    assert killed
    assert outcome.failed == []
    assert outcome.problems == []
    assert len(outcome.records) == len(LOSSES)
    ended = [event.hash for event in said if event.what == "ended"]
    assert sorted(ended) == sorted(run.resolve().hash for run in outcome.bench.runs)
    epochs = [e.epoch for e in said if e.what == "epoch" and e.hash == killed["run"]]
    again = range(killed["epoch"] + 1, EPOCHS + 1)  # it went on from what was kept
    before = len(epochs) - len(again)
    assert epochs == [*range(1, before + 1), *again]
    assert not alive(killed["pid"])
    assert workers(os.getpid()) == []


def test_what_is_there_is_not_run_again(whole, monkeypatch):
    out, outcome, _, _ = whole
    monkeypatch.setattr(LocalExecutor, "_start", lambda *_: pytest.fail("a worker was started"))
    said = []
    again = bench.run(outcome.bench, out, watch=said.append)
    assert said == []
    assert len(again.records) == len(LOSSES)


def test_killed_in_the_middle_then_two_at_once(grid, whole, tmp_path):
    process = start(grid, tmp_path, "--workers", "1")
    until(process, "1/4")
    started = descendants(process.pid)
    process.kill()
    process.communicate()
    assert gone(started), "workers outlive the process that started them"
    first = {p.parent.name: p.stat().st_mtime_ns for p in tmp_path.glob("*/result.json")}
    assert first

    pair = [start(grid, tmp_path, "--workers", "1") for _ in range(2)]
    texts = [finish(process) for process in pair]
    assert [process.returncode for process in pair] == [0, 0], texts
    trained = sum(text.count(": accuracy") for text in texts)
    assert trained == len(LOSSES) - len(first), texts
    for name, written in first.items():
        assert (tmp_path / name / "result.json").stat().st_mtime_ns == written
    assert same(sorted(histories(tmp_path).items()), sorted(histories(whole[0]).items()))


def test_ctrl_c_stops_cleanly(tmp_path):
    grid = write_grid(tmp_path / "long.toml", loss=["ce"], epochs=100_000)
    process = start(grid, tmp_path / "out", "--workers", "1", start_new_session=True)
    try:
        until(process, "to do")
        while not list(tmp_path.glob("out/*/history.csv")):
            assert process.poll() is None
            time.sleep(0.01)
        started = workers(process.pid)
        assert started
        os.kill(process.pid, signal.SIGINT)
        text = finish(process)
        assert process.returncode == 130
        assert "stopped; the same command goes on from the last epoch" in text
        assert "Traceback" not in text
        assert gone(started)
    finally:
        stop(process)


def test_a_gpu_is_given_many_runs_at_once(grid, tmp_path, monkeypatch):
    """Played on a core: the worker is told that it has a GPU, and the runs ask for the CPU."""
    ready = LocalExecutor._ready
    monkeypatch.setattr(_local, "gpus", lambda: ("a GPU",))
    monkeypatch.setattr(LocalExecutor, "_ready", lambda self, worker: ready(self, worker) + 1)
    given = []
    start_pack = LocalExecutor.start
    monkeypatch.setattr(
        LocalExecutor, "start", lambda self, pack: (given.append(len(pack)), start_pack(self, pack))
    )
    found = bench.read_bench(grid).narrow(epochs=1)
    outcome = bench.run(found, tmp_path)
    assert given == [len(LOSSES)]
    assert len(outcome.records) == len(LOSSES)


def test_workers_that_cannot_start_are_one_clear_line(grid, tmp_path, monkeypatch):
    monkeypatch.setattr(_local, "_MAIN", "raise SystemExit(3)")
    with pytest.raises(OSError, match=r"workers end before they are ready \(status 3\)"):
        bench.run(bench.read_bench(grid), tmp_path, workers=1)
    assert not [pid for pid in descendants(os.getpid()) if "SystemExit(3)" in title(pid)]
