"""Results as values: folders and bundles of runs, merged, with what is damaged set aside."""

from __future__ import annotations

import math
import shutil

import pytest

from noiseproof import results
from noiseproof.train import Run, fit_many


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    runs = [Run(epochs=2, loss=loss, device="cpu", noise="none") for loss in ("ce", "nce", "mae")]
    fit_many(runs, out=out)
    return out, runs


def test_folders_are_read(trained):
    out, runs = trained
    found = results.read(out)
    assert found.problems == []
    assert {r.hash for r in found.records} == {run.hash for run in runs}
    record = next(r for r in found.records if r.settings["loss"] == "nce")
    assert len(record.history) == 2
    assert record.accuracy == record.column("test_accuracy")[-1] > 0.1
    assert record.about["loss"] == "nce"
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
        assert again.settings == record.settings
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
