"""The script that chooses and tries the one setting: its runs, its sets, its rules of thumb."""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib.util
import shutil
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from noiseproof import data, train

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
SCRIPT = BENCHMARKS / "rule.py"


def script(name: str) -> ModuleType:
    sys.path.insert(0, str(BENCHMARKS))  # as for a script that is run
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rule() -> ModuleType:
    return script("rule")


@pytest.fixture(scope="module")
def agree() -> ModuleType:
    return script("rule_agree")


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
    runs = rule.choice(tmp_path, ["cifar10"], ["jal"], [2.0], ["floor"], [10])
    resolved = [run.resolve() for run in runs]
    assert [(r.rate, r.lr_floor, r.holdout, r.shrink) for r in resolved] == [
        (0.7, 0.001, 0.1, 2.0), (0.5, 0.001, 0.1, 2.0),
    ]  # fmt: skip
    assert len({r.pack_key for r in resolved}) == 1


def test_the_choice_has_every_combination_once(rule):
    def choice(sets=("cifar10", "pairs"), shrinks=(4.0,), variants=("",), seeds=(10,)):
        return rule.choice(Path("sets"), sets, rule.WEIGHTS, shrinks, variants, seeds)

    first = choice(shrinks=rule.SHRINK)
    assert len(first) == len(set(first)) == 2 * len(rule.WEIGHTS) * len(rule.SHRINK) * 2
    assert {run.seed for run in first} == {10}
    losses = {(run.dataset, run.loss) for run in first}
    assert len(losses) == 2 * len(rule.WEIGHTS)  # by the classes of each set
    second = choice(variants=[v for v in rule.VARIANTS if v])
    assert len(second) == len(set(second)) == 2 * len(rule.WEIGHTS) * 5 * 2
    assert not set(first) & set(second)
    third = choice(sets=["pairs"], variants=["grows"], seeds=[11, 12])
    each = 2 * len(rule.WEIGHTS)  # rates and weights
    assert Counter(run.seed for run in third) == {11: each, 12: each}
    assert {run.shrink_schedule for run in third} == {"linear"}
    small = choice(sets=["small"])
    assert {run.dataset for run in small} == {run.dataset for run in choice(sets=["cifar10"])}
    assert [rule.set_of(run) for run in (small[0], first[0], third[0])] == [
        "small", "cifar10", "pairs",
    ]  # fmt: skip
    (fourth, _) = rule.choice(Path("sets"), ["pairs"], ["even"], [8.0], ["grows+fast+floor"], [10])
    assert (fourth.shrink_schedule, fourth.lr, fourth.lr_floor) == ("linear", 0.1, 0.1 * 0.1)
    with pytest.raises(argparse.ArgumentTypeError, match="no variant 'flor'; there are grows"):
        rule._variant("grows+flor")


def test_the_proof_waits_for_the_choice(rule, monkeypatch):
    monkeypatch.setattr(rule, "CHOSEN", False)
    with pytest.raises(SystemExit, match="choose first"):
        rule.proof("cifar10", [0])
    monkeypatch.setattr(rule, "CHOSEN", True)
    runs = [run.resolve() for run in rule.proof("cifar10", [0, 1])]
    assert len({run.hash for run in runs}) == len(runs) == 2 * 7 * 5
    assert {run.ema_horizon for run in runs} == {rule.HORIZON}
    assert Counter(run.choose_epoch for run in runs) == {True: 2 * 7 * 3, False: 2 * 7 * 2}
    assert Counter(run.method for run in runs)["auto"] == 2 * 7
    runs = [run.resolve() for run in rule.proof("cifar100", [0])]
    assert Counter(run.method for run in runs) == {"auto": 4, "JAL-CE": 4, "ANL-CE": 4}
    alone = rule.proof("cifar100", [0], losses=["auto"])
    assert [run.resolve().hash for run in alone] == [r.hash for r in runs if r.method == "auto"]


def test_the_proof_on_texts(rule, tmp_path, monkeypatch):
    monkeypatch.setattr(rule, "CHOSEN", True)
    for part in ("train", "test"):
        with gzip.open(tmp_path / f"{part}.csv.gz", "wt") as file:
            file.write("label,gt,text\n" + "".join(f"{i % 4},{i % 3},word{i}\n" for i in range(60)))
    runs = [run.resolve() for run in rule.proof("news", [0], tmp_path)]
    assert len(runs) == 7
    auto, *others = runs
    assert (auto.method, auto.model, auto.holdout) == ("auto", "bag", 0.1)
    assert Counter(run.choose_epoch for run in others) == {True: 3, False: 3}


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


def test_each_part_is_left_out_once(rule):
    runs = [run.resolve() for run in rule.parts("digits", [0, 1])]
    assert len({run.hash for run in runs}) == len(runs) == 2 * 6 * len(rule.PARTS)
    one = dict(zip(rule.PARTS, runs, strict=False))
    assert (one["auto"].method, one["cross entropy"].method) == ("auto", "CE")
    assert one["without the penalty"].weight_decay > 0 == one["without the penalty"].shrink
    assert one["without the choice"].holdout == 0 < one["without the average"].holdout
    whole = one["auto"].settings()
    other = one["without the loss"].settings()
    assert {name for name in whole if whole[name] != other[name]} == {"loss"}


@pytest.mark.slow
def test_parts_are_trained_and_told(rule, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rule, "COMMITTED", tmp_path / "kept")
    arguments = ["rule.py", "parts", "digits", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", arguments)
    runs = [replace(run, epochs=4, device="cpu") for run in rule.parts("digits", [0])[:4:3]]
    monkeypatch.setattr(rule, "parts", lambda *_: runs)
    rule.main()
    assert "2 of 2 ended well" in capsys.readouterr().out
    rule.main()
    assert "2 runs, 2 done" in capsys.readouterr().out
    rule.keep("parts", tmp_path)
    shutil.rmtree(tmp_path / "parts")
    rule.main()
    assert "2 runs, 2 done" in capsys.readouterr().out
    rule.table(*rule._bundles("parts"))
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 4
    assert "shrink 4 growing, lr 0.01, horizon 0.02, a tenth held out, seed 0" in rows[2]


@pytest.mark.slow
def test_two_networks_on_halves_agree_more_as_they_learn(agree):
    run = train.Run(loss="nce+mae", rate=0.5, epochs=6, device="cpu", ema_horizon=0.02, shrink=1.0)
    rows = agree.agreement(run, None)
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert rows[-1]["kappa"] > 0.3 > abs(rows[0]["kappa"])  # they start differently
    assert 0.5 < rows[-1]["clean"] <= 1


def test_how_far_networks_agree_is_kept_for_each_run(agree, rule, tmp_path, monkeypatch):
    monkeypatch.setattr(agree, "__file__", str(tmp_path / "rule_agree.py"))
    arrays = {"x": np.zeros((9, 1, 8, 8), "uint8"), "y": np.arange(9) % 3}
    np.savez(tmp_path / "pairs.npz", **arrays)
    of = {0.5: [0.1, 0.4], 0.8: [0.2]}

    def told(run: train.Run, root: str | None) -> list[dict[str, float]]:
        return [{"epoch": i, "kappa": kappa, "clean": 0.9} for i, kappa in enumerate(of[run.rate])]

    monkeypatch.setattr(agree, "agreement", told)
    given = f"rule_agree.py --data {tmp_path} --set pairs --weights even --shrink 4"
    for variant in ("grows", "", "grows"):
        monkeypatch.setattr(sys, "argv", [*given.split(), "--variant", variant])
        agree.main()
    with (tmp_path / "rule_agree.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    counted = Counter((row["rate"], row["shrink_schedule"]) for row in rows)
    assert counted == {(rate, how): n for rate, n in (("0.5", 2), ("0.8", 1))
                       for how in ("constant", "linear")}  # fmt: skip
    assert {row["set"] for row in rows} == {"pairs"}
