"""Results chosen, listed and exported, from Python and from the command line."""

from __future__ import annotations

import csv
import sys

import pytest

from noiseproof import cli, results
from noiseproof.train import Run, fit_many

RUNS = [
    Run(epochs=1, loss=loss, device="cpu", rate=rate, seed=seed)
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
        "NCE+RCE", "nce+rce", "0.4", "1",
    )  # fmt: skip
    record = next(r for r in results.read(out).records if r.hash == RUNS[2].hash)
    assert float(row["last_test_accuracy"]) == record.accuracy
    assert row["used_weight_decay"] == "0.005"
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
    with pytest.raises(ValueError, match=r"Parquet needs pyarrow: pip install \"noiseproof"):
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
    run_cli(monkeypatch, tmp_path, "--csv", tmp_path / "none.csv")
    run_cli(monkeypatch, tmp_path)
    assert "0 runs" in capsys.readouterr().out
