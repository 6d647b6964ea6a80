"""NaN and infinity in results: such runs have no number, and everything else is as it was."""

from __future__ import annotations

import json
import math
import re

import pytest

from noiseproof.cli._tables import cell_table
from noiseproof.report import html, make_report, to_csv, to_latex, to_markdown
from noiseproof.results import cells, read, write_bundle

from .subjects import reading, record, seeds

BAD = [math.nan, math.inf, -math.inf, 1e307, 1e200]


def data_of(page: str) -> dict:
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    text = re.search(r'id="report-data">(.*?)</script>', page, flags=re.S)[1]
    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("bad", BAD)
def test_the_data_of_the_page_is_json(bad):
    pytest.importorskip("jinja2", reason="the extra report is not installed")
    odd = record(0.9)
    for column in odd.history.columns.values():
        column[1] = bad
    report = make_report(reading(odd, record(0.8, loss="nce"), *seeds((bad, 0.7), loss="mae")))
    assert data_of(html(report))["figures"]


@pytest.mark.parametrize("bad", BAD[:4])
def test_two_seeds_without_a_number_are_a_cell_without_one(bad):
    report = make_report(reading(*seeds((bad, bad)), *seeds((0.7, 0.8), loss="nce")))
    (table,) = report.tables
    (ce,), (nce,) = (row.cells for row in table.rows)
    assert (ce.mean, ce.missing, ce.num_failed) == (None, "diverged", 2)
    assert nce.mean == pytest.approx(75)
    assert "| CE | defaults of this package | diverged |" in to_markdown(report.tables)
    assert "& diverged" in to_latex(report.tables)
    assert "nan" not in to_csv(report.tables)
    page = html(report)
    assert '<td class="value missing">diverged</td>' in page
    assert {row[7] for row in data_of(page)["runs"]} == {"diverged", 70, 80}
    assert len(report.study.problems) == 2
    assert report.study.problems[0].endswith("diverged: its accuracy is not a number")


def test_a_seed_without_a_number_is_left_out_of_the_mean():
    (table,) = make_report(reading(*seeds((0.7, math.nan, 0.8)))).tables
    (cell,) = table.rows[0].cells
    assert cell.mean == pytest.approx(75)
    assert (cell.seeds, cell.num_failed) == ((0, 2), 1)


def test_runs_without_a_test_set_were_not_tested():
    one = record(math.nan)
    one.history.columns["train_loss"] = one.history.columns["epoch"]
    report = make_report(reading(one))
    assert report.tables[0].rows[0].cells[0].missing == "not tested"
    assert report.study.problems[0].endswith("its data has no test images")


def test_many_problems_are_counted():
    report = make_report(reading(*seeds((math.nan,) * 120)))
    assert len(report.study.problems) == 51
    assert report.study.problems[-1] == "70 more runs have no number"


def test_the_terminals_table_says_so_too(capsys):
    cell_table(cells([*seeds((math.nan, math.nan)), *seeds((0.7, 0.8), loss="nce")]))
    text = capsys.readouterr().out
    assert re.search(r"CE +diverged\n", text)
    assert "75.00 ± 7.07" in text


def test_a_bundle_with_nan_can_be_reported_on(tmp_path):
    write_bundle(tmp_path / "a.jsonl", [*seeds((math.nan, math.nan)), record(0.8, loss="nce")])
    assert data_of(html(make_report(read(tmp_path))))
