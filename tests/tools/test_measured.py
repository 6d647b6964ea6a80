"""What docs/find-wrong-labels.md says of its tables is what was measured."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs" / "find-wrong-labels.md").read_text().split())


@pytest.fixture(scope="module")
def measured() -> dict[tuple[str, ...], dict[str, str]]:
    with (ROOT / "benchmarks" / "audit.csv").open(newline="") as file:
        names = ("data", "noise", "how", "loss", "epochs", "ranking", "first")
        return {tuple(row[n] for n in names): row for row in csv.DictReader(file)}


def human(measured, how, loss, epochs, ranking, first=20_000) -> dict[str, str]:
    return measured["CIFAR-10N worst", "human", how, loss, str(epochs), ranking, str(first)]


def precision(row: dict[str, str]) -> float:
    return float(row["precision_percent"])


def test_the_loss_matters_most(measured):
    ours = precision(human(measured, "folds", "nce+rce", 50, "posterior"))
    early, late = (precision(human(measured, "folds", "ce", e, "posterior")) for e in (10, 50))
    usual = precision(human(measured, "folds", "ce", 50, "cleanlab"))
    assert f"{ours:.1f} % are really wrong with NCE + RCE, and {early:.1f} % with" in PAGE
    assert f"{early:.1f}" == f"{late:.1f}"
    assert f"comes to {usual:.1f} %" in PAGE
    assert ours > early + 5 > usual + 5


def test_votes_find_the_most_and_folds_are_surer_of_the_first(measured):
    votes = precision(human(measured, "votes", "nce+rce", 50, "posterior"))
    assert f"NCE + RCE find the most, {votes:.1f} %" in PAGE
    rows = [r for k, r in measured.items() if k[0] == "CIFAR-10N worst" and k[5] == "posterior"]
    assert votes == max(precision(r) for r in rows if r["first"] == "20000")
    first = [precision(human(measured, h, "nce+rce", 50, "posterior", 10_000))
             for h in ("folds", "votes")]  # fmt: skip
    assert first[0] > first[1]


def test_the_rankings_hardly_differ_on_human_labels(measured):
    for how, loss, epochs in (("folds", "nce+rce", 50), ("votes", "nce+rce", 50)):
        rows = [human(measured, how, loss, epochs, r) for r in ("posterior", "cleanlab")]
        assert abs(precision(rows[0]) - precision(rows[1])) < 0.5


def test_the_matrix_is_off_by_so_much(measured):
    for loss, epochs in (("ce", 10), ("ce", 50), ("nce+rce", 50), ("gce", 50)):
        row = human(measured, "folds", loss, epochs, "posterior")
        assert f"are off by {float(row['transition_error']):.2f} on average" in PAGE


def test_rates_are_off_by_so_much(measured):
    off: dict[str, list[float]] = {"folds": [], "votes": []}
    for key, row in measured.items():
        if key[0] == "CIFAR-10N worst" and key[5] == "posterior":
            off[key[2]].append(float(row["estimated_percent"]) - float(row["wrong_percent"]))
    assert 4 < min(off["folds"]) <= max(off["folds"]) < 5
    assert -9 < min(off["votes"]) <= max(off["votes"]) < -3.9
    of_ce = [
        float(row["estimated_percent"])
        for key, row in measured.items()
        if key[0] == "digits" and key[2:4] == ("votes", "ce") and key[5] == "posterior"
    ]
    assert max(of_ce) < 2  # that nothing is wrong


def by_ranking(measured, *key: str) -> dict[str, float]:
    return {k[5]: precision(row) for k, row in measured.items() if k[:4] == key}


def test_how_labels_are_mistaken_helps_where_one_class_is_taken_for_a_certain_other(measured):
    for how in ("folds", "votes"):
        for loss in ("ce", "nce+rce"):
            rows = by_ranking(measured, "digits", "asymmetric 0.4", how, loss)
            assert 3 < rows["posterior"] - max(rows["p(given)"], rows["margin"]) < 5.5
            rows = by_ranking(measured, "NoisyAG-News", "human", how, loss)
            assert rows["posterior"] > max(rows["p(given)"], rows["margin"]) + 2
    for rate in ("0.2", "0.4", "0.6"):
        for how in ("folds", "votes"):
            rows = by_ranking(measured, "digits", f"symmetric {rate}", how, "nce+rce")
            assert max(rows.values()) - min(rows.values()) < 1.1


def test_texts_are_hard_and_votes_fail_on_them(measured):
    for loss in ("ce", "nce+rce"):
        folds, votes = (by_ranking(measured, "NoisyAG-News", "human", h, loss)["posterior"]
                        for h in ("folds", "votes"))  # fmt: skip
        assert 50 < folds < 55
        assert votes < folds - 15
        row = measured["NoisyAG-News", "human", "folds", loss, "25", "posterior", "1975"]
        assert 0.45 < float(row["estimated_percent"]) / float(row["wrong_percent"]) < 0.55


def test_a_pretrained_encoder_finds_a_little_more(measured):
    words, vectors = "NoisyAG-News", "NoisyAG-News, embedded"
    for loss in ("ce", "nce+rce"):
        before, after = (by_ranking(measured, n, "human", "folds", loss)["posterior"]
                         for n in (words, vectors))  # fmt: skip
        assert 1 < after - before < 3
        row = measured[vectors, "human", "folds", loss, "51", "posterior", "1975"]
        assert 0.5 < float(row["estimated_percent"]) / float(row["wrong_percent"]) < 0.65
    votes = by_ranking(measured, vectors, "human", "votes", "nce+rce")["posterior"]
    assert abs(votes - by_ranking(measured, vectors, "human", "folds", "nce+rce")["posterior"]) < 1
