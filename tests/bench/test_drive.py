"""How runs are handed out, on workers that are only played: deaths, other processes, packs."""

from __future__ import annotations

import pytest

from noiseproof import results
from noiseproof.bench import Bench, _run
from noiseproof.bench._local import WorkerDied
from noiseproof.bench._plan import packs, plan
from noiseproof.bench._work import RunEvent
from noiseproof.runs import Run

GIVEN = [Run(loss=loss, device="cpu") for loss in ("ce", "mae", "nce")]
RUNS = [run.resolve() for run in GIVEN]
BENCH = Bench("three", "Three", "", tuple(GIVEN))


class Played:
    """One worker that follows a script: what it says to each pack in turn."""

    on_gpu = False

    def __init__(self, script):
        self.script = script
        self.given = []
        self.pack = None

    def idle(self):
        return self.pack is None

    def start(self, pack):
        self.pack = pack
        self.given.append([run.loss for run in pack])

    def wait(self, seconds):
        if self.pack is None:
            return []
        pack, self.pack = self.pack, None
        return self.script(pack, len(self.given))

    def close(self):
        pass


def drive(out, script, monkeypatch):
    monkeypatch.setattr(_run, "_POLL", 0.0)
    worker, events = Played(script), []
    _run._drive(plan(BENCH, out), worker, out, events.append)
    return worker.given, {e.hash: e.error for e in events if e.what == "ended"}


def test_a_worker_that_died_is_tried_again(tmp_path, monkeypatch):
    def script(pack, turn):
        return [WorkerDied(pack, "killed")] if turn == 2 else [RunEvent("ended", pack[0].hash)]

    given, ended = drive(tmp_path, script, monkeypatch)
    assert given == [["ce"], ["mae"], ["mae"], ["nce"]]
    assert ended == {run.hash: None for run in RUNS}


def test_a_run_that_kills_every_worker_is_given_up(tmp_path, monkeypatch):
    def script(pack, turn):
        deadly = pack[0].loss == "mae"
        return (
            [WorkerDied(pack, "its worker died")] if deadly else [RunEvent("ended", pack[0].hash)]
        )

    given, ended = drive(tmp_path, script, monkeypatch)
    assert given == [["ce"], ["mae"], ["mae"], ["mae"], ["nce"]]
    assert ended[RUNS[1].hash] == "its worker died, 3 times"
    assert (tmp_path / RUNS[1].hash / "error.json").exists()


def test_a_run_that_gets_on_is_not_given_up(tmp_path, monkeypatch):
    def script(pack, turn):
        if turn < 9:
            return [RunEvent("epoch", pack[0].hash, turn, 9), WorkerDied(pack, "killed")]
        return [RunEvent("ended", pack[0].hash)]

    given, ended = drive(tmp_path, script, monkeypatch)
    assert given == [["ce"]] * 9 + [["mae"], ["nce"]]
    assert ended == {run.hash: None for run in RUNS}


def test_what_another_process_has_is_waited_for(tmp_path, monkeypatch):
    def script(pack, turn):
        if pack[0].loss == "ce" and turn == 1:
            return [RunEvent("busy", pack[0].hash)]
        if pack[0].loss == "mae" and turn < 5:
            (tmp_path / RUNS[0].hash).mkdir(exist_ok=True)
            (tmp_path / RUNS[0].hash / "result.json").touch()  # the other one has ended it
            return [RunEvent("busy", pack[0].hash)]
        return [RunEvent("ended", pack[0].hash)]

    given, ended = drive(tmp_path, script, monkeypatch)
    assert given.count(["ce"]) == 1
    assert given.count(["mae"]) > 1  # the other one is gone, and left it
    assert ended == {run.hash: None for run in RUNS}


def test_a_gpu_is_given_packs_of_one_kind():
    datasets = ("mnist", "cifar10", "cifar100")
    runs = [Run(dataset=d, seed=s).resolve() for s in range(5) for d in datasets]
    found = packs(runs, on_gpu=True)
    assert [{r.dataset for r in pack} for pack in found] == [
        {"mnist"}, {"cifar10"}, {"cifar100"}, {"cifar100"}
    ]  # fmt: skip
    assert [len(pack) for pack in found] == [5, 5, 4, 1]
    assert {run.hash for pack in found for run in pack} == {run.hash for run in runs}
    assert packs(runs, on_gpu=False) == [[run] for run in runs]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"executor": "slurm"}, "executor is one of local, ray; it was 'slurm'"),
        ({"address": "x:1"}, "give --executor ray with it"),
        ({"workers": 0}, "workers is 1 or more"),
    ],
)
def test_mistakes_are_one_clear_line(tmp_path, options, line):
    with pytest.raises(ValueError, match=line):
        _run.run(BENCH, tmp_path, **options)


def test_webvision_says_what_is_missing(tmp_path):
    from noiseproof.bench import bench

    outcome = _run.run(bench("table-webvision"), tmp_path / "runs", data_root=tmp_path, workers=1)
    assert len(outcome.failed) == 5
    assert {line.partition(":")[0] for _, line in outcome.failed} == {"WebVision 1.0 is not here"}


def test_runs_whose_data_is_not_there_fail_together(tmp_path, monkeypatch):
    def script(pack, turn):
        return [RunEvent("ended", pack[0].hash, error="no data", data_missing=True)]

    given, ended = drive(tmp_path, script, monkeypatch)
    assert given == [["ce"]]  # the others were not tried
    assert ended == {run.hash: "no data" for run in RUNS}
    assert len(results.read(tmp_path).problems) == 1
    assert results.clear_failed(tmp_path) == 2
    assert results.read(tmp_path).problems == []
