"""Settings that differ from the protocol are shown, once where all runs share them."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from noiseproof.bench import bench
from noiseproof.report import html, make_report, to_csv, to_latex, to_markdown
from noiseproof.runs import Run

from .subjects import reading, record

QUICK = {"epochs": 20, "batch_size": 128, "lr": 0.04}
SHARED = "epochs 20, batch size 128, lr 0.04"
IN_THE_PAPER = ("mnist", "cifar10", "cifar100")
OURS = "defaults of this package"
PROTOCOL = {"dataset": "mnist", "model": "cnn4", "batch_size": 128, "epochs": 50}


def entries(*records):
    return {e.label: e for e in make_report(reading(*records)).study.entries}


def made(*records):
    return make_report(reading(*records)).tables


def of(run):
    """A record of a run."""
    return replace(record(0.9), run=run.resolve())


def test_overrides_differ_from_the_protocol_however_many_runs_have_them():
    few = [record(0.9, **PROTOCOL)]
    many = [record(0.8, **PROTOCOL | {"epochs": 3}, loss=x) for x in ("ce", "nce", "mae")]
    found = entries(*few, *many)
    assert {label: e.overrides for label, e in found.items()} == {
        "CE": "", "CE (epochs 3)": "epochs 3", "NCE (epochs 3)": "epochs 3",
        "MAE (epochs 3)": "epochs 3",
    }  # fmt: skip
    (table,) = made(*few, *many)
    assert (table.protocol, table.shared_overrides) == ("", "")


@pytest.mark.parametrize("dataset", ["digits", "mnist", "fashion-mnist", "cifar10", "cifar100"])
@pytest.mark.parametrize("protocol", ["paper", "authors"])
def test_runs_of_a_protocol_have_no_overrides(dataset, protocol):
    runs = [Run(dataset=dataset, protocol=protocol, loss=x) for x in ("ce", "nce+rce", "nlnl")]
    whose = protocol if dataset in IN_THE_PAPER or protocol == "authors" else OURS
    for e in entries(*map(of, runs)).values():
        assert (e.overrides, e.shared_overrides, e.protocol_note) == ("", "", whose)


def test_ten_times_the_epochs_are_no_override_for_nlnl_alone():
    long = PROTOCOL | {"epochs": 500}
    found = entries(record(**long, loss="nlnl"), record(**long), record(**PROTOCOL, loss="nlnl"))
    assert set(found) == {"NLNL", "CE (epochs 500)", "NLNL (epochs 50)"}


def test_shared_overrides_are_in_the_caption_and_not_in_the_labels():
    records = [of(run) for run in bench("quick").runs if run.seed == 0]
    found = entries(*records)
    assert "NCE+RCE" in found
    assert {(e.overrides, e.shared_overrides) for e in found.values()} == {("", SHARED)}
    (table,) = made(*records)
    assert (table.protocol, table.shared_overrides) == (OURS, SHARED)
    assert {table.notes(row) for row in table.rows} == {""}
    assert f"Settings that differ from the protocol: {SHARED}." in to_markdown([table])
    assert f"Settings that differ from the protocol: {SHARED}." in to_latex([table])
    assert {r["shared_overrides"] for r in csv.DictReader(io.StringIO(to_csv([table])))} == {SHARED}


def test_the_page_shows_shared_overrides_in_the_caption_and_the_facts():
    pytest.importorskip("jinja2", reason="the extra report is not installed")
    pytest.importorskip("vl_convert", reason="the extra report is not installed")
    runs = [record(0.9, **QUICK), record(0.8, **QUICK, loss="nce")]
    page = html(make_report(reading(*runs)))
    assert f"<span>protocol: {OURS}, but with {SHARED}; mean over 1 seed</span>" in page
    assert f"<dd>{OURS}, but with {SHARED}</dd>" in page
    page = html(make_report(reading(*runs, record(**QUICK, holdout=0.2))))
    assert (
        f"<span>settings that differ from the protocol: {SHARED}; mean over 1 seed</span>" in page
    )
    assert "<small>holdout 0.2</small>" in page
    assert page.count("but with") == 1  # the fact


def test_only_overrides_that_are_not_shared_are_in_the_label():
    found = entries(record(**QUICK), record(**QUICK, loss="nce", weight_decay=0.01))
    assert {label: e.overrides for label, e in found.items()} == {
        "CE": "", "NCE (weight decay 0.01)": "weight decay 0.01",
    }  # fmt: skip
    assert {e.shared_overrides for e in found.values()} == {SHARED}


def test_protocols_with_other_shared_overrides_show_them_in_their_rows():
    (table,) = made(
        record(epochs=4), record(epochs=4, loss="nce"),
        record(epochs=8, protocol="authors", variant="authors"),
    )  # fmt: skip
    assert table.shared_overrides == ""
    assert [(row.label, table.notes(row)) for row in table.rows] == [
        ("CE", "epochs 4"), ("CE (authors)", "epochs 8"), ("NCE", "epochs 4"),
    ]  # fmt: skip
    text = to_markdown([table])
    assert f"| CE | {OURS}, epochs 4 |" in text
    assert "| CE | authors, epochs 8 |" in text
    assert "differ" not in text


def test_what_is_a_users_own_is_always_an_override():
    own = {"overrides": ("data", "loss"), "name": "xray"}
    found = entries(record(**PROTOCOL), record(**PROTOCOL, **own))
    assert set(found) == {"CE", "ce (own data and loss)"}
    (only,) = entries(record(**PROTOCOL, **own)).values()
    assert (only.label, only.shared_overrides) == ("ce (own)", "own data and loss")


@pytest.mark.parametrize("other", [{"dataset": "mushrooms"}, {"protocol": "mine"}])
def test_without_a_protocol_the_most_frequent_value_counts(other):
    at = {"noise": "none", "rate": 0.0, **other}
    found = entries(*(record(**at, loss=x) for x in ("ce", "nce")), record(**at, epochs=9))
    assert sorted(e.overrides for e in found.values()) == ["", "", "epochs 9"]
    assert {e.shared_overrides for e in found.values()} == {""}


def test_baselines_have_the_same_overrides():
    short = [record(0.5, epochs=4, loss="nce"), record(0.9, epochs=4, loss="nce+rce")]
    long = record(0.95, epochs=40, loss="nce")
    for records in (short, [*short, long]):
        conclusions = make_report(reading(*records)).conclusions
        assert "The active-passive loss beats plain NCE (+40.0 points)." in conclusions
