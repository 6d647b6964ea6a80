"""One bad record costs itself alone: it is reported where it is read, and skipped."""

from __future__ import annotations

import json
import math

import pytest

from noiseproof import results
from noiseproof.report import make_report
from noiseproof.results import MAX_PROBLEMS, Record
from noiseproof.runs import Run

GOOD = Record(
    Run(loss="nce").resolve(), [{"epoch": 1.0, "test_accuracy": 0.5}],
    {"machine": {"device": "cpu"}, "versions": {}},
)  # fmt: skip


def line(**changes: object) -> dict[str, object]:
    """The line of a good record of another seed, changed."""
    content: dict[str, object] = {
        "format": results.FORMAT, "settings": GOOD.run.settings() | {"seed": 1},
        "about": dict(GOOD.about), "error": None,
        "history": {"epoch": [1], "test_accuracy": [0.5]},
    }  # fmt: skip
    for path, value in changes.items():
        *parents, last = path.split("__")
        target = content
        for name in parents:
            target = target[name]
        if value is ...:
            target.pop(last)
        else:
            target[last] = value
    return content


BAD = {
    "no rate": line(settings__rate=...),
    "no loss": line(settings__loss=...),
    "no noise": line(settings__noise=...),
    "no seed": line(settings__seed=...),
    "a rate that is none": line(settings__rate=None),
    "a rate of 7": line(settings__rate=7.0),
    "a rate of a text": line(settings__rate="0.4"),
    "no accuracy": line(history__test_accuracy=...),
    "an accuracy of a text": line(history__test_accuracy=["high"]),
    "columns of other lengths": line(history__epoch=[1, 2]),
    "a history that is a list": line(history=[1, 2]),
    "settings that are a list": line(settings=[1]),
    "empty settings": line(settings={}),
    "about that is a text": line(about="me"),
    "a machine that is a text": line(about__machine="mine"),
    "an error that is a list": line(error=[1]),
    "an unknown setting": line(settings__colour="red"),
    "another protocol": line(settings__protocol="mine"),
    "a huge number": line(settings__lr=10**400),
    "a huge accuracy": line(history__test_accuracy=[10**400]),
    "a chosen epoch that is not there": line(history__chosen_epoch=[7]),
    "a chosen epoch without end": line(history__chosen_epoch=[math.inf]),
    "a chosen epoch that is a text": line(history__chosen_epoch=["1"]),
}


@pytest.mark.parametrize("last_only", [False, True])
@pytest.mark.parametrize("what", BAD)
def test_a_bad_line_is_reported_and_skipped(what, last_only, tmp_path):
    path = tmp_path / "b.jsonl"
    results.write_bundle(path, [GOOD])
    with path.open("a") as file:
        file.write(json.dumps(BAD[what]) + "\n")
    if last_only and what == "columns of other lengths":
        return  # of which the last row is whole
    reading = results.read(path, last_only=last_only)
    assert [r.hash for r in reading.records] == [GOOD.hash]
    assert len(reading.problems) == 1
    assert f"{path}, line 2, is damaged" in reading.problems[0]
    assert make_report(reading).conclusions


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "1" * 5000, "\x00", "nul"])
def test_hostile_json_is_reported_and_skipped(text, tmp_path):
    path = tmp_path / "b.jsonl"
    results.write_bundle(path, [GOOD])
    path.write_text(path.read_text() + text + "\n")
    reading = results.read(path)
    assert (len(reading.records), len(reading.problems)) == (1, 1)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "result.json").write_text(text)
    (folder / "run.json").write_text(text)
    reading = results.read(folder)
    assert (reading.records, len(reading.problems)) == ([], 1)


def test_a_folder_with_empty_settings_is_reported(tmp_path):
    folder = results.Folder(tmp_path / "x")
    folder.write_json("run.json", {"format": 2, "settings": {}})
    folder.write_json("result.json", {"error": None, "epochs": 0})
    reading = results.read(tmp_path)
    assert reading.records == []
    assert "run.json is damaged (the setting 'dataset' is missing); delete" in reading.problems[0]


def test_many_problems_are_counted_not_listed(tmp_path):
    path = tmp_path / "b.jsonl"
    path.write_text("{}\n" * 500)
    problems = results.read(path).problems
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1] == "and 480 more problems"


def test_the_last_epoch_alone_can_be_read(tmp_path):
    rows = [{"epoch": float(i), "test_accuracy": i / 10} for i in range(1, 6)]
    record = Record(Run().resolve(), rows, {})
    path = tmp_path / "b.jsonl"
    results.write_bundle(path, [record])
    (last,) = results.read(path, last_only=True).records
    assert (len(last.history), last.accuracy, last.run) == (1, 0.5, record.run)
    (whole,) = results.read(path).records
    assert whole.history == rows
    assert "test_accuracy" not in repr(whole)  # a record does not print its epochs
    assert "epochs" in repr(whole.history)
