"""Labels as given: nobody knows which are wrong, and losses are compared all the same."""

from __future__ import annotations

import numpy as np
import pytest

from noiseproof import data
from noiseproof.report import html, make_report, make_study, to_markdown
from noiseproof.results import read
from noiseproof.train import Run, fit

from .subjects import reading, record, seeds

GIVEN = {"dataset": "scans", "noise": "given", "overrides": ("data",)}


def given(**losses: float):
    return [
        record(a, loss=loss.replace("_", "+"), name=f"run-{loss}", **GIVEN)
        for loss, a in losses.items()
    ]


@pytest.fixture
def report():
    return make_report(reading(*given(ce=0.5, nce=0.7, nce_rce=0.9, mae=0.8)))


def test_the_conclusion_names_the_labels_and_the_loss_that_comes_first(report):
    assert report.conclusions == [
        "NCE+RCE (normalized cross entropy + reverse cross entropy) comes first on scans with "
        "labels as given, rate unknown: 90.00\N{NO-BREAK SPACE}% test accuracy, 10.00 points "
        "before mean absolute error (MAE); with one seed nothing can be said about chance."
    ]


def test_the_name_of_a_run_is_in_no_label(report):
    assert [e.label for e in report.study.entries] == ["CE", "MAE", "NCE", "NCE+RCE"]
    (table,) = report.tables
    assert table.shared_overrides == "own data"
    assert table.protocol == "defaults of this package"


def test_the_table_says_that_the_rate_is_unknown(report):
    (table,) = report.tables
    assert table.title == "scans, labels as given, rate unknown"
    assert "### scans, labels as given, rate unknown" in to_markdown(report.tables)
    assert [row.cells[0].mean for row in table.rows] == pytest.approx([50, 80, 70, 90])


def test_the_losses_are_ranked_with_dots(report):
    (figure,) = report.overview
    (panel,) = figure.panels
    assert (figure.name, panel.title) == ("ranking", "scans, labels as given, rate unknown")
    assert [row["label"] for row in panel.rows] == ["NCE+RCE", "MAE", "NCE", "CE"]
    assert panel.note == ""


def test_what_is_not_known_has_no_figure(report):
    names = {figure.name.split("-")[0] for figure in report.figures}
    assert names == {"ranking", "accuracy", "agreement", "calibration"}
    assert "rate unknown" in html(report)


def test_clean_labels_beside_them_are_the_other_dot():
    clean = record(0.95, dataset="scans", noise="none", rate=0.0, overrides=("data",))
    (figure,) = make_report(reading(*given(ce=0.5, nce=0.7), clean)).overview
    (panel,) = figure.panels
    rows = {row["label"]: (row["filled"], row["hollow"]) for row in panel.rows}
    assert rows == {"NCE": (None, 70), "CE": (95, 50)}
    assert panel.note == "filled: clean, hollow: labels as given, rate unknown"


def test_other_data_of_the_same_name_is_told_apart_by_the_name_of_the_run():
    one, other = given(ce=0.5)[0], record(0.6, name="again", **GIVEN)
    other.about["overrides"] = {"data": "of another digest"}
    labels = [e.label for e in make_study(reading(one, other)).entries]
    assert sorted(labels) == ["CE (again)", "CE (run-ce)"]


def test_a_holdout_does_not_take_nce_rce_out_of_the_comparison():
    held_out = {"holdout": 0.2}
    losses = {"ce": 0.5, "nce": 0.7, "nce+rce": 0.9}
    study = make_study(reading(*(record(a, loss=x, **held_out) for x, a in losses.items())))
    assert [e.cell.method for e in study.entries] == ["CE", "NCE", "NCE+RCE"]
    assert study.grid == {}
    seeded = make_study(reading(*seeds((0.8, 0.9), loss="nce+rce", **held_out)))
    assert [e.cell.method for e in seeded.entries] == ["NCE+RCE"]


def test_several_weights_under_one_condition_are_a_grid():
    grid = [record(a, loss=f"{b}*nce+rce", holdout=0.2, dataset="mnist") for b, a in
            ((1, 0.6), (2, 0.7))]  # fmt: skip
    study = make_study(reading(*grid))
    assert study.entries == []
    ((condition, cells),) = study.grid.items()
    assert condition.dataset == "mnist"
    assert [(c.alpha, c.beta) for c in cells] == [(1, 1), (2, 1)]
    other_split = record(0.8, loss="3*nce+rce", holdout=0.1, dataset="mnist")
    assert [e.cell.method for e in make_study(reading(*grid, other_split)).entries] == ["3*NCE+RCE"]


def test_the_published_weights_of_a_grid_are_compared_with_losses_of_its_split():
    at = {"dataset": "mnist", "holdout": 0.2}
    grid = [record(0.6, loss=x, **at) for x in ("nce+rce", "2*nce+rce")]
    study = make_study(reading(*grid, record(0.5, **at)))
    assert [e.cell.method for e in study.entries] == ["CE", "NCE+RCE"]
    (cells,) = study.grid.values()
    assert len(cells) == 2
    assert make_study(reading(*grid, record(0.5, dataset="mnist"))).entries[0].cell.method == "CE"


def test_one_factor_alone_is_no_scaling():
    study = make_study(reading(record(0.5), record(0.7, loss="2*nce")))
    assert [e.cell.method for e in study.entries] == ["CE", "2*NCE"]
    assert study.scaled == {}
    study = make_study(reading(record(0.5, loss="nce"), record(0.7, loss="2*nce")))
    assert [e.cell.method for e in study.entries] == ["NCE"]
    assert [row.factor for rows in study.scaled.values() for row in rows] == [1, 2]


def test_a_users_own_data_with_half_of_its_labels_wrong(tmp_path):
    digits, draw = data.load("digits"), np.random.default_rng(0)
    images, labels = digits.train.images.numpy()[:, 0], digits.train.labels.numpy()
    noisy = np.where(draw.random(len(labels)) < 0.5, draw.integers(0, 10, len(labels)), labels)
    own = data.from_arrays(
        images, noisy, digits.test.images.numpy()[:, 0], digits.test.labels.numpy(), name="scans"
    )
    for loss in ("ce", "nce", "nce+rce"):
        run = Run(loss=loss, epochs=2, model="mlp", device="cpu", holdout=0.2)
        fit(run, data=own, out=tmp_path, name=f"my-{loss.replace('+', '-')}")
    report = make_report(read(tmp_path))
    assert [e.label for e in report.study.entries] == ["CE", "NCE", "NCE+RCE"]
    assert "scans with labels as given, rate unknown" in report.conclusions[0]
    assert report.study.problems == []
    assert report.overview[0].name == "ranking"
