"""Cells compared with the published numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from noiseproof.report import comparisons, make_study
from noiseproof.report._conclude import make_conclusions
from noiseproof.report._tables import make_tables

from .subjects import reading, record, seeds


def find(found, **wanted):
    key = (wanted["noise"], wanted["rate"], wanted["method"])
    [one] = [
        c
        for c in found
        if (c.condition.noise, c.condition.rate, c.method) == key and c.ours is not None
    ]
    return one


@pytest.fixture(scope="module")
def found():
    at = {"dataset": "cifar10", "noise": "symmetric"}
    return comparisons(make_study(reading(
        *seeds((0.60, 0.61, 0.605), rate=0.4, loss="ce", **at),  # published: 60.28 ± 0.27
        record(0.53, rate=0.8, loss="nce+rce", **at),  # 52.71 ± 1.90, rerun 55.28
        record(0.61, rate=0.8, loss="nce+rce", protocol="authors", variant="authors", **at),
        record(0.70, rate=0.6, loss="nce+rce", **at),  # 79.78 ± 0.50
        record(0.60, rate=0.8, loss="nce", **at),
        record(0.90, rate=0.8, loss="gce", error="diverged", **at),
    )))  # fmt: skip


def test_difference_and_z_score(found):
    ce = find(found, noise="symmetric", rate=0.4, method="CE")
    assert ce.difference == pytest.approx(60.5 - 60.28)
    assert ce.z_score == pytest.approx((60.5 - 60.28) / math.hypot(0.27, 0.5))
    assert ce.verdict == "agrees"
    assert [(p.mean, p.table) for p in ce.later] == [(58.46, "successors")]


def test_one_run_is_assumed_to_have_the_papers_deviation(found):
    one = find(found, noise="symmetric", rate=0.6, method="NCE+RCE")
    assert one.z_score == pytest.approx((70 - 79.78) / math.hypot(0.5, 0.5))
    assert one.verdict == "below"


def test_each_protocol_of_a_loss_has_a_comparison(found):
    both = [c for c in found if c.method == "NCE+RCE" and c.condition.rate == 0.8]
    assert [c.ours.cell.protocol for c in both] == ["paper", "authors"]
    assert [c.verdict for c in both] == ["agrees", "above"]


def test_what_was_not_run_or_not_published_says_so(found):
    assert find(found, noise="symmetric", rate=0.8, method="NCE").verdict == "not published"
    gce = [c for c in found if c.method == "GCE"]
    assert len(gce) == 4  # every symmetric rate of the paper; a run that failed is not there
    assert {c.verdict for c in gce} == {"not run"}
    assert all(c.difference is None and c.z_score is None for c in gce)
    assert {c.condition.noise for c in found} == {"symmetric"}  # noise without a result is left out
    assert (
        len([c for c in found if c.paper is not None]) == 9 * 4 + 4 + 1
    )  # table 2, the NGCE table, one twice


@pytest.mark.parametrize("part", ["loss", "network", "data", "prior"])
def test_what_is_a_users_own_is_not_compared_with_the_paper(part):
    """Whatever it is called: a function of the user's may be named NCE+RCE."""
    at = {"dataset": "cifar10", "noise": "symmetric", "rate": 0.6, "loss": "nce+rce"}
    ours, theirs = record(0.8, **at), record(0.2, seed=1, **at)
    loss = "NCE+RCE" if part == "loss" else theirs.run.loss
    theirs = replace(theirs, run=replace(theirs.run, loss=loss, overrides=(part,), name="mine"))
    for records in ((theirs,), (ours, theirs)):
        study = make_study(reading(*records))
        found = [c for c in comparisons(study) if c.condition.rate == 0.6 and c.paper is not None]
        compared = [c for c in found if c.method == "NCE+RCE"]
        assert [c.verdict for c in compared] == ["agrees" if len(records) == 2 else "not run"]
        assert all(c.ours is None or not c.ours.has_overrides for c in found)
        (table,) = make_tables(study)
        numbers = {
            row.label: row.cells[table.columns.index(("symmetric", 0.6))] for row in table.rows
        }
        own = next(cell for cell in numbers.values() if cell.mean == pytest.approx(20))
        assert own.published is None
        assert any(c.published and c.published.mean == 79.78 for c in numbers.values())


def test_a_users_own_loss_is_not_taken_for_ours_by_its_name():
    at = {"dataset": "cifar10", "noise": "symmetric", "rate": 0.6}
    named = ("CE", "NCE", "MAE", "NCE+RCE", "10*nce + rce")
    own = []
    for i, name in enumerate(named):
        made = record(0.5 + i / 10, **at)
        run = replace(made.run, loss=name, overrides=("loss",), name=f"run-{i}")
        own.append(replace(made, run=run))
    study = make_study(reading(*own, record(0.9, loss="2*nce", **at)))
    assert {e.cell.method for e in study.entries} == {*(f"{n} (own)" for n in named), "2*NCE"}
    assert {e.label for e in study.entries} == {*(f"{n} (own loss)" for n in named), "2*NCE"}
    assert study.scaled == {}
    said = " ".join(make_conclusions(study))
    assert "(CE)" not in said  # cross entropy was not run
    assert "ctive-passive" not in said
