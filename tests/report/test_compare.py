"""Cells compared with the published numbers."""

from __future__ import annotations

import math

import pytest

from noiseproof.report import comparisons, make_study

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
