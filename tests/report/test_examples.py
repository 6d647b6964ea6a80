"""Images with a wrong label in a report, and what each loss says of them."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest

from noiseproof.report import html, make_report
from noiseproof.results import Example, Folder, Record, write_examples

from .subjects import bundle, reading, record
from .test_page import HOSTILE, parse

pytest.importorskip("jinja2", reason="the extra report is not installed")
pytest.importorskip("vl_convert", reason="the extra report is not installed")
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\nx").decode()
LOSSES = ("ce", "fl", "gce", "sce", "mae", "rce", "nce", "nfl", "nce+rce")


def ran(
    folder: Path, accuracy: float, predicted: str = "778", true: str = "7", **settings: object
) -> Record:
    """A run that says these classes of images of 7 that are labelled 8."""
    made = record(accuracy, **settings)
    path = folder / made.hash
    path.mkdir()
    examples = [Example(i, "8", true, p, 0.75, PICTURE) for i, p in enumerate(predicted)]
    write_examples(Folder(path), examples)
    return replace(made, source=path)


def test_each_answer_is_the_truth_the_wrong_label_or_neither(tmp_path):
    runs = [ran(tmp_path, 0.5, "887"), ran(tmp_path, 0.9, "771", loss="nce")]
    found = make_report(reading(*runs)).examples
    assert found.condition == "Digits, symmetric 0.4"
    assert [(e.true, e.given) for e in found.images] == [("7", "8")] * 3
    beliefs = {row.label: [a.belief for a in row.answers] for row in found.rows}
    assert beliefs == {"CE": ["label", "label", "truth"], "NCE": ["truth", "truth", "neither"]}
    assert [row.believed for row in found.rows] == [pytest.approx(20)] * 2
    assert [row.truth for row in found.rows] == [None] * 2  # these runs have no such column


def test_of_many_losses_cross_entropy_and_some_from_the_worst_to_the_best(tmp_path):
    runs = [ran(tmp_path, 0.5 + i / 20, loss=loss) for i, loss in enumerate(LOSSES[::-1])]
    found = make_report(reading(*runs)).examples
    assert found.num_losses == 9
    assert [row.label for row in found.rows] == ["NCE+RCE", "NFL", "RCE", "SCE", "FL", "CE"]


def test_they_are_of_the_noise_under_which_cross_entropy_loses_most(tmp_path):
    runs = [
        ran(tmp_path, accuracy, rate=rate, loss=loss, seed=seed)
        for rate, low in ((0.2, 0.8), (0.4, 0.3), (0.6, 0.5))
        for loss, accuracy in (("ce", low), ("nce", 0.9))
        for seed in (1, 2)
    ]
    found = make_report(reading(*runs)).examples
    assert (found.condition, found.seed) == ("Digits, symmetric 0.4", 1)


def test_a_loss_that_was_asked_of_other_images_is_left_out(tmp_path):
    runs = [
        ran(tmp_path, 0.5), ran(tmp_path, 0.6, true="5", loss="mae"),
        ran(tmp_path, 0.7, "77", loss="rce"), ran(tmp_path, 0.9, loss="nce"),
    ]  # fmt: skip
    assert [row.label for row in make_report(reading(*runs)).examples.rows] == ["CE", "NCE"]


def test_a_page_shows_them_with_words_for_who_cannot_see(tmp_path):
    page = html(make_report(reading(ran(tmp_path, 0.5, "8"), ran(tmp_path, 0.9, "7", loss="nce"))))
    parser = parse(page)
    (image,) = (given for tag, given in parser.elements if tag == "img")
    assert image == {"src": f"data:image/png;base64,{PICTURE}", "alt": "7, labelled 8"}
    text = " ".join(parser.text.split())
    assert "CE✗ 8 75 %, the wrong label" in text
    assert "NCE✓ 7 75 %, the truth" in text
    assert any(given.get("href") == "#examples" for _, given in parser.elements)


def test_hostile_classes_are_only_text(tmp_path):
    names = [HOSTILE, "a\x00\x1b[31m\u202e"]
    runs = [ran(tmp_path, a, loss=x, predicted=[HOSTILE], true=names[1])
            for x, a in (("ce", 0.5), ("nce", 0.9))]  # fmt: skip
    page = html(make_report(reading(*runs)))
    parser = parse(page)
    assert len([tag for tag, _ in parser.elements if tag == "script"]) == 4
    assert HOSTILE in parser.text
    assert r"a\x00\x1b[31m\u202e" in parser.text
    assert "\x1b" not in parser.text


def test_results_without_them_have_no_such_section(tmp_path):
    runs = [ran(tmp_path, 0.5), ran(tmp_path, 0.9, loss="nce")]
    bundled = bundle(tmp_path / "all.jsonl", *runs)
    for records in (bundled, reading(runs[0], record(0.9, loss="nce")), reading()):
        report = make_report(records)
        assert report.examples.rows == []
        assert 'id="examples"' not in html(report)
        assert 'href="#examples"' not in html(report)


def test_what_is_damaged_is_told_and_left_out(tmp_path):
    runs = [ran(tmp_path, 0.5), ran(tmp_path, 0.6, loss="mae"), ran(tmp_path, 0.9, loss="nce")]
    (runs[1].source / "examples.json").write_text("{")
    report = make_report(reading(*runs))
    assert [row.label for row in report.examples.rows] == ["CE", "NCE"]
    assert "examples.json is damaged" in parse(html(report)).text


def test_of_thousands_of_runs_few_are_looked_at(tmp_path, monkeypatch):
    looked = []
    monkeypatch.setattr(
        "noiseproof.report._examples.read_examples", lambda path: looked.append(path) or []
    )
    rates = [round(0.01 + i / 200, 3) for i in range(100)]
    runs = [
        record(0.5, rate=r, loss=x, seed=s) for r in rates for x in ("ce", "nce") for s in (0, 1)
    ]
    assert make_report(reading(*runs)).examples.rows == []
    assert len(looked) <= 2 * 12
