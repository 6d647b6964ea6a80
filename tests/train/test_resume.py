"""A run that was stopped goes on to the numbers that it would have had, to the bit."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any

import pytest
import torch
from filelock import FileLock

from noiseproof import results
from noiseproof.train import Result, fit

from .subjects import StopError, but_seconds, flat_net, run_folders, same, stop_after, tiny, weights

CASES = {
    "plain": (tiny(epochs=4, batch_size=32), None),
    "augmented": (tiny(epochs=4, crop=1, flip=True, rotate=10.0, schedule="exponential"), None),
    "average": (tiny(epochs=4, ema=0.9, nesterov=True), None),
    "average over a share": (tiny(epochs=4, ema_horizon=0.2, holdout=0.1), None),
    "chosen epoch": (tiny(epochs=4, ema_horizon=0.2, choose_epoch=True), None),
    "dropout": (tiny(epochs=4), lambda: flat_net(dropout=0.5)),
    "adamw": (tiny(epochs=4, optimizer="adamw", warmup=1.5, schedule_by="step"), None),
    "mixup": (tiny(epochs=4, mixup=0.4, label_smoothing=0.1, decay_on="matrices"), None),
    "nlnl": (tiny(epochs=4, loss="nlnl"), None),
    "clean labels": (tiny(epochs=4, noise="none", holdout=0.1), None),
    "bf16": (tiny(epochs=4, precision="bf16", ema=0.9), flat_net),
}


STOPS = [("plain", (1,)), ("plain", (4,)), *((case, (1, 3)) for case in CASES)]


@pytest.mark.parametrize(("case", "stops"), STOPS)
def test_a_stopped_run_ends_as_an_uninterrupted_one(case, stops, tmp_path):
    run, network = CASES[case]

    def train(**more: Any) -> Result:
        overrides = {} if network is None else {"network": network(), "name": "mine"}
        torch.seed()  # another process has other numbers in its generators
        return fit(run, **overrides, **more)

    whole = train()
    for epoch in stops:
        with pytest.raises(StopError):
            train(out=tmp_path, on_epoch=stop_after(epoch))
    resumed = train(out=tmp_path)
    assert but_seconds(resumed.history) == but_seconds(whole.history)
    assert same(weights(resumed.network), weights(whole.network))
    names = {"history.csv", "model.json", "model.pt", "result.json", "run.json"}
    names |= {"model-ema.pt"} if run.ema or run.ema_horizon else set()
    names |= {"model-chosen.pt"} if run.choose_epoch else set()
    names |= {"examples.json"} if run.noise != "none" else set()  # of images with a wrong label
    names |= {"held_out.json"} if run.holdout or run.choose_epoch else set()
    assert set(os.listdir(resumed.folder)) == names
    assert len(run_folders(tmp_path)) == 1


def test_epochs_that_are_done_are_not_trained_again(tmp_path):
    seen = []
    run = tiny(epochs=4)
    with pytest.raises(StopError):
        fit(run, out=tmp_path, on_epoch=stop_after(3))
    fit(run, out=tmp_path, on_epoch=lambda p: seen.append(p.epoch))
    assert seen == [4]


def test_force_starts_anew(tmp_path):
    seen = []
    with pytest.raises(StopError):
        fit(tiny(), out=tmp_path, on_epoch=stop_after(1))
    fit(tiny(), out=tmp_path, force=True, on_epoch=lambda p: seen.append(p.epoch))
    assert seen == [1, 2]


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    """As when a folder was renamed."""
    run, other = tiny(), tiny(lr=0.5)
    with pytest.raises(StopError):
        fit(run, out=tmp_path, on_epoch=stop_after(1))
    (tmp_path / run.resolve().hash).rename(tmp_path / other.resolve().hash)
    with pytest.raises(
        ValueError, match=r"another run of this name \(lr is 0\.01 there and 0\.5 here\)"
    ):
        fit(other, out=tmp_path)
    assert len(fit(other, out=tmp_path, force=True).history) == 2


def test_a_damaged_checkpoint_is_refused_and_left(tmp_path):
    run = tiny()
    with pytest.raises(StopError):
        fit(run, out=tmp_path, on_epoch=stop_after(1))
    path = tmp_path / run.resolve().hash / "checkpoint.pt"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="the checkpoint is damaged; delete it to start anew"):
        fit(run, out=tmp_path)
    path.unlink()
    assert len(fit(run, out=tmp_path).history) == 2


def test_stopped_between_the_last_epoch_and_the_end(tmp_path):
    run = tiny()
    whole = fit(run)
    with pytest.raises(StopError):
        fit(run, out=tmp_path, on_epoch=stop_after(2))
    assert not (tmp_path / run.resolve().hash / "result.json").exists()
    ended = fit(run, out=tmp_path, on_epoch=stop_after(2))
    assert but_seconds(ended.history) == but_seconds(whole.history)
    told = json.loads((ended.folder / "result.json").read_text())
    assert told["epochs"] == 2


def test_a_run_that_another_process_trains_is_refused(tmp_path):
    run = tiny(epochs=4)
    (tmp_path / ".locks").mkdir()
    with FileLock(tmp_path / ".locks" / run.resolve().folder):
        with pytest.raises(ValueError, match=r"is training .*; wait for it, or give another"):
            fit(run, out=tmp_path)
        assert run_folders(tmp_path) == []
    assert len(fit(run, out=tmp_path).history) == 4


def test_a_folder_that_is_removed_while_it_trains_is_whole_in_the_end(tmp_path):
    run = tiny(epochs=3)

    def remove(progress):
        if progress.epoch == 1:
            shutil.rmtree(tmp_path / run.resolve().folder, ignore_errors=True)

    fit(run, out=tmp_path, on_epoch=remove)
    reading = results.read(tmp_path)
    assert (len(reading.records), reading.problems) == (1, [])


def test_a_run_killed_at_its_last_moment_keeps_no_checkpoint(tmp_path):
    run = tiny()
    result = fit(run, out=tmp_path)
    (result.folder / "checkpoint.pt").touch()  # as if killed between the two
    assert fit(run, out=tmp_path).network is None
    assert not (result.folder / "checkpoint.pt").exists()


def test_a_batch_of_a_billion_is_the_whole_set():
    huge, whole = (fit(tiny(batch_size=b, epochs=1)) for b in (10**9, 1437))
    assert but_seconds(huge.history) == but_seconds(whole.history)
