"""Flags as users type them: under other names, in any case, on a device that is not there."""

from __future__ import annotations

import re

import pytest

from noiseproof import cli
from noiseproof.cli._aliases import ALIASES, flags_of
from noiseproof.runs import Run
from noiseproof.train import _setup


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("train --learning-rate 0.1", "--lr"), ("train --wd=1", "--weight-decay"),
        ("train --num_epochs 3", "--epochs"), ("bench quick --batch 3", "--batch-size"),
        ("choose --output x", "--out"), ("choose --seed 1", "--seeds"),
        ("tune --random-state 1", "--seed"), ("recommend --data csv:x", "--dataset"),
        ("export runs/x --format onnx", "--to"), ("audit --cv 3", "--folds"),
    ],
)  # fmt: skip
def test_another_name_of_a_flag_is_answered_by_ours(run, typed, meant):
    command, *words = typed.split()
    given = next(w for w in words if w.startswith("--")).partition("=")[0].replace("_", "-")
    expected = f"noiseproof: {command} has no {given}: give {meant}\n"
    assert run(*typed.split()) == (2, "", expected)


def test_no_flag_that_a_command_has_is_refused(run):
    """Not even where it is another name in another command, as --seed is."""
    assert run("train", "--seed", "1", "--dry-run")[0] == 0
    assert run("report", "--format", "html", "--help")[0] == 0
    code, _, error = run("predict", "x", "y", "--wd", "1")  # which has none like it
    assert code == 2
    assert "give" not in error


def test_data_without_its_flag_is_told_its_flag(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.csv").touch()
    (tmp_path / "quick").mkdir()  # also the name of a bench
    for command in ("train", "choose", "tune", "audit", "bench", "recommend"):
        for word in ("csv:a b.csv", "a b.csv"):
            said = "noiseproof: data is given with a flag: --dataset 'csv:a b.csv'\n"
            assert run(command, word) == (2, "", said)
    assert run("bench", "quick", "--dry-run", "--out", tmp_path)[0] == 0
    assert run("results", "quick")[0] == 0


@pytest.mark.parametrize("command", cli.COMMANDS, ids=lambda c: c.__name__)
def test_the_flags_of_a_command_are_those_that_its_help_shows(run, command):
    text = run(command.__name__, "--help", width=100)[1]
    shown = set(re.findall(r"^[^\w-]+ --([a-z0-9-]+)", text, re.MULTILINE))
    known = flags_of(command)
    meant = {flag for flags in ALIASES.values() for flag in flags}
    assert meant & known <= shown
    assert ALIASES.keys() & shown <= known


def test_every_other_name_is_of_a_flag_that_some_command_has():
    known = set().union(*map(flags_of, cli.COMMANDS))
    assert {flag for flags in ALIASES.values() for flag in flags} <= known


@pytest.mark.parametrize(
    ("flag", "value"),
    [("protocol", "Paper"), ("precision", "FP32"), ("class-weight", "Balanced"), ("stream", "NO")],
)
def test_one_of_a_few_is_taken_in_any_case(run, flag, value):
    code, said, error = run("train", f"--{flag}", value, "--dry-run")
    assert (code, error) == (0, "")
    expected = Run(**{flag.replace("-", "_"): value.lower()}).resolve().hash
    assert said.split()[-1] == expected
    assert run("bench", "quick", f"--{flag}", value.upper(), "--dry-run")[0] == (
        0 if flag in ("protocol", "stream") else 2
    )


def test_an_executor_that_there_is_not_is_refused_before_the_plan_is_shown(run):
    said = "executor is one of local, ray; it was 'rayy' (did you mean 'ray'?)"
    assert run("bench", "quick", "--executor", "rayy") == (2, "", f"noiseproof: {said}\n")


@pytest.mark.parametrize(
    "command", ["train --dry-run", "bench quick --dry-run", "choose --dry-run"]
)
def test_a_device_that_is_not_there_is_refused_by_a_dry_run(run, monkeypatch, command):
    monkeypatch.setattr(_setup.torch.cuda, "is_available", lambda: False)
    code, _, error = run(*command.split(), "--device", "cuda")
    assert code == 2
    assert error.splitlines()[-1] == (
        "noiseproof: device 'cuda' was asked for, but torch sees no GPU; give --device cpu"
    )
    assert run(*command.split(), "--device", "cpu")[0] == 0
