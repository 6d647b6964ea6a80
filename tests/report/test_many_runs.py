"""Many runs: the page stays small, and its work grows no faster than they do."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from noiseproof.report import html, make_report
from noiseproof.results import Reading, Record
from noiseproof.runs import Run

from .subjects import ABOUT, reading, record

pytest.importorskip("jinja2", reason="the extra report is not installed")
pytest.importorskip("vl_convert", reason="the extra report is not installed")
LOSSES = ("ce", "fl", "gce", "sce", "mae", "rce", "nce", "nfl", "nfl+mae", "nce+rce")


def many(num_rates: int, num_seeds: int, epochs: int = 60) -> list[Record]:
    """Ten losses at so many rates with so many seeds."""
    found = []
    for loss in LOSSES:
        base = Run(dataset="mnist", noise="symmetric", rate=0.5, loss=loss).resolve()
        for i in range(num_rates):
            run = replace(base, rate=round((i + 1) / (num_rates + 1), 5))
            for seed in range(num_seeds):
                accuracy = 0.99 - 0.7 * i / num_rates - seed / 1000
                columns = {
                    "epoch": list(range(1, epochs + 1)),
                    "train_accuracy": [accuracy * e / epochs for e in range(epochs)],
                    "memorised": [0.1 + e / 1000 for e in range(epochs)],
                    "test_accuracy": [accuracy * (1 + e) / epochs for e in range(epochs)],
                }
                history = [dict(zip(columns, row, strict=True))
                           for row in zip(*columns.values(), strict=True)]  # fmt: skip
                found.append(Record(replace(run, seed=seed), history, ABOUT, None, Path("x")))
    return found


def lines_run(records: list[Record]) -> int:
    """How many lines of Python a page of them takes: the same on any machine."""
    count, before = 0, sys.gettrace()

    def trace(*_):
        nonlocal count
        count += 1
        return trace

    sys.settrace(trace)
    try:
        html(make_report(Reading(records, [])))
    finally:
        sys.settrace(before)
    return count


@pytest.mark.long
def test_four_times_the_runs_are_not_more_than_four_times_the_work():
    lines_run(many(3, 2))  # what is done once is done
    few, more = (lines_run(many(num_rates, 5)) for num_rates in (20, 80))
    assert few < more < 4 * few


@pytest.mark.slow
def test_twenty_thousand_runs_are_a_small_page():
    records = many(400, 5)
    assert len(records) == 20_000
    assert len(html(make_report(Reading(records, []))).encode()) < 5e6


@pytest.mark.long
def test_twenty_thousand_cells_are_a_small_page():
    page = html(make_report(Reading(many(2000, 1, epochs=3), [])))
    assert len(page.encode()) < 5e6


def test_of_many_rates_some_are_drawn_and_the_caption_says_so():
    report = make_report(Reading(many(40, 1, epochs=2), []))
    figures = {figure.name: figure for figure in report.figures}
    assert len(figures["overview"].panels[0].curves[0].x) == 40
    drawn = figures["accuracy-mnist-symmetric"]
    assert len(drawn.panels) == 12
    assert drawn.caption.endswith("12 of 40 rates.")
    assert [drawn.panels[0].title, drawn.panels[-1].title] == [
        "symmetric 0.02439",
        "symmetric 0.97561",
    ]


def test_of_many_losses_the_best_are_drawn_and_cross_entropy():
    losses = [record(0.5 + i / 1000, loss=f"{i + 2}*nce+mae") for i in range(200)]
    report = make_report(reading(*losses, record(0.1)))
    (ranking,) = report.overview
    (panel,) = ranking.panels
    labels = [row["label"] for row in panel.rows]
    assert len(labels) == 31
    assert labels[0] == "201*NCE+MAE"
    assert labels[-1] == "CE"
    assert panel.note == "and 170 in the tables alone"
    assert len(report.tables[0].rows) == 201


def test_of_many_data_sets_the_first_are_drawn():
    records = [record(a, loss=x, dataset=f"data-{i:03}") for i in range(60) for x, a in
               (("ce", 0.5), ("nce", 0.8))]  # fmt: skip
    report = make_report(reading(*records))
    assert len(report.tables) == 60
    assert all(len(section.figures) <= 12 for section in [*report.story, *report.curves])
    assert "The first 12 figures are drawn; the tables have all." in report.curves[0].text
    (ranking,) = report.overview
    assert len(ranking.panels) == 12
    assert ranking.caption.endswith("12 of 60 are drawn; the tables have all.")


def test_many_settings_are_written_by_how_they_differ():
    records = [record(0.5, lr=lr) for lr in (0.1, 0.2, 0.3)]
    page = html(make_report(reading(*records)))
    assert page.count("momentum 0.9") == 1
    assert "as S1, but lr 0.3" in page
