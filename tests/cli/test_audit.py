"""``noiseproof audit``."""

from __future__ import annotations

import csv
import json
import re
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

from noiseproof.cli import _audit, _tables
from noiseproof.cli._audit import _apply_command
from noiseproof.runs import Run


def rows_of(path) -> list[dict[str, str]]:
    return list(csv.DictReader(Path(path).read_text().splitlines()))


@pytest.fixture
def file(tmp_path):
    p = np.tile([[0.9, 0.1], [0.1, 0.9]], (20, 1))
    labels = np.array(["cat", "dog"] * 20)
    labels[4] = "dog"
    path = tmp_path / "p.npz"
    np.savez(path, probabilities=p, labels=labels, annotators=np.array(["a", "b"] * 20))
    return path


def test_probabilities_of_ones_own(run, file, tmp_path):
    code, out, _ = run("audit", file, "--out", tmp_path / "out")
    assert code == 0
    assert "2.5% of 40 labels are likely wrong: 1" in out
    assert re.search(r"1 +4 +dog +cat", out)
    assert "by annotator: a" in out
    rows = rows_of(tmp_path / "out" / "suspects.csv")
    assert [row["index"] for row in rows] == ["4"]
    assert (tmp_path / "out" / "suspects.html").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["a_long_name_without_a_blank", "名前がとても長いクラスの名前"])
def test_long_names_fold_in_a_narrow_terminal(run, file, tmp_path, monkeypatch, name):
    arrays = {k: v for k, v in np.load(file).items() if k != "annotators"}
    arrays["labels"] = np.where(arrays["labels"] == "cat", f"{name} 1", f"{name} 2")
    arrays["names"] = np.array([f"{name} {i}" for i in range(40)])
    np.savez(tmp_path / "long.npz", **arrays)
    monkeypatch.setattr(_tables, "width", lambda: 60)
    _, out, _ = run("audit", tmp_path / "long.npz", "--out", tmp_path / "out", width=60)
    _, table, shares, *_ = out.split("\n\n")
    lines = table.splitlines()
    assert len(lines) > 3
    assert max(cell_len(line.rstrip()) for line in lines) <= 60
    # Of a class whose labels are right nothing is said.
    assert shares.splitlines()[0] == f"likely wrong by class as given: {name} 2 5% of 21"


def test_the_time_that_is_left_is_said(capsys, monkeypatch):
    """By the epochs that were trained here: others may have been done before."""
    clock = iter([100.0, 101.0, 120.0])
    monkeypatch.setattr(_audit.time, "monotonic", lambda: next(clock))
    with ExitStack() as stack:
        tell = _audit._progress(stack)
        tell(51, 150)
        tell(52, 150)  # two epochs in 20 seconds, and 98 are left
    assert capsys.readouterr().out == "epoch 52 of 150, about 16 min left\n"


def test_mistakes_are_one_line(run, file, tmp_path):
    for arguments, message in (
        ((file, "--votes"), "for data"),
        ((tmp_path / "none.npz",), "cannot be read"),
        (("--dataset", "digits", "--annotator", "who"), "column of a table"),
        (("--dataset", "digits", "--apply", tmp_path / "none.csv"), "cannot be read"),
        (("--dataset", "digits", "--folds", "1"), "folds is"),
        (("--dataset", "digits", "--choose-epoch", "True"), "no epoch may be chosen by it"),
        (("--dataset", "digits", "--votes", "--choose-epoch", "True"), "and none is chosen"),
        ((file, "--number", "0"), "number is"),
        ((file, "--top", "-1"), "top is"),
    ):
        code, _, error = run("audit", *arguments, "--out", tmp_path / "out")
        assert code == 2
        assert message in error
        assert error.count("\n") == 1
    np.savez(tmp_path / "x.npz", x=np.zeros(3))
    assert "probabilities" in run("audit", tmp_path / "x.npz")[2]


def test_what_the_page_needs_is_asked_for_before_training(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    code, out, error = run("audit", "--dataset", "digits", "--out", tmp_path / "out")
    assert code != 0
    assert 'pip install "noiseproof[report]"' in error
    assert "training" not in out
    assert not (tmp_path / "out").exists()


def test_the_command_of_the_page_is_about_the_same_labels(run, tmp_path, monkeypatch):
    """Those that the authors' protocol draws are others."""
    monkeypatch.chdir(tmp_path)
    flags = ("--dataset", "digits", "--protocol", "authors", "--votes", "--epochs", "1")
    assert run("audit", *flags, "--device", "cpu", "--number", "3")[0] == 0
    page = Path("audit/suspects.html").read_text()
    command = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["apply"]
    with open("corrections.csv", "w") as file:
        file.write("index,name,given,decision,label\n")
        for row in rows_of("audit/suspects.csv"):
            file.write(f"{row['index']},{row['name']},{row['given']},drop,\n")
    code, out, error = run(*command.split()[1:])
    assert code == 0, error
    assert "3 samples dropped" in out


def test_the_command_of_the_page_reads_the_data_as_the_audit_did(tmp_path):
    given = Run(dataset="csv:a b.csv", ignore=("x y", "z"), skip_unreadable=True, seed=3, epochs=2)
    assert _apply_command(given, "who", tmp_path) == (
        "noiseproof audit --dataset 'csv:a b.csv' --ignore 'x y' z --skip-unreadable --seed 3 "
        f"--annotator who --out {tmp_path} --apply corrections.csv"
    )


@pytest.mark.slow
@pytest.mark.parametrize("how", [("--votes",), ("--folds", "2", "--workers", "1")])
def test_a_table_from_training_to_the_corrected_copy(run, tmp_path, monkeypatch, how):
    monkeypatch.chdir(tmp_path)
    drawn = np.random.default_rng(0)
    with open("own.csv", "w") as table:
        table.write("a,b,label,who\n")
        for i in range(120):
            truth = i % 2
            a, b = drawn.normal(size=2) + np.array([6 * truth - 3, 0])
            given = 1 - truth if i in (10, 31, 32) else truth
            table.write(f"{a:.3f},{b:.3f},{'no' if given else 'yes'},{'xy'[i % 2]}\n")
    data = ("--dataset", "csv:own.csv", "--annotator", "who")
    code, out, error = run(
        "audit", *data, *how, "--epochs", "15", "--device", "cpu", "--number", "6"
    )
    assert code == 0, error
    rows = rows_of("audit/suspects.csv")
    assert {"10", "31", "32"} <= {row["index"] for row in rows[:4]}
    assert rows[0]["name"].startswith("own.csv, line ")
    page = Path("audit/suspects.html").read_text()
    embedded = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert embedded["rows"][0][7] == "row"
    assert [name for name, _ in embedded["rows"][0][8]] == ["a", "b"]  # no annotator, no label
    command = embedded["apply"].split()
    assert command[:2] == ["noiseproof", "audit"]
    with open("corrections.csv", "w") as file:
        file.write("index,name,given,decision,label\n")
        file.write(f"10,x,{rows[0]['given'] if rows[0]['index'] == '10' else 'no'},change,yes\n")
    code, out, error = run(*command[1:])
    assert code == 0, error
    assert "1 label changed" in out
    trained = out.split("train on it with: noiseproof ")[1].split()
    assert run(*trained, "--epochs", "1", "--device", "cpu")[0] == 0
    again = run("audit", "audit/probabilities.npz", "--out", "again")
    assert again[0] == 0
