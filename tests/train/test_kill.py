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

from noiseproof.results import Folder
from noiseproof.train import Run

from .subjects import same

# Every process has the same settings, whatever those of the tests are: they decide the last digit.
CODE = """
import sys, torch
from noiseproof.train import Run, fit
torch.set_num_threads(1)
epochs, last, *folders = sys.argv[1:]

def on_epoch(progress):
    print(progress.epoch, flush=True)
    if progress.epoch >= int(last):
        sys.stdin.read()  # waits to be killed

run = Run(epochs=int(epochs), loss="nce", ema=0.9, crop=1, batch_size=64, device="cpu")
for folder in folders:
    fit(run, out=folder, on_epoch=on_epoch)
"""


def start(epochs: int, last: int, *folders: Path) -> subprocess.Popen[str]:
    """Train in a process of its own, in each folder, and wait after the epoch ``last``."""
    command = [sys.executable, "-c", CODE, str(epochs), str(last), *map(str, folders)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def killed(out: Path, epochs: int, last: int, moment: float, until: Path | None = None) -> int:
    """Train and kill it so many seconds after its first epoch, which is given back.

    It does not get beyond ``last``, however late the kill comes, and is not killed before the file
    ``until`` is there.
    """
    with start(epochs, last, out) as process:
        first = process.stdout.readline()
        assert first, f"it ended before its first epoch, with status {process.wait()}"
        time.sleep(moment)
        while until is not None and not until.exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()  # SIGKILL: nothing in the process sees it coming
    return int(first)


def check(tmp_path: Path, kills: int, epochs: int) -> None:
    run = Run(epochs=epochs, loss="nce", ema=0.9, crop=1, batch_size=64, device="cpu").resolve()
    stopped, whole = (tmp_path / name / run.hash for name in ("stopped", "whole"))
    draw = random.Random(0)
    firsts = []
    for i in range(kills):
        last = epochs * (i + 1) // (kills + 1)
        until = stopped / "checkpoint.pt" if i == kills - 1 else None
        firsts.append(killed(stopped.parent, epochs, last, draw.uniform(0, 0.25), until))
        assert (stopped / "run.json").exists()
    with start(epochs, epochs + 1, stopped.parent, whole.parent) as process:
        seen = [int(line) for line in process.communicate()[0].split()]
    assert process.returncode == 0
    firsts.append(seen[0])
    assert firsts == sorted(firsts)
    assert firsts[-1] > 1, "no run was ever taken up again"
    assert seen == [*range(firsts[-1], epochs + 1), *range(1, epochs + 1)]

    assert sorted(os.listdir(stopped)) == sorted(os.listdir(whole))
    assert len(Folder(whole).read_history()) == epochs
    assert table(stopped) == table(whole)
    for name in ("model.pt", "model-ema.pt"):
        models = [torch.load(folder / name, weights_only=True) for folder in (stopped, whole)]
        assert same(*(list(m.values()) for m in models))


def table(folder: Path) -> list[str]:
    """The history as it is in the file, but for the seconds, its last column."""
    return [line.rpartition(",")[0] for line in (folder / "history.csv").read_text().splitlines()]


@pytest.mark.slow
def test_three_kills_change_nothing(tmp_path):
    check(tmp_path, kills=3, epochs=30)


@pytest.mark.long
def test_a_hundred_kills_change_nothing(tmp_path):
    check(tmp_path, kills=100, epochs=800)
