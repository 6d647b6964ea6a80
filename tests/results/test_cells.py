"""Runs as the cells of a table, and what papers report of them."""

from __future__ import annotations

import math

import pytest

from noiseproof import results
from noiseproof.results import METHODS, Record, method_of
from noiseproof.train import Run


def record(accuracy: float = 0.5, error: str | None = None, **settings) -> Record:
    history = [{"epoch": 1, "test_accuracy": accuracy}] if error is None else []
    return Record(Run(**settings).settings(), history, {}, error)


def test_runs_are_grouped_over_their_seeds_alone():
    records = [
        record(0.2, loss="nce+rce", seed=1), record(0.1, loss="nce+rce", seed=0),
        record(0.6, loss="nce+rce", seed=2), record(0.9, loss="nce+rce", epochs=3),
        record(0.8, loss="nce+rce", protocol="authors"), record(0.7, loss="ce"),
    ]  # fmt: skip
    found = results.cells(records)
    assert [c.method for c in found] == ["CE", "NCE+RCE", "NCE+RCE", "NCE+RCE"]
    three = next(c for c in found if len(c.records) == 3)
    assert three.seeds == [0, 1, 2]
    assert three.accuracies == pytest.approx([10, 20, 60])
    assert three.mean == pytest.approx(30)
    assert three.deviation == pytest.approx(math.sqrt(700))  # of a sample: 1400 / 2
    assert "seed" not in three.settings
    assert found[-1].protocol == "authors"
    assert math.isnan(found[0].deviation)


def test_a_run_that_failed_does_not_count():
    found = results.cells([record(0.4, seed=0), record(error="the loss became nan", seed=1)])
    assert [(c.seeds, len(c.failed), round(c.mean)) for c in found] == [([0], 1, 40)]
    assert math.isnan(results.cells([record(error="x")])[0].mean)


def test_no_noise_is_clean_however_it_is_said():
    for settings in ({"noise": "none", "rate": 0.4}, {"noise": "symmetric", "rate": 0.0}):
        assert results.cell_of(record(**settings))[1:3] == ("none", 0.0)
    assert results.cells([record(dataset="cifar10", noise="none")])[0].key == (
        "cifar10", "none", 0.0, "NCE+RCE",
    )  # fmt: skip
    human = record(dataset="cifar10", noise="cifar10n-worst")
    assert results.cell_of(human)[1:3] == ("cifar10n-worst", 0.0)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("NCE + RCE", "NCE+RCE"), ("anl-ce", "ANL-CE"), ("5*nce", "5*NCE"), ("ldr", "LDR-KL"),
        ("1*nce+1*rce(A=-4)", "1*NCE+1*RCE(A=-4)"), ("ceeps+mae", "CEeps+MAE"),
        ("normalize(taylor(t=2))", "normalize(taylor(t=2))"), ("nlnl", "NLNL"),
    ],
)  # fmt: skip
def test_methods_have_the_names_that_papers_print(text, label):
    assert method_of(text) == label
    assert method_of(label) == label


def test_every_published_method_has_a_loss():
    for cell in results.published():
        assert cell.method in METHODS, cell
        assert method_of(METHODS[cell.method]) == cell.method


def test_published():
    cells = results.published()
    assert len(cells) == 257 + 49
    assert all(0 < c.mean < 100 and 0 <= c.rate <= 0.8 and c.source for c in cells)
    best = {(c.dataset, c.noise, c.rate, c.method): c for c in results.published("table-symmetric")}
    found = best["cifar10", "symmetric", 0.6, "NCE+RCE"]
    assert (found.mean, found.std, found.top_two) == (79.78, 0.5, True)
    assert {c.noise for c in results.published("human-noise")} == {"cifar10n-worst", "cifar100n"}
    with pytest.raises(ValueError, match="no figures are known of 'table-9'; they are of table-sy"):
        results.published("table-9")
