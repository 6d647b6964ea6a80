"""Killed at random moments, again and again, a run ends with the same numbers."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from noiseproof.train import Run, fit

from .subjects import same, weights

CODE = """
import sys, torch
torch.set_num_threads(1)
from noiseproof.train import Run, fit
run = Run(epochs=int(sys.argv[2]), loss="nce", ema=0.9, crop=1, batch_size=64, device="cpu")
fit(run, out=sys.argv[1], on_epoch=lambda p: print(p.epoch, flush=True))
"""


def run_of(epochs: int) -> Run:
    return Run(epochs=epochs, loss="nce", ema=0.9, crop=1, batch_size=64, device="cpu")


def killed(out: Path, epochs: int, moment: float) -> list[int]:
    """Train in a process of its own, and kill it so many seconds after its first epoch."""
    command = [sys.executable, "-c", CODE, str(out), str(epochs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        seen = [process.stdout.readline()]
        time.sleep(moment)
        process.kill()  # SIGKILL: nothing in the process sees it coming
        seen += process.stdout.readlines()
    return [int(line) for line in seen if line.strip()]


def check(tmp_path: Path, kills: int, epochs: int) -> None:
    run = run_of(epochs)
    whole = fit(run, out=tmp_path / "whole")
    draw = random.Random(0)
    firsts = []
    for _ in range(kills):
        seen = killed(tmp_path / "killed", epochs, draw.uniform(0, 0.25))
        firsts += seen[:1]
        assert (tmp_path / "killed" / run.resolve().hash / "run.json").exists()
    assert len(firsts) == kills, "the run ended before it was killed: give it more epochs"
    assert firsts == sorted(firsts)
    ended = fit(run, out=tmp_path / "killed")
    assert firsts[-1] > 1, "no run was ever taken up again"
    assert ended.network is not None
    assert table(ended.folder) == table(whole.folder)
    assert same(weights(ended.network), weights(whole.network))
    assert sorted(os.listdir(ended.folder)) == sorted(os.listdir(whole.folder))
    models = [torch.load(r.folder / "model.pt", weights_only=True) for r in (ended, whole)]
    assert same(*(list(m.values()) for m in models))


def table(folder: Path) -> list[str]:
    """The history as it is in the file, but for the seconds, its last column."""
    return [line.rpartition(",")[0] for line in (folder / "history.csv").read_text().splitlines()]


def test_three_kills_change_nothing(tmp_path):
    check(tmp_path, kills=3, epochs=30)


@pytest.mark.long
def test_a_hundred_kills_change_nothing(tmp_path):
    check(tmp_path, kills=100, epochs=800)
