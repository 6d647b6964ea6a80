"""The benches as data: every run can be trained, every cell is the paper's."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from noiseproof import UsageError, bench, results
from noiseproof.catalogue import METHODS, NLNL
from noiseproof.losses import parse, recipe
from noiseproof.runs import Run

TABLES = ["table-symmetric", "table-asymmetric", "table-ngce", "table-webvision"]
SIZES = {
    "quick": 72, "table-symmetric": 405, "table-asymmetric": 324, "table-ngce": 27,
    "table-webvision": 5, "figure-1": 8, "figure-2": 8, "figure-3": 16, "figure-4": 12,
    "figure-5": 24, "successors": 597, "human-noise": 117,
}  # fmt: skip


def test_all_are_there():
    assert {name: len(bench.bench(name)) for name in bench.names()} == SIZES
    for name in bench.names():
        found = bench.bench(name)
        assert found.name == name
        assert found.title
        assert found.shows
        assert len({run.resolve().hash for run in found.runs}) == len(found)


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("protocol", ["paper", "authors"])
def test_every_loss_is_one(name, protocol):
    for run in bench.bench(name).runs:
        entry = METHODS.get(run.loss)
        run = replace(run, protocol=protocol)
        if entry is not None and entry.authors is None and protocol == "authors":
            with pytest.raises(UsageError, match="the code of the paper's authors has no"):
                run.resolve()
        elif run.loss != NLNL:
            assert parse(run.resolve().loss) is not None


@pytest.mark.parametrize("name", [*TABLES, "successors", "human-noise"])
def test_published_losses_bring_their_published_settings(name):
    for run in bench.bench(name).runs:
        if run.loss != NLNL:
            resolved = run.resolve()
            found = recipe(run.loss, run.dataset, noise=resolved.noise, rate=resolved.rate)
            assert found.loss == parse(resolved.loss)
            assert found.l1 == resolved.l1


@pytest.mark.parametrize("name", TABLES)
def test_the_cells_of_a_table_are_those_of_the_paper(name):
    cells = bench.bench(name).cells
    assert set(cells) == {(p.dataset, p.noise, p.rate, p.method) for p in results.published(name)}
    assert len(cells) == len(set(cells))
    if name != "table-webvision":
        assert set(Counter(map(str, bench.bench(name).runs)).values()) == {1}
        assert len(bench.bench(name)) == 3 * len(cells)


def test_the_first_seed_comes_first():
    for name in (*TABLES, "successors", "human-noise"):
        seeds = [run.seed for run in bench.bench(name).runs]
        assert seeds == sorted(seeds)


def test_figure_4_weighs_both_terms_alike():
    losses = {str(parse(run.resolve().loss)) for run in bench.bench("figure-4").runs}
    assert losses == {"nfl + mae", "nfl + rce", "nce + mae", "nce + rce", "nce + nfl", "mae + rce"}


def test_figure_5_holds_labels_out():
    assert {run.holdout for run in bench.bench("figure-5").runs} == {0.2}


def test_narrow():
    table = bench.bench("table-symmetric")
    some = table.narrow(dataset=["mnist"], loss=["NCE+RCE", "ce"], rate=[0.0, 0.8], seeds=[5, 6])
    assert len(some) == 8
    assert {(r.noise, r.loss, r.seed) for r in some.runs} == {
        (noise, loss, seed)
        for noise in ("none", "symmetric") for loss in ("ce", "nce+rce") for seed in (5, 6)
    }  # fmt: skip
    shorter = table.narrow(noise=["none"], epochs=3, protocol="authors")
    assert {(r.epochs, r.protocol) for r in shorter.runs} == {(3, "authors")}
    assert table.narrow() == table


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ({"dataset": ["digits"]}, "table-ngce has no dataset digits; it has cifar10"),
        ({"loss": ["ce"]}, r"table-ngce has no loss ce; it has GCE, NGCE\+MAE, NGCE\+RCE"),
        ({"rate": [0.5]}, "table-ngce has no rate 0.5; it has 0.4, 0.8"),
        ({"noise": ["asymmetric"], "rate": [0.8]}, "no run of all that was asked for at once"),
    ],
)
def test_what_a_bench_has_not_is_one_clear_line(asked, line):
    with pytest.raises(ValueError, match=line):
        bench.bench("table-ngce").narrow(**asked)


def test_an_unknown_name_is_one_clear_line():
    with pytest.raises(ValueError, match=r"unknown bench 'quik' \(did you mean 'quick'"):
        bench.bench("quik")


def test_a_grid_has_every_combination_once():
    runs = bench.grid(noise=["none", "symmetric"], rate=[0.2, 0.4], loss=["ce", "mae"], seed=(0, 1))
    assert len(runs) == 2 * 2 * 3
    assert [run.seed for run in runs] == [0] * 6 + [1] * 6
    assert bench.grid() == [Run()]
