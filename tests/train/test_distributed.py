"""Several ranks that train one run: the numbers of one process, and an end that all ranks share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from noiseproof import UsageError, _torchrun, bench
from noiseproof.results import Folder
from noiseproof.train import fit
from noiseproof.train._ranks import ALONE, Ranks
from noiseproof.train._setup import Setup

from .rank import CASES, EPOCHS, case_of, stopped_run, streamed
from .subjects import but_seconds, flat_net, tiny

ROOT = Path(__file__).parents[2]
# Sums over ranks are rounded otherwise than those of one process: by 3e-7 in these runs. What is
# counted may change by a few of hundreds of samples, where two classes are equally likely.
TOLERANCE = 1e-5
COUNTED = 0.01
CONTINUOUS = ("epoch", "train_loss", "gradient_norm", "lr")


def torchrun(*arguments: object, ranks: int = 2, restarts: int = 0) -> Any:
    """Start ranks on this machine, and wait for their end."""
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone",
        f"--nproc-per-node={ranks}", f"--max-restarts={restarts}", "-m", *map(str, arguments),
    ]  # fmt: skip
    environ = {k: v for k, v in os.environ.items() if not k.startswith("COV_")}
    return subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=300
    )


def answers(tmp_path: Path, ranks: int) -> list[Any]:
    return [json.loads((tmp_path / f"answer-{r}.json").read_text()) for r in range(ranks)]


def assert_near(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert len(found) == len(expected)
    for row, wanted in zip(found, but_seconds(expected), strict=True):
        assert row.keys() - {"seconds"} == wanted.keys()
        for name in wanted.keys() - {"unpredicted_classes"}:
            if wanted[name] == "nan":
                assert row[name] == "nan"
                continue
            tolerance = TOLERANCE if name in CONTINUOUS else COUNTED
            assert row[name] == pytest.approx(wanted[name], rel=tolerance, abs=tolerance), name


def check_cases(tmp_path: Path, ranks: int) -> None:
    rng = np.random.default_rng(0)
    for name, least in (("dark", 0), ("light", 60)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for at in range(32):
            pixels = rng.integers(least, least + 180, (8, 8, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{at}.png")
    ended = torchrun("tests.train.rank", "cases", tmp_path, ranks=ranks)
    assert ended.returncode == 0, ended.stderr
    first, *others = answers(tmp_path, ranks)
    assert_near(first["streamed"], streamed(tmp_path / "photos"))
    for name in CASES:
        run, overrides = case_of(name)
        assert_near(first[name][0], fit(run, **overrides).history)
    told = [answer.pop("told") for answer in (first, *others)]
    assert told == [[1, 2], *[[]] * (ranks - 1)], "rank 0 tells, and of what is trained alone"
    assert all(other == first for other in others), "to the last digit"

    folder = tmp_path / "runs" / "kept"
    assert first["kept"] == [[str(folder), False], [str(folder), True]]
    described = Folder(folder).read_json("run.json")
    assert described is not None
    assert described["world_size"] == ranks
    run, overrides = case_of("plain")
    assert_near(Folder(folder).read_history(), fit(run, **overrides).history)
    assert not (folder / "checkpoint.pt").exists()
    assert "different labels" in first["other labels"]
    assert "different runs" in first["other runs"]
    assert "1436 noisy labels were given for 1437" in first["an error of all but rank 0"]


@pytest.mark.slow
def test_two_ranks_train_as_one_process(tmp_path):
    check_cases(tmp_path, 2)


@pytest.mark.long
def test_three_ranks_train_as_one_process(tmp_path):
    check_cases(tmp_path, 3)


@pytest.mark.slow
def test_a_mistake_is_one_line(tmp_path):
    ended = torchrun("noiseproof", "train", "--loss", "nocne", "--out", tmp_path)
    said = [line for line in ended.stderr.splitlines() if line.startswith("noiseproof: ")]
    assert len(said) == 1
    assert said[0].startswith("noiseproof: unknown loss 'nocne'")
    assert "exitcode  : 2 " in ended.stderr  # in torchrun's report of the rank
    assert ended.stdout.count("nocne") == 1


@pytest.mark.long
def test_the_error_of_one_rank_ends_all(tmp_path):
    arguments = ["--loss", "tests.train.rank:failing", "--device", "cpu"]
    ended = torchrun("noiseproof", "train", *arguments, "--out", tmp_path)
    assert ended.returncode != 0
    said = [line for line in ended.stderr.splitlines() if line.startswith("noiseproof: ")]
    assert said == [said[0]]
    assert "rank 1 is unwell" in said[0]


@pytest.mark.long
def test_killed_it_goes_on_with_one_rank(tmp_path):
    ended = torchrun("tests.train.rank", "killed", tmp_path)
    assert ended.returncode != 0
    folder = tmp_path / "runs" / "stopped"
    assert len(Folder(folder).read_history()) == 2
    told: list[int] = []
    result = fit(
        stopped_run(), network=flat_net(), out=tmp_path / "runs", name="stopped",
        on_epoch=lambda progress: told.append(progress.epoch),
    )  # fmt: skip
    assert told == [3, 4]
    assert_near(result.history, fit(stopped_run(), network=flat_net()).history)
    described = Folder(folder).read_json("run.json")
    assert described is not None
    assert described["world_size"] == 1


@pytest.mark.long
def test_stopped_it_goes_on_with_three_ranks_and_torchrun_starts_it_again(tmp_path):
    ended = torchrun("tests.train.rank", "restarted", tmp_path, ranks=3, restarts=1)
    assert ended.returncode == 0, ended.stderr
    assert answers(tmp_path, 3) == [[3, EPOCHS], [], []]
    history = Folder(tmp_path / "runs" / "stopped").read_history()
    assert_near(history, fit(stopped_run(), network=flat_net()).history)


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_each_sample_is_in_one_part_and_none_is_alone(size):
    for n in range(1, 40):
        parts = [range(n)[Ranks(rank, size).part(n)] for rank in range(size)]
        assert [i for part in parts for i in part] == list(range(n))
        assert n == 1 or all(len(part) != 1 for part in parts)
        busy = [len(part) for part in parts if part]
        assert max(busy) - min(busy) <= 1


def test_a_batch_has_two_samples_for_each_rank():
    run = tiny(batch_size=5).resolve()
    with pytest.raises(UsageError, match="give batch_size=6"):
        Setup(ranks=Ranks(0, 3)).trainer(run)


def test_one_process_is_alone(monkeypatch):
    assert _torchrun.place() is None
    assert ALONE.part(7) == slice(0, 7)
    environ = {"RANK": "1", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert _torchrun.place() is None
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert _torchrun.place() == _torchrun.Place(1, 2, 1)


def test_a_bench_is_refused(monkeypatch, tmp_path):
    environ = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match="leave out torchrun"):
        bench.run(bench.bench("quick"), tmp_path)
