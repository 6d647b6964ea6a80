"""A grid from a file of the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from noiseproof import bench
from noiseproof.bench._plan import packs

GRID = """
title = "Mine"
dataset = "digits"
rate = [0.2, 0.4]
loss = ["ce", "10*nce + 0.1*rce(A=-4)"]
seed = [0, 1]
epochs = 2

[[include]]
loss = "mae"
rate = 0.8
lr = 0.1

[[exclude]]
loss = "ce"
rate = [0.2]
"""


def test_a_grid_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(GRID)
    found = bench.read_bench(path)
    assert (found.name, found.title) == ("mine", "Mine")
    assert len(found) == 8 + 2 - 2
    assert {run.epochs for run in found.runs} == {2}
    assert {(r.rate, r.lr) for r in found.runs if r.loss == "mae"} == {(0.8, 0.1)}
    assert not any(r.loss == "ce" and r.rate == 0.2 for r in found.runs)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("dataset = ", "mine.toml is not TOML"),
        ("los = 'ce'", "unknown setting 'los' .did you mean 'loss'"),
        ("loss = []", "loss has no value"),
        ("loss = ['ce', 3]", "loss must be a text; it was 3"),
        ("epochs = 'two'", "epochs must be a number; it was 'two'"),
        ("flip = 'no'", "flip is true or false; it was 'no'"),
        ("loss = 'ce'\n[[exclude]]\nloss = 'nce'", "no run has what .* leaves out, loss = 'nce'"),
        ("[[include]]\nseeds = 1", "unknown setting 'seeds' .did you mean 'seed'"),
        ("rate = 2", "rate goes from 0 to 1; it was 2"),
        ("loss = 'ncee'", r"unknown loss 'ncee' .did you mean 'nce'"),
        ("dataset = 'cifar11'", r"unknown data set 'cifar11' .did you mean 'cifar10'"),
        (f"seed = {list(range(1000))}\nepochs = {list(range(1, 1001))}", "1,000,000 runs is too"),
        ("x = " + "[" * 100_000, "is (not TOML|nested too deeply)"),
        ("include = 1", r"include is a list of tables; write \[\[include\]\]"),
        ("[[exclude]]\nseed = 0", r"\[\[exclude\]\] leaves no run"),
    ],
)
def test_a_mistake_is_one_clear_line(tmp_path, text, line):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=line):
        bench.read_bench(path)


def test_the_runs_that_the_reproduction_lacks_can_be_planned():
    found = bench.read_bench(Path(__file__).parents[2] / "docs" / "reasons.toml")
    assert {(r.dataset, r.protocol) for r in found.runs} == {
        ("cifar10", "authors"), ("cifar10", "paper"), ("mnist", "paper"),
    }  # fmt: skip
    alone = [r for r in found.runs if r.variant == "authors" and r.protocol == "paper"]
    assert {(r.noise, r.rate) for r in alone} == {("asymmetric", 0.4)}


def test_packs_of_cifar100_have_what_belongs_together():
    found = bench.read_bench(Path(__file__).parents[2] / "docs" / "cifar100.toml")
    first, *_ = packs([run.resolve(on_gpu=True) for run in found.runs], on_gpu=True)
    assert [(r.method, r.protocol) for r in first] == [
        ("CE", "paper"), ("JAL-CE", "paper"), ("NCE+RCE", "paper"), ("NCE+RCE", "authors"),
    ]  # fmt: skip
    assert {run.resolve().model for run in found.runs} == {"resnet34"}


def test_what_is_excluded_may_be_written_in_any_way(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        "noise = ['none', 'symmetric']\nrate = [0.2, 0.4]\nloss = ['ce', 'nce+rce']\n"
        "[[exclude]]\nloss = 'RCE + NCE'\nnoise = 'Symmetric'\nrate = 0.4\n"
    )
    found = [
        (r.noise, r.rate, r.method) for r in (run.resolve() for run in bench.read_bench(path).runs)
    ]
    assert sorted(found) == [
        ("none", 0.0, "CE"), ("none", 0.0, "NCE+RCE"), ("symmetric", 0.2, "CE"),
        ("symmetric", 0.2, "NCE+RCE"), ("symmetric", 0.4, "CE"),
    ]  # fmt: skip
