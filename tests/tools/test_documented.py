"""What docs/choose.md says of its table is what was measured."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs" / "choose.md").read_text().split())

Means = dict[str, float]


def conditions() -> dict[tuple[str, str, str], tuple[Means, Means, list[dict[str, str]]]]:
    """Of each condition the accuracies by loss, held out and on the test set, and the runs."""
    runs: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    with (ROOT / "benchmarks" / "choose.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            runs.setdefault((row["data"], row["noise"], row["rate"]), []).append(row)
    return {key: (*(means(rows, c) for c in COLUMNS), rows) for key, rows in runs.items()}


COLUMNS = ("held_out_percent", "test_percent")


def means(rows: list[dict[str, str]], column: str) -> Means:
    losses = {row["loss"] for row in rows}
    return {k: fmean(float(r[column]) for r in rows if r["loss"] == k) for k in losses}


def argmax(of: Means) -> str:
    return max(of, key=of.__getitem__)


def lost(held_out: Means, test: Means) -> float:
    return max(test.values()) - test[argmax(held_out)]


MEASURED = conditions()


def named(*noises: str) -> list[tuple[Means, Means, list[dict[str, str]]]]:
    return [found for (_, noise, _), found in MEASURED.items() if noise in noises]


def correlation(held_out: Means, test: Means) -> float:
    ranks = [np.argsort(np.argsort([of[k] for k in sorted(of)])) for of in (held_out, test)]
    return float(np.corrcoef(*ranks)[0, 1])  # no two are equal


def test_symmetric_noise_is_ranked_rightly():
    found = named("symmetric")
    assert all(correlation(held_out, test) > 0.8 for held_out, test, _ in found)
    missed = [f for f in found if argmax(f[0]) != argmax(f[1])]
    right = len(found) - len(missed)
    assert f"chose the best loss in {right} of {len(found)} conditions" in PAGE
    ((held_out, test, rows),) = missed
    assert f"lost {lost(held_out, test):.1f} points in the other" in PAGE
    assert sum(row["level"] == "yes" for row in rows) == 3  # as the page says


def test_asymmetric_noise_less_so():
    found = named("asymmetric")
    correlations = [correlation(h, t) for h, t, _ in found]
    assert f"({min(correlations):.2f} to {max(correlations):.2f})" in PAGE
    worst = max(lost(h, t) for h, t, _ in found)
    assert f"up to {worst:.1f} points were lost with three seeds" in PAGE
    alone = []
    for _, test, rows in found:
        seeds = {row["seed"] for row in rows}
        chosen = [argmax(means([r for r in rows if r["seed"] == s], COLUMNS[0])) for s in seeds]
        alone.append(fmean(max(test.values()) - test[loss] for loss in chosen))
    assert f"{max(alone):.1f} on average where one seed chose alone" in PAGE
    rows = found[int(np.argmax(alone))][2]
    assert rows[0]["data"] == "digits"
    assert {row["level"] for row in rows} == {"yes"}


def test_peoples_labels():
    for held_out, test, _ in named("cifar10n-worst"):
        assert argmax(held_out) == argmax(test)
        assert correlation(held_out, test) > 0.9


def test_an_annotators_labels_say_nothing_of_the_truth():
    held_out, test, _ = MEASURED["digits", "annotator", "0"]
    assert argmax(held_out) == "ce"
    assert f"rank correlation is {correlation(held_out, test):.2f}" in PAGE
    assert f"agrees with {held_out['ce']:.1f} % of the held-out labels" in PAGE
    assert f"with {test['ce']:.1f} % of the true ones" in PAGE
    for _, test, _ in named("annotator"):
        assert max(test.values()) - min(test.values()) < 3


@pytest.mark.parametrize("loss", ["ce", "1*nce + 1*rce"])
def test_what_would_have_been_lost(loss):
    without = max(max(test.values()) - test[loss] for _, test, _ in MEASURED.values())
    assert f"up to {without:.1f}" in PAGE
    assert f"at most {max(lost(h, t) for h, t, _ in MEASURED.values()):.1f} points" in PAGE


def test_what_suits_depends_on_the_optimizer():
    for (data, noise, _), (_, test, _) in MEASURED.items():
        if data == "features" and noise == "symmetric":
            assert max(test.values()) - test["nce + 100*rce"] < 0.5
