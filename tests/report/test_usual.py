"""What is usual is the protocol's; what is not is said, once where all runs share it."""

from __future__ import annotations

import csv
import io

import pytest

from noiseproof.bench import bench
from noiseproof.report import conclusions, html, study, tables, to_csv, to_latex, to_markdown
from noiseproof.train import Run

from .subjects import reading, record

QUICK = {"epochs": 20, "batch_size": 128, "lr": 0.04}
SAID = "batch size 128, epochs 20, lr 0.04"
USUAL = {"dataset": "mnist", "model": "cnn4", "batch_size": 128, "epochs": 50}


def entries(*records):
    return {e.label: e for e in study(reading(*records)).entries}


def made(*records):
    return tables(study(reading(*records)))


def of(run):
    """A record with all the settings that a real one has."""
    return record(0.9, **run.settings())


def test_the_protocol_is_usual_however_few_have_it():
    few = [record(0.9, **USUAL)]
    many = [record(0.8, **USUAL | {"epochs": 3}, loss=x) for x in ("ce", "nce", "mae")]
    found = entries(*few, *many)
    assert {label: e.variation for label, e in found.items()} == {
        "CE": "", "CE (epochs 3)": "epochs 3", "NCE (epochs 3)": "epochs 3",
        "MAE (epochs 3)": "epochs 3",
    }  # fmt: skip
    (table,) = made(*few, *many)
    assert (table.protocol, table.unlike) == ("", "")


@pytest.mark.parametrize("dataset", ["digits", "mnist", "fashion-mnist", "cifar10", "cifar100"])
@pytest.mark.parametrize("protocol", ["paper", "authors"])
def test_runs_as_their_protocol_has_them_are_usual(dataset, protocol):
    runs = [Run(dataset=dataset, protocol=protocol, loss=x) for x in ("ce", "jal-ce", "nlnl")]
    for e in entries(*map(of, runs)).values():
        assert (e.variation, e.unlike, e.way) == ("", "", protocol)


def test_ten_times_the_epochs_are_usual_for_nlnl_alone():
    found = entries(record(**USUAL | {"epochs": 500}, loss="nlnl"),
                    record(**USUAL | {"epochs": 500}), record(**USUAL, loss="nlnl"))  # fmt: skip
    assert set(found) == {"NLNL", "CE (epochs 500)", "NLNL (epochs 50)"}


def test_what_all_runs_share_is_in_the_caption_and_not_in_the_labels():
    records = [of(run) for run in bench("quick").runs if run.seed == 0]
    found = entries(*records)
    assert "NCE+RCE" in found
    assert {(e.variation, e.unlike) for e in found.values()} == {("", SAID)}
    (table,) = made(*records)
    assert (table.protocol, table.unlike) == ("paper", SAID)
    assert {table.settings(line) for line in table.lines} == {""}
    assert f"Settings unlike the protocol's: {SAID}." in to_markdown([table])
    assert f"Settings unlike the protocol's: {SAID}." in to_latex([table])
    assert {r["unlike"] for r in csv.DictReader(io.StringIO(to_csv([table])))} == {SAID}


def test_the_page_says_it_in_the_caption_and_the_facts():
    pytest.importorskip("jinja2", reason="the extra report is not installed")
    pytest.importorskip("vl_convert", reason="the extra report is not installed")
    runs = [record(0.9, **QUICK), record(0.8, **QUICK, loss="nce")]
    page = html(study(reading(*runs)))
    assert f"<span>protocol: paper, but with {SAID}; mean over 1 seed</span>" in page
    assert f"<dd>paper, but with {SAID}</dd>" in page
    page = html(study(reading(*runs, record(**QUICK, holdout=0.2))))
    assert f"<span>settings unlike the protocol's: {SAID}; mean over 1 seed</span>" in page
    assert "<small>holdout 0.2</small>" in page
    assert page.count("but with") == 1  # the fact


def test_only_what_is_left_over_is_in_the_label():
    found = entries(record(**QUICK), record(**QUICK, loss="nce", weight_decay=0.01))
    assert {label: e.variation for label, e in found.items()} == {
        "CE": "", "NCE (weight decay 0.01)": "weight decay 0.01",
    }  # fmt: skip
    assert {e.unlike for e in found.values()} == {SAID}


def test_protocols_that_share_other_things_say_them_in_their_rows():
    (table,) = made(
        record(epochs=4), record(epochs=4, loss="nce"),
        record(epochs=8, protocol="authors", variant="authors"),
    )  # fmt: skip
    assert table.unlike == ""
    assert [(line.label, table.settings(line)) for line in table.lines] == [
        ("CE", "epochs 4"), ("CE (authors)", "epochs 8"), ("NCE", "epochs 4"),
    ]  # fmt: skip
    text = to_markdown([table])
    assert "| CE | authors, epochs 8 |" in text
    assert "unlike" not in text


def test_what_is_the_users_own_is_always_said():
    digest = "0123456789abcdef"
    found = entries(record(**USUAL), record(**USUAL, own=digest))
    assert set(found) == {"CE", "CE (own 01234567)"}
    (only,) = entries(record(**USUAL, own=digest)).values()
    assert (only.label, only.unlike) == ("CE", "own 01234567")


@pytest.mark.parametrize("other", [{"dataset": "mushrooms"}, {"protocol": "mine"}])
def test_where_no_protocol_says_the_most_frequent_is_usual(other):
    at = {"noise": "none", "rate": 0.0, **other}
    found = entries(*(record(**at, loss=x) for x in ("ce", "nce")), record(**at, epochs=9))
    assert sorted(e.variation for e in found.values()) == ["", "", "epochs 9"]
    assert {e.unlike for e in found.values()} == {""}


def test_settings_that_are_missing_or_unknown_do_no_harm():
    old = record(**USUAL)
    del old.settings["holdout"], old.settings["variant"]
    new = [record(**USUAL, loss=x, warmup=w) for x, w in (("nce", 1), ("mae", 1), ("rce", 5))]
    assert set(entries(old, *new)) == {"CE", "NCE", "MAE", "RCE (warmup 5)"}


def test_rivals_share_their_unusual_settings():
    short = [record(0.5, epochs=4, loss="nce"), record(0.9, epochs=4, loss="nce+rce")]
    long = record(0.95, epochs=40, loss="nce")
    for records in (short, [*short, long]):
        assert "beats plain NCE (+40.0 points)" in conclusions(study(reading(*records)))[0]
