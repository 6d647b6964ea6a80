"""What commands print: names that would steer a terminal, tables of many rows, numbers missing."""

from __future__ import annotations

import io
import json
import math
import re
import sys
import warnings
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest

import noiseproof
from noiseproof import bench as benches
from noiseproof import train
from noiseproof.bench import RunEvent
from noiseproof.catalogue import DataSummary
from noiseproof.cli import _bench, _tables
from noiseproof.results import Record, write_bundle
from noiseproof.runs import Run
from noiseproof.train._model import Inputs

HOSTILE = "[red]a\x1b[31m\x00\u202e[/red]"
SHOWN = r"[red]a\x1b[31m\x00\u202e[/red]"
HISTORY = [{"epoch": 1.0, "test_accuracy": 0.5}]


def is_harmless(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text)


def test_a_warning_and_an_error_are_printable(run, monkeypatch, recwarn):
    warnings.simplefilter("default")

    def shout(*_, **__):
        warnings.warn(f"warned of {HOSTILE}", stacklevel=1)
        raise noiseproof.UsageError(f"no {HOSTILE}")

    monkeypatch.setattr(benches, "names", shout)
    code, _, error = run("bench", "--list")
    assert code == 2
    assert is_harmless(error)
    assert error.splitlines() == [
        f"noiseproof: warning: warned of {SHOWN}", f"noiseproof: no {SHOWN}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "status"),
    [(OSError(13, "no", f"runs/{HOSTILE}"), 1), (ZeroDivisionError(HOSTILE), 70)],
)
def test_a_file_and_a_traceback_are_printable(run, monkeypatch, error, status):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(benches, "names", fail)
    code, _, said = run("bench", "--list")
    assert code == status
    assert SHOWN in said
    assert is_harmless(said)


def test_problems_of_results_are_printable(run, tmp_path):
    folder = tmp_path / "a\x1b[31m"
    folder.mkdir()
    (folder / "result.json").write_text("{")
    (folder / "run.json").write_text(json.dumps({"settings": {"loss": HOSTILE}}))
    for arguments in ((), ("--upgrade",)):
        code, out, error = run("results", tmp_path, *arguments)
        assert code == 0
        assert is_harmless(out + error)
        assert r"a\x1b[31m" in error


def test_what_a_bench_says_is_printable(run, tmp_path, monkeypatch):
    def fail(plan, *_, watch, **__):
        bench = plan.bench
        watch(RunEvent("ended", bench.runs[0].resolve().hash, error=HOSTILE))
        early = Record(bench.runs[1].resolve(), [], {}, HOSTILE)
        return benches.Outcome(bench, [early], [(bench.runs[0], HOSTILE)], [], 1.0)

    monkeypatch.setattr(benches, "run", fail)
    out = tmp_path / "a\x1b[31m"
    (out / "x").mkdir(parents=True)
    (out / "x.jsonl").write_text(f"{{{HOSTILE}")
    arguments = ("--loss", "ce", "nce", "--rate", "0.6", "--seeds", "0", "--out", out)
    code, said, error = run("bench", "quick", *arguments)
    assert code == 1
    assert is_harmless(said + error)
    assert f"CE, seed 0: {SHOWN}\n" in said
    assert f"could not be trained: {SHOWN}\n" in error
    assert f"ended early: {SHOWN}\n" in error
    assert r"a\x1b[31m/x.jsonl, line 1, is damaged" in error


def test_a_bar_shows_names_as_they_stand(monkeypatch, tmp_path):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", shown)
    for name, value in (("TERM", "xterm"), ("COLUMNS", "200"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    bench = benches.bench("quick").narrow(loss=["ce"], rate=[0.4], seeds=[0])
    run = replace(bench.runs[0].resolve(), loss=HOSTILE, overrides=("loss",))
    plan = replace(benches.plan(bench, tmp_path), resolved={bench.runs[0]: (run,)})
    with ExitStack() as stack:
        watch = _bench._progress(plan, stack)
        watch(RunEvent("ended", run.hash, accuracy=0.5, error=HOSTILE))
    assert f"{SHOWN} 50.0%" in shown.getvalue()
    assert f"1/1  digits, symmetric 0.4, {SHOWN}, seed 0: {SHOWN}" in shown.getvalue()
    assert "\x1b[31m" not in shown.getvalue()


def listed(run, tmp_path, *records: Record, cells: bool = False) -> list[str]:
    write_bundle(tmp_path / "runs.jsonl", records)
    code, out, error = run("results", tmp_path / "runs.jsonl", *["--cells"] * cells)
    assert (code, error) == (0, "")
    return out.splitlines()


def test_a_number_that_is_missing_is_a_dash(run, tmp_path):
    records = [
        Record(Run(seed=0).resolve(), HISTORY, {}),
        Record(Run(seed=1).resolve(), [{"epoch": 1.0, "test_accuracy": math.nan}], {}),
        Record(Run(seed=2).resolve(), [], {}),
        Record(Run(seed=3).resolve(), [], {}, "the loss became nan"),
    ]
    _, *rows, _ = listed(run, tmp_path, *records)
    found = {row.split()[-2]: row.split()[-1] for row in rows}
    assert found == {"0": "50.00%", "1": "-", "2": "-", "3": "failed"}


def test_the_help_says_what_the_numbers_of_a_csv_are(run):
    _, out, _ = run("results", "--help")
    assert "accuracies are fractions from 0 to 1" in " ".join(out.replace("│", " ").split())


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_long_table_is_the_same_without_rich(monkeypatch, capsys, is_terminal):
    """rich takes seconds for thousands of rows, and pipes have no use for it."""
    columns = [
        ("loss", ["NCE+RCE", "CE", HOSTILE]), ("名前", ["数", "x", "[bold]"]),
        ("accuracy", ["50.00%", "-", "9.00%"]),
    ]  # fmt: skip
    monkeypatch.setattr(_tables, "width", lambda: 200)
    _tables.show(columns, right=["accuracy"])
    with_rich = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    monkeypatch.setitem(sys.modules, "rich.table", None)  # an import of it is an error
    if is_terminal:
        monkeypatch.setattr(_tables, "_MANY", 2)
    else:
        monkeypatch.undo()
        monkeypatch.setitem(sys.modules, "rich.table", None)
    _tables.show(columns, right=["accuracy"])
    assert capsys.readouterr().out.splitlines() == with_rich


def test_what_a_method_has_by_its_protocol_is_one_row(run, tmp_path):
    """The loss of JS depends on the rate, and clean labels are not drawn as the authors do."""
    js = [
        Run(dataset="cifar10", loss="js", noise="symmetric", rate=rate).resolve()
        for rate in (0.0, 0.2, 0.8)
    ]
    assert len({r.loss for r in js}) > 1
    authors = [
        Run(dataset="mnist", loss="ce", noise="symmetric", rate=r, protocol="authors").resolve()
        for r in (0.0, 0.4)
    ]
    assert len({r.variant for r in authors}) > 1
    records = [Record(r, HISTORY, {}) for r in (*js, *authors)]
    rows = [line.split() for line in listed(run, tmp_path, *records, cells=True)]
    assert ["loss", "clean", "0.2", "0.8"] in rows
    assert ["JS", "50.00", "50.00", "50.00"] in rows
    assert ["loss", "clean", "0.4"] in rows
    assert ["CE", "50.00", "50.00"] in rows


def test_what_a_user_changed_is_a_row_of_its_own(run, tmp_path):
    runs = [
        Run(dataset="cifar10", loss="js", noise="symmetric", rate=rate, epochs=epochs).resolve()
        for rate, epochs in ((0.2, None), (0.8, None), (0.8, 7))
    ]
    rows = listed(run, tmp_path, *(Record(r, HISTORY, {}) for r in runs), cells=True)
    assert [row.split() for row in rows if row.startswith("JS")] == [
        ["JS", "50.00", "50.00", "epochs", "120"], ["JS", "50.00", "epochs", "7"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("flag", "text"),
    [("dataset", "CIFAR-10"), ("dataset", "cifar_10"), ("noise", "Symmetric"), ("model", "CNN 8")],
)
def test_results_are_found_by_names_as_papers_write_them(run, tmp_path, flag, text):
    runs = [Run(dataset="cifar10").resolve(), Run(noise="pairflip").resolve()]
    write_bundle(tmp_path / "runs.jsonl", [Record(r, HISTORY, {}) for r in runs])
    code, out, _ = run("results", tmp_path / "runs.jsonl", f"--{flag}", text)
    assert code == 0
    assert runs[0].hash in out
    assert "1 of 2 runs" in out


def test_a_misspelt_name_gets_a_suggestion(run, tmp_path):
    write_bundle(tmp_path / "runs.jsonl", [Record(Run(dataset="mnist").resolve(), HISTORY, {})])
    code, _, error = run("results", tmp_path / "runs.jsonl", "--dataset", "minst")
    assert code == 2
    assert (
        error == "noiseproof: no run has dataset minst (did you mean 'mnist'?); they have mnist\n"
    )


def test_predicted_classes_are_printable(run, tmp_path, monkeypatch):
    class Model:
        classes = (HOSTILE, "=1+1")
        inputs = Inputs((1, 8, 8), (0.5,), (0.5,), classes)

        def to(self, device):
            return self

        def predict_proba(self, images):
            return np.array([[0.9, 0.1], [0.2, 0.8]])

    monkeypatch.setattr(train, "load", lambda *_, **__: Model())
    np.savez(tmp_path / "x.npz", images=np.zeros((2, 1, 8, 8), np.uint8))
    code, out, _ = run("predict", tmp_path, tmp_path / "x.npz")
    assert code == 0
    assert is_harmless(out)
    assert [line.split(",")[2] for line in out.splitlines()] == ["class", SHOWN, "'=1+1"]


def test_what_was_remarked_on_in_training_is_told(run, tmp_path):
    for seed in (0, 1):
        about = {"notes": ["for 10 epochs some classes [red]were[/red] predicted for nothing"]}
        made = Run(seed=seed).resolve()
        record = Record(made, HISTORY, about if seed else {}, None)
        write_bundle(tmp_path / f"{seed}.jsonl", [record])
    code, out, _ = run("results", tmp_path / "0.jsonl", tmp_path / "1.jsonl")
    assert code == 0
    assert f"note of run {Run(seed=1).resolve().hash}: for 10 epochs some classes [red]were" in out


@pytest.mark.slow
def test_runs_that_look_alike_are_told_apart(run, tmp_path):
    grid = tmp_path / "grid.toml"
    grid.write_text(
        'dataset = "digits"\nnoise = "none"\nepochs = 1\nseed = 0\nloss = ["ce", "mae"]\n'
        'lr = [0.01, 0.1]\n[[exclude]]\nloss = "mae"\nlr = 0.1\n'
    )
    code, out, _ = run("bench", grid, "--out", tmp_path / "runs", "--workers", "1")
    assert code == 0
    lines = [line for line in out.splitlines() if ", seed 0" in line]
    assert [line.partition(":")[0].partition("  ")[2] for line in sorted(lines)] == [
        "digits, clean, CE, seed 0, lr 0.01", "digits, clean, CE, seed 0, lr 0.1",
        "digits, clean, MAE, seed 0",
    ]  # fmt: skip
    head, *rows, _ = run("results", tmp_path / "runs")[1].splitlines()
    assert head.split()[-2:] == ["accuracy", "settings"]
    assert sorted(row.partition("%")[2].strip() for row in rows) == ["", "lr 0.01", "lr 0.1"]
    _, out, _ = run("results", tmp_path / "runs", "--loss", "mae")
    assert "settings" not in out


@pytest.mark.parametrize("own", [False, True])
def test_what_follows_from_the_learning_rate_is_no_change_of_the_users(run, tmp_path, own):
    """Of auto, whose loss and limit are made for it."""
    rows = DataSummary("features", (5,), 3000, 10, tested=True)
    given = {"overrides": {"data": "mine"}, "data": rows} if own else {}
    runs = [
        Run(loss="auto", optimizer="sgd", **settings).resolve(**given)
        for settings in ({"lr": 0.02}, {"lr": 0.1}, {"lr": 0.1, "shrink_limit": 0.08})
    ]
    assert len({r.loss for r in runs}) == 2
    assert len({r.shrink_limit for r in runs}) == 3
    records = [Record(r, HISTORY, {}) for r in runs]
    for cells in (False, True):
        lines = listed(run, tmp_path, *records[:2], cells=cells)
        found = [line.partition("50.00")[2].strip(" %") for line in lines if " 50.00" in line]
        # Runs are in the order of their hashes.
        assert (found if cells else sorted(found)) == ["lr 0.02", "lr 0.1"]
        lines = listed(run, tmp_path, *records, cells=cells)
        assert any(line.endswith("lr 0.1, shrink limit 0.08") for line in lines)
    assert run("report", tmp_path / "runs.jsonl", "--out", tmp_path / "r.md")[0] == 0
    (limited,) = re.findall("shrink limit [0-9.]+", (tmp_path / "r.md").read_text())
    assert limited == "shrink limit 0.08"


def test_accuracies_of_different_labels_are_told_apart(run, tmp_path):
    resolved = [Run(dataset="digits", loss=loss).resolve() for loss in ("ce", "mae")]
    histories = [HISTORY, [{"epoch": 1.0, "validation_accuracy": 0.4}]]
    records = [Record(r, rows, {}) for r, rows in zip(resolved, histories, strict=True)]
    write_bundle(tmp_path / "runs.jsonl", records)
    _, out, _ = run("results", tmp_path / "runs.jsonl")
    assert "test set" in next(line for line in out.splitlines() if " CE " in line)
    assert "held-out labels" in next(line for line in out.splitlines() if " MAE " in line)
    write_bundle(tmp_path / "one.jsonl", records[:1])
    assert "tested on" not in run("results", tmp_path / "one.jsonl")[1]


def test_results_are_listed_as_tables_have_them(run, tmp_path):
    """Not by the hashes that name their folders."""
    given = [
        ("nce+rce", 0.6, 1), ("ce", 0.6, 0), ("nce+rce", 0.2, 0), ("nce+rce", 0.6, 0),
        ("ce", 0.2, 0),
    ]  # fmt: skip
    records = [
        Record(Run(loss=loss, rate=rate, seed=seed).resolve(), HISTORY, {}, None, tmp_path)
        for loss, rate, seed in given
    ]
    write_bundle(tmp_path / "runs.jsonl", records)
    _, out, _ = run("results", tmp_path / "runs.jsonl")
    words = [line.split() for line in out.splitlines()[1:-1]]
    assert [(w[3], w[4].lower(), int(w[-2])) for w in words] == [
        ("0.2", "ce", 0), ("0.2", "nce+rce", 0), ("0.6", "ce", 0), ("0.6", "nce+rce", 0),
        ("0.6", "nce+rce", 1),
    ]  # fmt: skip
