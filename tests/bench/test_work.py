"""What a worker does with a pack of runs: claims, results, errors."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest
from filelock import FileLock

from noiseproof import results
from noiseproof.bench._work import WorkerConfig, has_ended, work
from noiseproof.runs import Run

RUNS = [Run(epochs=1, loss=loss, device="cpu").resolve() for loss in ("ce", "mae")]
WRONG = replace(RUNS[0], loss="nosuch")


def events_of(runs, config):
    events = []
    work(runs, config, events.append)
    return {e.hash: e for e in events if e.what != "epoch"}, events


def test_runs_are_trained_once(tmp_path):
    config = WorkerConfig(tmp_path)
    ended, events = events_of(RUNS, config)
    assert [e.what for e in events] == ["epoch", "epoch", "ended", "ended"]
    assert all(s.accuracy > 0.1 and s.error is None for s in ended.values())
    assert all(has_ended(tmp_path, run) for run in RUNS)
    assert sorted(os.listdir(tmp_path / RUNS[0].hash)) == [
        "examples.json", "history.csv", "result.json", "run.json",
    ]  # fmt: skip
    again, events = events_of(RUNS, config)
    assert [e.what for e in events] == ["ended", "ended"]
    assert all(s.accuracy is None for s in again.values())


def test_networks_are_kept_if_asked(tmp_path):
    work(RUNS[:1], WorkerConfig(tmp_path, keep_models=True), lambda event: None)
    assert (tmp_path / RUNS[0].hash / "model.pt").exists()


def test_a_run_that_another_has_is_left_alone(tmp_path):
    (tmp_path / ".locks").mkdir()
    with FileLock(tmp_path / ".locks" / RUNS[0].hash):
        ended, _ = events_of(RUNS, WorkerConfig(tmp_path))
    assert [ended[run.hash].what for run in RUNS] == ["busy", "ended"]
    assert not (tmp_path / RUNS[0].hash).exists()
    ended, _ = events_of(RUNS, WorkerConfig(tmp_path))
    assert ended[RUNS[0].hash].accuracy is not None


def test_one_that_fails_is_recorded_and_the_rest_go_on(tmp_path):
    ended, _ = events_of([RUNS[0], WRONG, RUNS[1]], WorkerConfig(tmp_path))
    assert "nosuch" in ended[WRONG.hash].error
    assert all(has_ended(tmp_path, run) for run in RUNS)
    kept = json.loads((tmp_path / WRONG.hash / "error.json").read_text())
    assert kept["settings"]["loss"] == "nosuch"
    assert "Traceback" in kept["traceback"]
    reading = results.read(tmp_path)
    assert len(reading.records) == 2
    assert len(reading.problems) == 1
    assert "could not be trained: unknown loss 'nosuch'" in reading.problems[0]


def test_an_error_is_forgotten_once_the_run_has_ended(tmp_path, monkeypatch):
    from noiseproof import train

    def fail(*_, **__):
        raise RuntimeError("out of memory\nmore")

    with monkeypatch.context() as patch:
        patch.setattr(train, "fit_many", fail, raising=False)
        ended, _ = events_of(RUNS[:1], WorkerConfig(tmp_path))
    assert ended[RUNS[0].hash].error == "RuntimeError: out of memory"
    assert (tmp_path / RUNS[0].hash / "error.json").exists()
    ended, _ = events_of(RUNS[:1], WorkerConfig(tmp_path))
    assert ended[RUNS[0].hash].error is None
    assert not (tmp_path / RUNS[0].hash / "error.json").exists()


@pytest.mark.parametrize("root", [None, "data"])
def test_a_config_travels_as_json(tmp_path, root):
    config = WorkerConfig(tmp_path, root and tmp_path / root, "cpu", True)
    assert WorkerConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_a_pack_too_large_for_the_gpu_is_halved_and_its_memory_let_go(tmp_path, monkeypatch):
    import weakref

    import torch

    from noiseproof import train

    whole, sizes, held = train.fit_many, [], []

    def small(runs, **keywords):
        assert not any(ref() is not None for ref in held), "what failed is still held"
        sizes.append(len(runs))
        if len(runs) > 2:
            weights = torch.ones(4)  # alive as long as the error is
            held.append(weakref.ref(weights))
            raise torch.OutOfMemoryError("out of memory")
        return whole(runs, **keywords)

    monkeypatch.setattr(train, "fit_many", small, raising=False)
    losses = ("ce", "mae", "nce", "rce", "gce")
    runs = [Run(epochs=1, loss=loss, device="cpu").resolve() for loss in losses]
    ended, _ = events_of(runs, WorkerConfig(tmp_path))
    assert sizes == [5, 2, 3, 1, 2]
    assert all(ended[run.hash].error is None for run in runs)
