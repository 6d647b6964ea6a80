"""``noiseproof choose`` and ``noiseproof tune`` as a user types them."""

from __future__ import annotations

import csv
import shlex
import sys

import numpy as np
import pytest

SHORT = ("--epochs", 2, "--batch-size", 16)


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table of two classes, a fifth of the labels wrong."""
    drawn = np.random.default_rng(0)
    monkeypatch.chdir(tmp_path)
    with open("my table.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "y", "kind"])
        for i in range(120):
            wrong = drawn.random() < 0.2
            writer.writerow([*(drawn.normal(size=2) + 3 * (i % 2)), "ab"[(i + wrong) % 2]])
    return ("--dataset", "csv:my table.csv", "--label", "kind")


@pytest.mark.slow
def test_choose(run, table, tmp_path):
    pytest.importorskip("vl_convert")
    asked = ("choose", *table, "--loss", "ce", "mae", "--seeds", 0, 1, *SHORT, "--device", "cpu")
    code, out, err = run(*asked, "--workers", 1, "--plot", "choice.svg")
    assert (code, err) == (0, "")
    assert "choosing among 2 losses: 4 runs, 0 done, 4 to do, to runs" in out
    assert "held-out samples and 2 seeds" in out
    assert "test" not in out.splitlines()[-8]  # there is none
    assert (tmp_path / "choice.svg").exists()
    command = next(line for line in out.splitlines() if line.startswith("train with it: "))
    words = shlex.split(command.removeprefix("train with it: "))
    assert words[:4] == ["noiseproof", "train", "--dataset", "csv:my table.csv"]
    again = run(*asked, "--plot", "again.svg")
    assert again[0] == 0
    assert "4 runs, 4 done, 0 to do" in again[1]
    assert (tmp_path / "choice.svg").read_text() == (tmp_path / "again.svg").read_text()
    code, out, _ = run(*words[1:], "--dry-run")  # the command can be typed
    assert code == 0
    assert "holdout" in out


def test_choose_says_what_it_would_do(run, table, tmp_path):
    code, out, _ = run("choose", *table, "--dry-run")
    assert code == 0
    assert "choosing among 6 losses: 18 runs, 0 done" in out
    assert not (tmp_path / "runs").exists()


def test_choose_refuses_what_it_decides_itself(run):
    code, _, err = run("choose", "--seed", 3)
    assert code == 2
    assert "--seed" in err


@pytest.mark.slow
def test_tune(run, table, tmp_path):
    pytest.importorskip("optuna")
    asked = ("tune", *table, *SHORT, "--device", "cpu", "--loss", "ce", "nce + rce")
    code, out, err = run(*asked, "--trials", 2)
    assert (code, err) == (0, "")
    assert out.count("trial 0: ") == out.count("trial 1: ") == 1
    assert "2 trials of the study my table.csv-" in out
    assert "largest of 2, and so too high" in out
    assert (tmp_path / "runs" / "tune.db").exists()
    code, more, _ = run(*asked, "--trials", 3, "--plot", "study.svg")
    assert code == 0
    assert "trial 1: " not in more
    assert "trial 2: " in more
    assert (tmp_path / "study.svg").exists()
    words = shlex.split(more.splitlines()[-2].removeprefix("train with it: "))
    assert run(*words[1:], "--dry-run")[0] == 0


def test_tune_without_optuna(run, table, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    code, _, err = run("tune", *table)
    assert code == 2
    assert err == 'noiseproof: tune needs optuna: pip install "noiseproof[tune]"\n'


@pytest.mark.parametrize("command", ["choose", "tune"])
def test_help_lists_the_flags(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    for flag in ("--dataset", "--loss", "--noise", "--holdout", "--plot", "--out"):
        assert flag in out


def test_recommend(run, table):
    code, out, err = run("recommend", *table)
    assert (code, err) == (0, "")
    assert "2 classes and 120 samples" in out
    by_number = run("recommend", "--classes", 2, "--samples", 120)[1]
    assert by_number == out
    assert run("recommend", "--dataset", "digits")[1].startswith("nce + 0.1*rce\n")
    for wrong in ((), ("--dataset", "digits", "--classes", 3)):
        code, _, err = run("recommend", *wrong)
        assert code == 2
        assert "give --dataset DATA, or --classes and --samples" in err


@pytest.mark.slow
def test_the_command_that_choose_ends_with_makes_a_model(run, table, tmp_path):
    asked = ("--loss", "ce", "--seeds", 0, *SHORT, "--device", "cpu", "--workers", 1)
    _, out, _ = run("choose", *table, *asked)
    command = next(line for line in out.splitlines() if line.startswith("train with it: "))
    words = shlex.split(command.removeprefix("train with it: noiseproof "))
    code, out, _ = run(*words, "--device", "cpu")  # the choice has trained it, and kept no network
    assert code == 0
    assert "its network was not kept: it is trained again" in out
    (folder,) = (path for path in (tmp_path / "runs").iterdir() if path.name != ".locks")
    assert run("predict", folder, tmp_path / "my table.csv")[0] == 0
    assert "this run has ended before; --force" in run(*words, "--device", "cpu")[1]


@pytest.mark.parametrize("command", ["choose", "audit"])
def test_a_folder_that_cannot_be_made_is_one_line(run, table, tmp_path, command):
    (tmp_path / "file").touch()
    code, _, err = run(command, *table, *SHORT, "--device", "cpu", "--out", "file/results")
    assert code == 1
    assert err.startswith("noiseproof: Not a directory: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["choose", "tune"])
def test_a_picture_is_refused_before_anything_is_trained(run, table, tmp_path, command):
    pytest.importorskip("vl_convert")
    code, _, err = run(command, *table, "--plot", "choice.pdf")
    assert code == 2
    assert "a picture is written as png, svg, html; not as 'choice.pdf'" in err
    assert not (tmp_path / "runs").exists()


def test_a_missing_library_is_said_before_anything_is_trained(run, table, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    monkeypatch.setitem(sys.modules, "cleanlab", None)
    for asked, extra in (
        (("choose", "--plot", "a.svg"), "plot"),
        (("audit", "--cleanlab"), "audit"),
    ):
        code, _, err = run(*asked, *table)
        assert code == 2
        assert f'pip install "noiseproof[{extra}]"' in err
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "audit").exists()


@pytest.mark.parametrize("rest", [",when,note\n{},2024-01-02,\n", "\n{}\n"])
def test_recommend_reads_labels_alone(run, tmp_path, monkeypatch, rest):
    """The other columns may hold what no network takes, or not be there."""
    monkeypatch.chdir(tmp_path)
    header, row = rest.splitlines(keepends=True)
    rows = [row.format(label) for label in ["yes", "no"] * 60]
    (tmp_path / "raw.csv").write_text(f"label{header}{''.join(rows)}")
    code, out, err = run("recommend", "--dataset", "csv:raw.csv")
    assert (code, err) == (0, "")
    assert "2 classes and 120 samples" in out
    code, _, err = run("recommend", "--dataset", "csv:raw.csv", "--label", "lable")
    assert (code, err.count("\n")) == (2, 1)
    assert "raw.csv has no column 'lable' (did you mean 'label'?)" in err


def test_recommend_goes_on_without_rows_as_its_message_says(run, table, tmp_path):
    with (tmp_path / "my table.csv").open("a") as file:
        file.write("1,2,\n")
    code, _, err = run("recommend", *table)
    assert code == 2
    assert "--skip-unreadable" in err
    code, out, _ = run("recommend", *table, "--skip-unreadable")
    assert code == 0
    assert "120 samples" in out


def test_a_file_that_cannot_be_written_is_said_without_a_number(run, table, tmp_path):
    (tmp_path / "file").touch()
    code, _, err = run("losses", "ce", "--plot", "file/a.svg")
    assert code == 1
    assert "[Errno" not in err
    assert err.count("\n") == 1
