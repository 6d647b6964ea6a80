"""The script that chooses and tries the one setting: its runs, its sets, its rules of thumb."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from noiseproof import data

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "rule.py"


@pytest.fixture(scope="module")
def rule() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rule", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def images(n: int, *shape: int, classes: int = 10) -> data.Dataset:
    drawn = np.random.default_rng(0)
    x = drawn.integers(0, 256, (n, *shape), dtype=np.uint8)
    y = np.arange(n) % classes
    return data.from_arrays(x, y, x[:1] * 0, y[:1])


def test_no_test_image_is_read_to_choose(rule, tmp_path, monkeypatch):
    monkeypatch.setattr(rule, "ASIDE", 30)
    sets = {"cifar10": images(150, 3, 8, 8), "mnist": images(120, 1, 28, 28)}
    monkeypatch.setattr(data, "load", lambda name, root: sets[name])
    rule.write_sets(tmp_path, None)
    for name, size in (("cifar10", 150), ("pairs", 120)):
        made = np.load(tmp_path / f"{name}.npz")
        assert (len(made["x_test"]), len(made["x_train"])) == (30, size - 30)
        parts = [{x.tobytes() for x in made[f"x_{part}"]} for part in ("train", "test")]
        assert not parts[0] & parts[1]
    made = np.load(tmp_path / "pairs.npz")
    assert made["x_train"].shape[1:] == (1, 28, 28)
    halves = {}  # each half is a digit of the label's, and of one part alone
    source = np.asarray(sets["mnist"].train.images).reshape(120, 1, 28, 14, 2).mean(-1)
    for image, label in zip(np.rint(source).astype(np.uint8), np.arange(120) % 10, strict=True):
        halves[image.tobytes()] = int(label)
    for x, y in zip(made["x_train"], made["y_train"], strict=True):
        left, right = (np.ascontiguousarray(h).tobytes() for h in (x[..., :14], x[..., 14:]))
        assert 10 * halves[left] + halves[right] == y
    runs = rule.setting("cifar10", tmp_path, loss="ce", shrink=2.0, seed=10, lr_floor=0.1)
    resolved = [run.resolve() for run in runs]
    assert [(r.rate, r.lr_floor, r.holdout, r.shrink) for r in resolved] == [
        (0.5, 0.001, 0.1, 2.0), (0.7, 0.001, 0.1, 2.0),
    ]  # fmt: skip
    assert len({r.pack_key for r in resolved}) == 1


def test_the_stages_are_what_they_are_said_to_be(rule):
    def stage(number, **changed):
        given = {"shrinks": rule.SHRINK, "losses": tuple(rule.LOSSES), "variant": "", **changed}
        return rule.choice(number, Path("sets"), *given.values())

    first = stage(1)
    assert len(first) == len(set(first)) == 40
    assert {run.seed for run in first} == {10}
    second = stage(2, shrinks=[4.0], losses=["few"])
    assert len(second) == len(set(second)) == 16
    assert not set(first) & set(second)
    third = stage(3, shrinks=[4.0], losses=["few"], variant="grows")
    assert Counter(run.seed for run in third) == {11: 4, 12: 4}
    assert {run.shrink_schedule for run in third} == {"linear"}


def test_the_proof_waits_for_the_setting(rule, monkeypatch):
    monkeypatch.setattr(rule, "RULE", None)
    with pytest.raises(SystemExit, match="choose first"):
        rule.proof("cifar10", [0])
    chosen = {"loss": {10: "ce", 100: "nce"}, "shrink": 2.0, "ema_horizon": 0.03, "lr_floor": 0.1}
    monkeypatch.setattr(rule, "RULE", chosen)
    runs = rule.proof("cifar10", [0, 1])
    assert len(runs) == len(set(runs)) == 2 * 7 * 5
    assert {run.ema_horizon for run in runs} == {0.03}
    assert Counter(run.choose_epoch for run in runs) == {True: 2 * 7 * 3, False: 2 * 7 * 2}
    ours = [run for run in rule.proof("cifar100", [0]) if run.shrink]
    assert {(run.loss, run.lr_floor) for run in ours} == {("nce", 0.1 * 0.1)}
    assert len(rule.proof("cifar100", [0])) == 4 * 3


@pytest.mark.parametrize(
    ("changed", "epoch"),
    [
        ([9, 8, 7, 6, 5, 4, 3], 8),  # falls to the end
        ([9, 8, 7, 3, 7, 8, 9, 1], 6),  # over three: 8, 6, 5.67, 6, 8, 6
        ([9, 6, 3, 3, 3, 6, 9], 6),
    ],
)
def test_label_wave_stops_where_changes_begin_to_grow(rule, changed, epoch):
    assert rule.label_wave([float("nan"), *map(float, changed)]) == epoch


@pytest.mark.slow
def test_the_trial_goes_through(rule, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["rule.py", "trial", "--out", str(tmp_path)])
    runs = [run for run in rule.trial() if run.shrink in (0.0, 2.0)][:2]
    short = [type(run)(**{**vars(run), "epochs": 4}) for run in runs]
    monkeypatch.setattr(rule, "trial", lambda: short)
    rule.main()
    assert "2 of 2 ended well" in capsys.readouterr().out
    rule.table(tmp_path / "trial")
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 4
    assert "shrink 2, horizon 0.02, a tenth held out, seed 10" in rows[3]


@pytest.mark.slow
def test_two_networks_on_halves_agree_more_as_they_learn(rule):
    run = rule.trial()[2]
    rows = rule.agreement(type(run)(**{**vars(run), "epochs": 6}), None)
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert rows[-1]["kappa"] > 0.3 > abs(rows[0]["kappa"])  # they start differently
    assert 0.5 < rows[-1]["clean"] <= 1
