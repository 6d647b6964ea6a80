"""Results as values: folders and bundles of runs, merged, with what is damaged set aside."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

from noiseproof import results
from noiseproof.results import _store
from noiseproof.runs import Run, _resolved, hash_of
from noiseproof.train import fit_many


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    runs = [Run(epochs=2, loss=loss, device="cpu", noise="none") for loss in ("ce", "nce", "mae")]
    fit_many(runs, out=out)
    return out, [run.resolve() for run in runs]


def test_folders_are_read(trained):
    out, runs = trained
    found = results.read(out)
    assert found.problems == []
    assert {r.hash for r in found.records} == {run.hash for run in runs}
    record = next(r for r in found.records if r.run.loss == "nce")
    assert len(record.history) == 2
    assert record.accuracy == record.column("test_accuracy")[-1] > 0.1
    assert record.error is None
    assert results.read(record.source).records[0].hash == record.hash


def test_a_bundle_holds_the_same(trained, tmp_path):
    out, _ = trained
    records = results.read(out).records
    path = tmp_path / "all.jsonl"
    results.write_bundle(path, records)
    first = path.read_bytes()
    back = {r.hash: r for r in results.read(path).records}
    assert back.keys() == {r.hash for r in records}
    for record in records:
        again = back[record.hash]
        assert again.run == record.run
        assert again.about == record.about
        for one, two in zip(record.history, again.history, strict=True):
            assert one.keys() == two.keys()
            for name in one:
                same = math.isclose(one[name], two[name], rel_tol=1e-4)
                assert same or (math.isnan(one[name]) and math.isnan(two[name]))
    results.write_bundle(path, reversed(list(back.values())))
    assert path.read_bytes() == first  # whatever the order, and however often


def test_two_machines_merge_and_each_run_counts_once(trained, tmp_path):
    out, runs = trained
    other = tmp_path / "other"
    shutil.copytree(out / runs[0].hash, other / runs[0].hash)
    results.write_bundle(tmp_path / "b.jsonl", results.read(out).records[:2])
    assert len(results.read(other, out, tmp_path / "b.jsonl").records) == 3


def test_what_is_damaged_is_reported_and_skipped(trained, tmp_path):
    out, runs = trained
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    (copy / runs[0].hash / "run.json").write_text("{")
    history = copy / runs[1].hash / "history.csv"
    history.write_text("\n".join(history.read_text().split("\n")[:2]))
    (copy / "bad.jsonl").write_text('{"settings": {}}\n')
    (copy / "unfinished").mkdir()
    found = results.read(copy, tmp_path / "nowhere")
    assert [r.hash for r in found.records] == [runs[2].hash]
    assert len(found.problems) == 4
    text = "\n".join(found.problems)
    assert f"{copy / 'bad.jsonl'}, line 1, is damaged" in text
    assert "history.csv is damaged; delete the folder" in text
    assert "run.json is damaged" in text
    assert "nowhere is not there" in text


def test_one_damaged_line_costs_one_run(trained, tmp_path):
    out, runs = trained
    path = tmp_path / "b.jsonl"
    results.write_bundle(path, results.read(out).records)
    first, second, third = path.read_bytes().splitlines(keepends=True)
    cut = b"\xff\x00" + second[2:]
    for damage in (second[:40] + b"\n", cut, b"[]\n", second.replace(b'"about":{', b'"about":3,{')):
        path.write_bytes(first + damage + third)
        found = results.read(path)
        assert len(found.records) == 2
        assert found.problems == [f"{path}, line 2, is damaged; fetch the file again"]
    path.write_bytes(first + b"{\n" + third[:-30])
    found = results.read(path)
    assert len(found.records) == 1
    assert [p.split(", ")[1] for p in found.problems] == ["line 2", "line 3"]
    assert {r.hash for r in found.records} < {run.hash for run in runs}


def test_a_file_that_is_not_text_is_named(tmp_path):
    path = tmp_path / "picture.jsonl"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\xff\n\xfe\n")
    found = results.read(tmp_path)
    assert found.records == []
    assert found.problems == [
        f"{path} is not text; give a file that noiseproof results --bundle wrote"
    ]


def test_an_empty_bundle_is_no_problem(tmp_path):
    path = tmp_path / "none.jsonl"
    results.write_bundle(path, [])
    assert path.read_bytes() == b""
    assert results.read(path) == results.Reading([], [])
    path.write_text("\n")
    assert results.read(path) == results.Reading([], [])


def test_runs_that_have_not_ended_are_counted(tmp_path):
    for name in ("one", "other"):
        results.Folder(tmp_path / name).write_json("run.json", {"settings": {}})
    (tmp_path / "notes").mkdir()
    assert results.read(tmp_path) == results.Reading([], [], unended=2)
    assert results.read(tmp_path / "one").unended == 1


def test_runs_that_failed_alike_share_a_line(tmp_path):
    for i, error in enumerate(("no device", "no device", "no data", "no device")):
        results.Folder(tmp_path / f"run{i}").write_json("error.json", {"error": error})
    assert results.read(tmp_path).problems == [
        f"3 runs could not be trained: no device ({tmp_path / 'run0'}, and 2 more)",
        f"{tmp_path / 'run2'} could not be trained: no data",
    ]


def test_of_a_run_two_files_are_opened_and_its_hash_is_computed_once(trained, monkeypatch):
    """Folders of thousands of runs are listed in seconds."""
    out, runs = trained
    opened, hashed = [], []

    def count_open(path, mode):
        opened.append(Path(path).name)
        return open(path, mode)

    def count_hash(settings):
        hashed.append(settings)
        return hash_of(settings)

    monkeypatch.setattr(_store, "open", count_open, raising=False)
    monkeypatch.setattr(_resolved, "hash_of", count_hash)
    found = results.read(out, last_only=True)
    assert {r.hash for r in found.records} == {r.hash for r in found.records}
    assert len(hashed) == len(found.records) == len(runs)
    assert sorted(opened) == sorted(["result.json", "run.json"] * len(runs) + _LOCKS)


_LOCKS = ["result.json", "error.json"]  # are looked for in the folder of locks too


def test_what_is_no_run_is_left_out_and_what_leads_nowhere_is_told(trained, tmp_path):
    out, runs = trained
    (tmp_path / "run").symlink_to(out / runs[0].hash)
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "empty").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    found = results.read(tmp_path)
    assert [r.hash for r in found.records] == [runs[0].hash]
    assert found.problems == [f"{tmp_path / 'loop'} is damaged (OSError)"]
