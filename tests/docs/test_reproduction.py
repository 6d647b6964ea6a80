"""What docs/reproduction.md says and draws is in the files under results/.

``test_generated_tables_are_up_to_date`` compares the page itself.
"""

from __future__ import annotations

import csv
import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ..report.subjects import reading, record

ROOT = Path(__file__).parent.parent.parent
SCRIPTS = ("cells", "claims", "figures", "reasons", "reproduction")


@pytest.fixture(scope="module")
def docs() -> Iterator[SimpleNamespace]:
    """The scripts that write the page."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in SCRIPTS})
    finally:
        sys.path.remove(str(ROOT / "docs"))
        for name in SCRIPTS:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def results(docs) -> Any:
    return docs.cells.results_of_the_repository()


def runs(name: str, **settings: object) -> list[dict[str, Any]]:
    """The runs of a bundle with these settings, read without the package."""
    lines = (ROOT / "results" / f"{name}.jsonl").read_text().splitlines()
    wanted = {"protocol": "paper", "variant": "paper", "holdout": 0.0, **settings}
    return [r for r in map(json.loads, lines) if wanted.items() <= r["settings"].items()]


LOSSES = {
    "CE": "ce", "FL": "fl(gamma=0.5)", "MAE": "mae", "RCE": "rce(A=-4)",
    "NCE": "nce", "NFL": "nfl(gamma=0.5)", "NMAE": "nmae", "NRCE": "nrce(A=-4)",
    "NCE+MAE": "nce + mae", "NCE+RCE": "nce + rce(A=-4)", "NFL+MAE": "nfl(gamma=0.5) + mae",
    "NFL+RCE": "nfl(gamma=0.5) + rce(A=-4)", "NFL+NCE": "nce + nfl(gamma=0.5)",
    "MAE+RCE": "mae + rce(A=-4)",
}  # fmt: skip


@pytest.mark.parametrize(("name", "count"), [("figure-2", 8), ("figure-4", 6)])
def test_curves_are_the_accuracies_of_the_files(docs, results, name, count):
    panels = docs.figures.figures(results)[name].panels
    curves = [c for panel in panels if "CIFAR-100" not in panel.title for c in panel.curves]
    assert len(curves) == count
    for curve in curves:
        found = runs("cifar10", noise="symmetric", rate=0.6, loss=LOSSES[curve.label])
        assert found
        for epoch, percent in zip(curve.x, curve.y, strict=True):
            values = [r["history"]["test_accuracy"][int(epoch) - 1] for r in found]
            assert percent == pytest.approx(100 * sum(values) / len(values), abs=0.006)


def test_the_grid_is_that_of_the_files(docs, results):
    picture = (ROOT / "docs" / "pictures" / "figure-5.svg").read_text()
    rows = docs.figures.figures(results)["figure-5"].panels[0].rows
    assert {(row["y"], row["x"]) for row in rows} == {
        (alpha, beta) for alpha in (0.1, 1, 10) for beta in (0.1, 1, 10, 100)
    }
    found = {
        run["settings"]["loss"]: 100 * run["last"]["validation_accuracy"]
        for run in runs("cifar10", noise="symmetric", rate=0.6, holdout=0.2)
    }
    for row in rows:
        parts = [(row["y"], "nce"), (row["x"], "rce(A=-4)")]
        loss = " + ".join(name if weight == 1 else f"{weight:g}*{name}" for weight, name in parts)
        assert row["value"] == pytest.approx(found[loss], abs=0.006)
        assert f">{row['value']:.1f}<" in picture


def test_a_claim_has_a_verdict_and_its_numbers(docs, results):
    for found in (c(results) for c in docs.claims.CLAIMS):
        assert found.verdict in ("holds", "holds in part", "does not hold", "not measured")
        assert found.evidence or found.verdict == "not measured"


def test_the_top_two_counted_from_the_files(docs, results):
    sums = re.compile(r"(nce|n(fl|gce)\([^)]*\)) \+ (100\*)?(mae|rce\(A=-4\))")
    others = re.compile(r"ce|(fl|gce|sce)\([^)]*\)|nlnl")
    columns: dict[tuple[str, str, float], dict[str, list[float]]] = {}
    for dataset, decay in (("mnist", 1e-3), ("cifar10", 1e-4)):
        for run in runs(dataset, weight_decay=decay):
            at, loss = run["settings"], run["settings"]["loss"]
            known = sums.fullmatch(loss) or others.fullmatch(loss)
            if known and at["noise"] in ("symmetric", "asymmetric") and at["rate"]:
                column = columns.setdefault((dataset, at["noise"], at["rate"]), {})
                column.setdefault(loss, []).append(run["last"]["test_accuracy"])
    both = 0
    for column in columns.values():
        best = sorted(column, key=lambda loss: -sum(column[loss]) / len(column[loss]))
        both += all(sums.fullmatch(loss) for loss in best[:2])
    claim = docs.claims.top_two(results)
    assert len(columns) == 16
    assert f"the best two are in {both} of {len(columns)} noisy columns" in claim.evidence


def test_sums_that_overfit_are_found_in_the_files(docs, results):
    """NCE + RCE, symmetric 0.6: with the paper's A it memorises on CIFAR-100 alone."""
    drops = {}
    for dataset, loss in (("cifar10", "nce + rce(A=-4)"), ("cifar100", "10*nce + 0.1*rce(A=-4)")):
        found = runs(dataset, noise="symmetric", rate=0.6, loss=loss)
        curves = [r["history"]["test_accuracy"] for r in found]
        mean = [100 * sum(values) / len(values) for values in zip(*curves, strict=True)]
        drops[dataset] = max(mean) - mean[-1]
    assert drops["cifar10"] < docs.claims.MAX_DROP < drops["cifar100"]
    claim = docs.claims.sums_do_not_overfit(results)
    assert claim.verdict == "holds in part"
    assert claim.evidence.endswith(f"CIFAR-100 at 0.6: NCE+RCE {drops['cifar100']:.1f}")
    for title, dataset in (("CIFAR-10", "cifar10"), ("CIFAR-100", "cifar100")):
        start = f"| {title}, symmetric 0.6 | {drops[dataset]:.1f} ("
        assert sum(x.startswith(start) for x in docs.reasons.weight_of_rce(results)) == 1


def test_a_claim_on_two_data_sets_says_which_was_not_measured(docs, results):
    """The figures have CIFAR-10 and CIFAR-100; of the latter there are four runs."""
    for claim in ("no_overfitting", "underfitting", "two_of_a_kind"):
        found = getattr(docs.claims, claim)(results)
        assert found.evidence.endswith("; CIFAR-100: not measured")
    assert "(MAE, a third of it, 77.9)" in docs.claims.two_of_a_kind(results).evidence


def test_a_claim_that_some_cells_bear_out_holds_in_part(docs, results):
    """Of A = -4: by the rule of the other claims, and with the cells that have no counterpart."""
    claim = docs.claims.value_of_a(results)
    agree, of = map(int, re.search(r"of (\d+) run with -4 alone .* (\d+) agree", claim.evidence)
                    .groups()[::-1])  # fmt: skip
    assert 0 < agree < of
    both, with_paper = re.search(
        r"of (\d+) cells .* (\d+) agree with A = -4", claim.evidence
    ).groups()
    assert 0 < int(with_paper) < int(both)
    assert claim.verdict == "holds in part"


def test_what_was_not_run_is_not_measured(docs):
    results = docs.cells.Results(reading(record(0.9, dataset="mnist", rate=0.6)))
    assert {c(results).verdict for c in docs.claims.CLAIMS} == {"not measured"}
    assert docs.figures.figures(results) == {}
    lines = docs.figures.section(results)
    assert len(lines) == 2
    for number in (1, 2, 3, 4, 5):
        assert f"figure {number}" in lines[0]
    assert docs.reproduction.later_losses(results) == []


def test_a_claim_that_the_runs_refute(docs):
    at = {"dataset": "cifar10", "rate": 0.6, "model": "cnn8", "batch_size": 128, "epochs": 120}
    kinds = ("nfl+mae", "nfl+rce", "nce+mae", "nce+rce", "nfl+nce", "mae+rce")
    worse = [record(0.5 + 0.01 * i, loss=loss, **at) for i, loss in enumerate(kinds)]
    results = docs.cells.Results(reading(*worse))
    claim = docs.claims.two_of_a_kind(results)
    assert claim.verdict == "does not hold"
    assert claim.evidence.startswith("ahead in 0 of 8 comparisons")
    assert docs.figures.ahead(results).verdict == "does not hold"


def test_no_more_than_this_can_be_gained_of_complementary_labels(docs):
    """The least value that the page names is the least of many predictions."""
    torch = pytest.importorskip("torch")
    p = torch.rand(20_000, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for rate in (0.6, 0.8):
        true, other = docs.reasons.complementary(rate)
        share = torch.tensor([true, *[other] * 9], dtype=torch.float64)
        assert share.sum() == pytest.approx(1)
        best = 1 - 9 * share
        near = (best + 0.2 * p / p.sum(1, keepdim=True)) / 1.2
        values = -((1 - near).log() * share).sum(1)
        least = float(-((1 - best).log() * share).sum())
        even = float(-(torch.tensor(0.9, dtype=torch.float64)).log())
        assert values.min() > least
        assert docs.reasons.gain(rate) == pytest.approx(even - least)


def test_the_readme_begins_with_what_was_measured():
    text = " ".join((ROOT / "README.md").read_text().split())
    said = re.search(
        r"With 60 % of CIFAR-10's labels wrong `nce \+ rce` reaches (\d+) % on the test set, "
        r"cross entropy (\d+) %",
        text,
    )
    assert said is not None
    for loss, percent in zip(("NCE+RCE", "CE"), said.groups(), strict=True):
        found = runs("cifar10", loss=LOSSES[loss], noise="symmetric", rate=0.6, model="cnn8")
        found = [r for r in found if r["settings"]["l1"] == 0 and r["settings"]["epochs"] == 120]
        assert found
        mean = sum(r["last"]["test_accuracy"] for r in found) / len(found)
        assert round(100 * mean) == int(percent)


def test_it_says_which_cells_agree_by_half_of_the_rule(docs, results):
    rows = [
        line.split(" | ") for line in docs.reproduction.every_cell(results)
        if line.endswith(" | agrees |") and line.split(" | ")[1] == "paper"
    ]  # fmt: skip
    points, deviations = ([abs(float(row[i] or 0)) for row in rows] for i in (7, 8))
    (said, _) = docs.reproduction.by_which_rule(results)
    agree, near, wide = map(int, re.findall(r"(?:the|,|and) (\d+) (?:cells|are)", said))
    assert (agree, wide) == (len(rows), sum(p > 1 for p in points))
    assert sum(z > 2 for z in deviations) <= near <= sum(z >= 2 for z in deviations)  # as rounded


def test_points_that_the_readme_names_are_in_the_files():
    """Symmetric 0.6: which loss to take for which data."""

    def mean(name: str, loss: str, **settings: object) -> float:
        found = runs(name, loss=loss, noise="symmetric", rate=0.6, **settings)
        assert found, loss
        return 100 * sum(r["last"]["test_accuracy"] for r in found) / len(found)

    text = " ".join((ROOT / "README.md").read_text().split())
    authors = mean("cifar100", "10*nce + 0.1*rce(A=-9.210340371976182)", protocol="authors",
                   variant="authors")  # fmt: skip
    assert round(authors - mean("cifar100", "10*nce + 0.1*rce(A=-4)")) == 10
    assert "ten points better than with the paper's (60 % wrong, one seed)" in text
    gains = (
        mean("cifar10", "nce + amse(a=30)") - mean("cifar10", LOSSES["NCE+RCE"]),
        mean("cifar100", "5*nce + amse(a=20)") - authors,
    )
    assert tuple(map(round, gains)) == (4, 7)
    assert "four points better on CIFAR-10 and seven on CIFAR-100 (60 % wrong, one seed)" in text
    with (ROOT / "benchmarks" / "choose.csv").open(newline="") as file:
        mnist = {
            row["loss"]: float(row["test_percent"]) for row in csv.DictReader(file)
            if (row["data"], row["rate"]) == ("mnist", "0.6")
        }  # fmt: skip
    assert round(mnist["nce + 0.1*rce"] - mnist["nce + 100*rce"]) == 3
    assert "with 60 % wrong `nce + 0.1*rce` was three points better (one seed)" in text
