"""Results chosen, listed and exported, from Python and from the command line."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace

import pytest

from noiseproof import cli, results
from noiseproof.cli import _tables
from noiseproof.cli._results import _list
from noiseproof.cli._tables import cell_table
from noiseproof.results import Record
from noiseproof.runs import Run
from noiseproof.train import fit_many

RUNS = [
    Run(epochs=1, loss=loss, device="cpu", rate=rate, seed=seed).resolve()
    for loss, rate, seed in (("ce", 0.2, 0), ("ce", 0.4, 1), ("nce+rce", 0.4, 0))
]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    fit_many(RUNS, out=folder)
    (folder / "damaged").mkdir()
    (folder / "damaged" / "result.json").write_text("{")
    return folder


def run_cli(monkeypatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["noiseproof", "results", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "140")
    cli.main()


def test_select(out):
    records = results.read(out).records
    assert results.select(records) == records
    assert {r.hash for r in results.select(records, loss=["NCE+RCE"])} == {RUNS[2].hash}
    assert len(results.select(records, rate=[0.4], seed=[])) == 2
    assert len(results.select(records, rate=(0.4,), loss=("ce",))) == 1
    assert results.select(records, dataset=["mnist"]) == []
    with pytest.raises(ValueError, match="runs have no setting 'colour'; they have "):
        results.select(records, colour=["red"])


def test_csv(out, tmp_path, monkeypatch, capsys):
    run_cli(monkeypatch, out, "--rate", 0.4, "--csv", tmp_path / "all.csv")
    said = capsys.readouterr()
    assert f"2 runs written to {tmp_path / 'all.csv'}" in said.out
    assert "is damaged; delete the folder" in said.err
    with (tmp_path / "all.csv").open(newline="") as file:
        rows = {row["hash"]: row for row in csv.DictReader(file)}
    row = rows[RUNS[2].hash]
    assert (row["method"], row["loss"], row["rate"], row["epochs"]) == (
        "NCE+RCE", "nce + 0.1*rce(A=-4)", "0.4", "1",
    )  # fmt: skip
    record = next(r for r in results.read(out).records if r.hash == RUNS[2].hash)
    assert float(row["last_test_accuracy"]) == record.accuracy
    assert row["weight_decay"] == "0.005"
    assert row["versions_noiseproof"]


def test_parquet(out, tmp_path, monkeypatch, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    run_cli(monkeypatch, out, "--parquet", tmp_path / "all.parquet")
    table = parquet.read_table(tmp_path / "all.parquet").to_pylist()
    assert {row["hash"] for row in table} == {run.hash for run in RUNS}
    assert {row["error"] for row in table} == {None}
    assert isinstance(table[0]["last_test_accuracy"], float)


def test_parquet_without_pyarrow_is_one_clear_line(out, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ImportError, match=r"a Parquet file needs pyarrow: pip install \"noiseproof"
    ):
        results.write_parquet(tmp_path / "x.parquet", [])


def test_bundle_and_folder_together(out, tmp_path, monkeypatch, capsys):
    run_cli(monkeypatch, out, "--bundle", tmp_path / "all.jsonl")
    run_cli(monkeypatch, out, tmp_path / "all.jsonl", "--loss", "ce")
    assert "2 of 3 runs" in capsys.readouterr().out


def test_list_and_cells(out, monkeypatch, capsys):
    run_cli(monkeypatch, out)
    text = capsys.readouterr().out
    assert all(run.hash in text for run in RUNS)
    assert "3 runs" in text
    run_cli(monkeypatch, out, "--cells")
    text = capsys.readouterr().out
    assert "digits, symmetric, test accuracy in %" in text
    assert "0.2" in text
    assert "NCE+RCE" in text


def test_none_is_no_error(tmp_path, monkeypatch, capsys):
    run_cli(monkeypatch, tmp_path)
    assert "0 runs" in capsys.readouterr().out


def mistake(monkeypatch, capsys, *arguments: object) -> str:
    """The one line that a mistake gets."""
    with pytest.raises(SystemExit) as stop:
        run_cli(monkeypatch, *arguments)
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    return next(line for line in said.err.splitlines() if line.startswith("noiseproof: "))


def test_a_place_that_is_not_there(out, tmp_path, monkeypatch, capsys):
    line = mistake(monkeypatch, capsys, out, tmp_path / "nowhere")
    assert line.startswith(f"noiseproof: {tmp_path / 'nowhere'} is not there; give a folder")


@pytest.mark.parametrize("kind", ["csv", "parquet", "bundle"])
def test_nothing_is_not_written(tmp_path, monkeypatch, capsys, kind):
    line = mistake(monkeypatch, capsys, tmp_path, f"--{kind}", tmp_path / "x")
    assert line.startswith("noiseproof: there are no runs to write: none in ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (("--loss", "mae"), "no run has loss mae; they have CE, NCE+RCE"),
        (("--loss", "ce", "mae"), "no run has loss mae; they have CE, NCE+RCE"),
        (("--rate", 0.6), "no run has rate 0.6; they have 0.2, 0.4"),
        (("--seed", 7), "no run has seed 7; they have 0, 1"),
        (("--protocol", "authors"), "no run has protocol authors; they have paper"),
        (("--rate", 0.2, "--seed", 1), "no run has all that was asked for at once; ask for less"),
    ],
)
def test_what_no_run_has_is_told(out, tmp_path, monkeypatch, capsys, wanted, message):
    csv = tmp_path / "x.csv"
    assert mistake(monkeypatch, capsys, out, *wanted, "--csv", csv) == f"noiseproof: {message}"
    assert not csv.exists()


def test_a_list_is_never_cut(out, monkeypatch, capsys):
    monkeypatch.setattr(_tables, "width", lambda: 30)
    run_cli(monkeypatch, out)
    text = capsys.readouterr().out
    for run in RUNS:
        row = next(line for line in text.splitlines() if line.startswith(run.hash[:8]))
        assert run.hash not in row
        noise, loss = f"symmetric {run.rate}", run.method
        assert row.split()[1:5] == ["digits", *noise.split(), loss]
        assert row.endswith("%")
    run_cli(monkeypatch, out, "--cells")
    text = capsys.readouterr().out
    assert "…" not in text
    assert text.splitlines()[2].split() == ["loss", "0.2", "0.4"]


def test_a_long_loss_folds_in_a_narrow_terminal(monkeypatch, capsys):
    monkeypatch.setattr(_tables, "width", lambda: 70)
    _list([Record(Run(loss="10*nce + 0.1*rce(A=-5) + 0.25*mae + 3*agce").resolve(), [], {})])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 70
    start = lines[0].index("loss")
    folded = "".join(line[start:].split()[0] for line in lines[1:])
    assert folded == "3*AGCE+10*NCE+0.25*MAE+0.1*RCE(A=-5)"


def test_a_pipe_has_no_width(out, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["noiseproof", "results", str(out)])
    monkeypatch.setenv("COLUMNS", "20")
    cli.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(RUNS) + 1
    assert all(any(line.startswith(run.hash) for line in lines) for run in RUNS)


def cells_said(capsys, *settings: dict[str, object]) -> list[str]:
    history = [{"test_accuracy": 0.5}]
    cell_table(results.cells(Record(Run(**s).resolve(), history, {}) for s in settings))
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()[2:]]


def test_cells_of_one_name_say_what_differs(capsys):
    short, long = {"loss": "nce", "epochs": 3}, {"loss": "nce", "epochs": 12, "weight_decay": 0.1}
    # The long run is there at one rate alone: it must not stand in the short ones' row.
    found = cells_said(
        capsys, short | {"rate": 0.2}, short | {"rate": 0.4}, long | {"rate": 0.4}, {"loss": "ce"}
    )
    assert found == [
        "loss 0.2 0.4 settings",
        "CE 50.00",
        "NCE 50.00 50.00 epochs 3, weight decay 0.005",
        "NCE 50.00 epochs 12, weight decay 0.1",
    ]
    assert cells_said(capsys, short | {"rate": 0.2}, short | {"rate": 0.4, "seed": 1}) == [
        "loss 0.2 0.4",
        "NCE 50.00 50.00",
    ]


def test_clean_labels_asked_for_in_two_ways(capsys):
    found = cells_said(capsys, {"noise": "none"}, {"noise": "symmetric", "rate": 0.0, "seed": 1})
    assert found[1:] == ["NCE+RCE 50.00 ± 0.00"]


def test_one_run_is_not_runs(out, monkeypatch, capsys, tmp_path):
    run_cli(monkeypatch, out / RUNS[0].hash)
    assert capsys.readouterr().out.endswith("\n1 run\n")
    run_cli(monkeypatch, out, "--seed", 1, "--csv", tmp_path / "x.csv")
    assert capsys.readouterr().out == f"1 run written to {tmp_path / 'x.csv'}\n"


HOSTILE = "[red]=1+1\x1b[31m\x00:smile:"


def hostile() -> list[Record]:
    history = [{"epoch": 1.0, "test_accuracy": 0.5}]
    runs = [replace(run, dataset=HOSTILE, loss=HOSTILE, overrides=("data", "loss")) for run in RUNS]
    return [Record(run, history, {"=cmd()": "@SUM(1)"}, "-1+1\x1b") for run in runs]


def test_names_cannot_steer_the_terminal(capsys):
    _list(hostile())
    cell_table(results.cells(hostile()))
    cell_table(results.cells(replace(record, error=None) for record in hostile()))
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "\x00" not in text
    shown = r"[red]=1+1\x1b[31m\x00:smile:"
    assert text.count(shown) >= 6
    assert f"{shown}, symmetric, test accuracy in %" in text


def test_no_cell_of_the_csv_is_a_formula(tmp_path):
    results.write_csv(tmp_path / "x.csv", hostile())
    with (tmp_path / "x.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert "'=cmd()" in header
    assert len(rows) == len(RUNS)
    for row in rows:
        cells = dict(zip(header, row, strict=True))
        assert (cells["'=cmd()"], cells["error"]) == ("'@SUM(1)", r"'-1+1\x1b")
        assert cells["dataset"] == r"[red]=1+1\x1b[31m\x00:smile:"
        assert not [c for c in row if c.startswith(("=", "+", "@"))]


def test_numbers_of_the_csv_stay_numbers(tmp_path):
    history = [{"epoch": 1.0, "test_accuracy": 0.5, "gap": -0.25, "tiny": -1e-9}]
    results.write_csv(tmp_path / "x.csv", [Record(RUNS[0], history, {"note": "-1.5e-3"})])
    with (tmp_path / "x.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    numbers = (row["last_gap"], row["last_tiny"], row["note"], row["last_test_accuracy"])
    assert numbers == ("-0.25", "-1e-09", "-1.5e-3", "0.5"), "a fraction, as in history.csv"
