"""Runs as the cells of a table, and what papers report of them."""

from __future__ import annotations

import dataclasses
import math

import pytest

from noiseproof import results
from noiseproof.catalogue import METHODS, NLNL, DataSummary
from noiseproof.results import Record
from noiseproof.runs import Run


def record(accuracy: float = 0.5, error: str | None = None, **settings) -> Record:
    history = [{"epoch": 1, "test_accuracy": accuracy}] if error is None else []
    return Record(Run(**settings).resolve(), history, {}, error)


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


def test_why_a_cell_has_no_number():
    def ended(loss: float, error: str | None = None) -> Record:
        rows = [{"epoch": 1, "train_loss": loss, "test_accuracy": math.nan}]
        return Record(Run().resolve(), [] if error else rows, {}, error)

    found = [results.cells([ended(*given)])[0].missing for given in (
        (0.5,), (math.nan,), (0.5, "the loss became nan"),
    )]  # fmt: skip
    assert found == ["not tested", "diverged", "failed"]
    seeds = [dataclasses.replace(r, run=dataclasses.replace(r.run, seed=i))
             for i, r in enumerate((ended(0.5), ended(math.nan)))]  # fmt: skip
    assert results.cells(seeds)[0].missing == "failed"


def test_what_auto_brings_is_set_by_it_also_on_data_of_one_s_own():
    data = DataSummary("features", (5,), 3000, 3, tested=True)
    cells = [
        results.cells([Record(
            Run(loss=loss, **given).resolve(overrides={"data": "mine"}, data=data), [], {}, "x"
        )])[0]
        for loss, given in (("auto", {}), ("ce", {}), ("auto", {"shrink": 2.0}))
    ]  # fmt: skip
    of_auto, of_ce, _ = expected = [results.protocol_settings(cell) for cell in cells]
    others = [
        {name for name, value in known.items() if cell.settings[name] != value}
        for cell, known in zip(cells, expected, strict=True)
    ]
    assert others == [set(), set(), {"shrink"}]
    assert (of_auto["shrink"], of_ce["shrink"]) == (4.0, 0.0)


def test_no_noise_is_clean_however_it_is_said():
    for settings in ({"noise": "none", "rate": 0.4}, {"noise": "symmetric", "rate": 0.0}):
        assert record(**settings).run.condition[1:] == ("none", 0.0)
    assert results.cells([record(dataset="cifar10", noise="none")])[0].key == (
        "cifar10", "none", 0.0, "NCE+RCE",
    )  # fmt: skip
    human = record(dataset="cifar10", noise="cifar10n-worst")
    assert human.run.condition[1:] == ("cifar10n-worst", 0.0)


def test_every_published_method_is_in_the_catalogue():
    labels = {method.label: name for name, method in METHODS.items()}
    for cell in results.published():
        assert cell.method in labels, cell
        name = labels[cell.method]
        if name != NLNL and METHODS[name].paper.get(cell.dataset) and cell.noise != "cifar100n":
            noise = None if cell.noise == "given" else cell.noise
            run = Run(dataset=cell.dataset, noise=noise, rate=cell.rate, loss=name)
            assert run.resolve().method == cell.method


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
