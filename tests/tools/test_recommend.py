"""The loss that is recommended follows from what was measured."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
import torch

import noiseproof
from noiseproof import UsageError, recommend
from noiseproof.runs import Run
from noiseproof.tools import Recommendation, _recommend

ROOT = Path(__file__).parents[2]


Table = dict[tuple[str, float], dict[str, float]]


def read(name: str, data: str) -> list[dict[str, str]]:
    with (ROOT / "benchmarks" / f"{name}.csv").open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["data"] == data]


def measured(data: str) -> list[Table]:
    """By noise and rate, then by loss: from the benchmarks themselves, not from the package."""
    first: Table = {}
    for row in read("which_loss", data):
        by_loss = first.setdefault((row["noise"], float(row["rate"])), {})
        by_loss[row["loss"]] = float(row["accuracy_percent"])
    if data == "digits":
        return [first]
    found: dict[tuple[str, float], dict[str, list[float]]] = {}
    for row in read("choose", data):
        seeds = found.setdefault((row["noise"], float(row["rate"])), {})
        seeds.setdefault(row["loss"], []).append(float(row["test_percent"]))
    return [first, {c: {k: fmean(v) for k, v in by.items()} for c, by in found.items()}]


def mean_regret(tables: list[Table]) -> dict[str, float]:
    common = set.intersection(*(set(by) for table in tables for by in table.values()))
    return {
        loss: fmean(fmean(max(by.values()) - by[loss] for by in t.values()) for t in tables)
        for loss in common
    }


@pytest.mark.parametrize(
    ("data", "classes", "samples"), [("digits", 10, 1437), ("features", 20, 4000)]
)
def test_it_is_the_loss_that_loses_least_on_average(data, classes, samples):
    regret = mean_regret(measured(data))
    expected = sorted(regret, key=regret.__getitem__)
    found = recommend(classes, samples=samples)
    assert [found.loss, *found.alternatives] == expected[:3]
    assert f"{regret[expected[0]]:.1f} points" in found.reason
    assert f"cross entropy {regret['ce']:.1f}" in found.reason


@pytest.mark.parametrize(
    ("rate", "conditions"),
    [
        (0.0, [("none", 0.0)]),
        (0.2, [("symmetric", 0.2)]),
        (0.5, [("symmetric", 0.4), ("symmetric", 0.6)]),
        (0.65, [("symmetric", 0.6)]),
    ],
)
def test_a_known_rate_narrows_it(rate, conditions):
    regret = mean_regret([{c: t[c] for c in conditions} for t in measured("digits")])
    found = recommend(10, samples=1437, noise_rate=rate)
    assert regret[found.loss] == min(regret.values())
    words = [f"{100 * r:.0f} % symmetric" if r else "clean labels" for _, r in conditions]
    several = len(words) > 1
    under = "On average over" if several else "With"
    assert f"{under} {', '.join(words)}," in found.reason
    assert ("the best of each" in found.reason) == several


def test_a_set_with_few_losses_leaves_the_others_their_own(monkeypatch):
    rich = {("symmetric", 0.6): {"ce": 2.0, "gce": 9.0, "mae": 5.0, "sce": 6.0, "ngce": 4.0}}
    poor = {("symmetric", 0.6): {"ce": 2.0, "nce": 3.0, "ngce": 4.0}}
    made = tuple(_recommend._Set(*of) for of in (("a", 20, 4000, rich), ("b", 60, 9000, poor)))
    monkeypatch.setattr(_recommend, "_evidence", lambda: (made, {}))
    found = recommend(35, samples=6000)
    assert found.loss == "gce"  # of the set on which more was measured
    assert "0.0 points behind" in found.reason
    assert "best there is ngce on b" in found.reason


@pytest.mark.parametrize("rate", [None, 0.1, 0.5])
def test_a_set_with_one_kind_of_noise_says_that_it_is_all(rate, monkeypatch):
    only = {("symmetric", 0.6): {"ce": 20.0, "gce": 40.0}}
    made = (_recommend._Set("birds", 200, 9000, only),)
    monkeypatch.setattr(_recommend, "_evidence", lambda: (made, {}))
    reason = recommend(200, samples=9000, noise_rate=rate).reason
    assert (
        "With 60 % symmetric, which is all that was measured there, gce is 0.0 points behind the "
        "best, cross entropy 20.0."
    ) in reason
    assert ("No rate near yours was measured there" in reason) == (rate == 0.1)


@pytest.mark.parametrize(
    ("classes", "samples"), [(2, 100), (10, 50_000), (10, 60_000), (1000, None)]
)
def test_what_is_recommended_can_be_trained(classes, samples):
    found = recommend(classes, samples=samples)
    for loss in (found.loss, *found.alternatives):
        assert noiseproof.parse(loss)(torch.zeros(2, 3), torch.tensor([0, 1])).isfinite()
        text = str(noiseproof.parse(loss))  # it means the same wherever it is given
        assert noiseproof.parse(Run(loss=loss).resolve().loss) == noiseproof.parse(text)
    assert found.loss in str(found)
    assert found.reason in str(found)


def test_labels_of_any_kind():
    pandas = pytest.importorskip("pandas")
    numbers = [0] * 400 + [1] * 300 + [2] * 300
    names = [("cat", "dog", "horse")[k] for k in numbers]
    expected = recommend(3, samples=1000)
    for labels in (
        numbers, names, tuple(names), np.array(numbers), np.array(names), torch.tensor(numbers),
        pandas.Series(names), pandas.Series(names, dtype="category"), np.array(numbers, float),
        np.array(names, object), iter(names),
    ):  # fmt: skip
        assert recommend(labels) == expected


@pytest.mark.parametrize(
    ("ratio", "weight"), [(1, None), (2, None), (4, "balanced"), (100, "balanced")]
)
def test_class_weights_where_they_were_needed(ratio, weight):
    found = recommend([0] * 10 * ratio + [1] * 10)
    assert found.class_weight == weight
    assert ("class weights" in str(found)) == (weight is not None)


def test_the_ratio_from_which_on_is_measured():
    with (ROOT / "benchmarks" / "imbalance.csv").open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["data"].startswith("ratio ")]
    least = _recommend._least_ratio()
    for ratio in {row["data"] for row in rows}:
        mean = {
            weighted: fmean(
                float(r["percent"]) for r in rows
                if (r["data"], r["what"], r["weighted"]) == (ratio, "least recall", weighted)
            )
            for weighted in ("no", "yes")
        }  # fmt: skip
        gains = mean["yes"] - mean["no"] > 2
        assert gains == (float(ratio.removeprefix("ratio ")) >= least)


@pytest.mark.parametrize(
    ("labels", "options", "match"),
    [
        (1, {}, "2 classes or more"),
        ([3, 3, 3], {}, "2 classes or more; there were 1"),
        ([], {}, "2 classes or more; there were 0"),
        (["a", None, "b"], {}, "some labels are missing"),
        ([0.0, 1.0, float("nan")], {}, "some labels are missing"),
        ([0.5, 1.0], {}, "fractions"),
        ("labels.csv", {}, "a list of them"),
        ([[0, 1], [1, 0]], {}, "one number or name for each"),
        (3.5, {}, "one number or name for each"),
        (10, {"samples": 0}, "samples is a whole number"),
        (10, {"noise_rate": 40}, "noise_rate goes from 0 to below 1"),
    ],
)
def test_mistakes(labels, options, match):
    with pytest.raises(UsageError, match=match):
        recommend(labels, **options)


def test_sets_that_were_measured_with_other_losses_are_named():
    nearest, _ = _recommend._nearest(10, 60_000)
    assert {"MNIST", "CIFAR-10"} <= {found.name for found in nearest}
    found = recommend(10, samples=60_000)
    assert found.loss == recommend(10, samples=50_000).loss  # both are near to either
    for other in nearest:
        best = _recommend._ranked(_recommend._mean_regrets([other], None))[0]
        said = f"{best} on {other.name}" in found.reason
        assert said == (f"{other.name} (10 classes" not in found.reason and best != found.loss)
        if said:
            assert best in found.alternatives


def test_far_from_all_that_was_measured():
    assert "far from yours" in recommend(1000, samples=10_000_000).reason
    assert "far from yours" not in recommend(10, samples=2000).reason


def test_it_needs_no_torch():
    code = (
        "import noiseproof, sys; noiseproof.recommend([*'ab']); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert isinstance(recommend(2), Recommendation)
