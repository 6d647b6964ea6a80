"""Data of one's own: what accuracy is of, which loss is best and how sure, and what was doubted."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import pytest

from noiseproof.report import html, make_report, to_csv, to_latex, to_markdown
from noiseproof.results import Record

from .subjects import reading, record, seeds

SPACE = "\N{NO-BREAK SPACE}"
HELD_OUT = "accuracy on held-out labels"
PAIRS = [["cat", "dog", 30], ["dog", "cat", 10]]


def own(
    loss: str,
    *accuracies: float,
    held_out: bool = False,
    wrong: float | None = None,
    last: dict[str, float] | None = None,
    pairs: list[list[object]] | None = None,
    noise: str = "given",
) -> list[Record]:
    """Runs on a file, one for each accuracy; without a test set with ``held_out``."""
    kept = {"holdout": 0.2} if held_out else {}
    found = []
    for one in seeds(accuracies, loss=loss, dataset="pets.csv@0123456789", noise=noise, **kept):
        rows = [dict(row) for row in one.history]
        for row in rows:
            if held_out:
                row["validation_accuracy"] = row.pop("test_accuracy")
            row.update(last or {})
        about = {**one.about, "noise_rate": wrong if noise == "given" else 0.4}
        if pairs is not None:
            about["disbelieved"] = pairs
        found.append(Record(one.run, rows, about, None, one.source))
    return found


def report_of(*records: Record):
    return make_report(reading(*records))


def text_of(page: str) -> str:
    """What a page says, without its numbers and programs."""
    body = re.sub(r"<(script|style).*?</\1>", " ", page, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


# What accuracy is of.


@pytest.fixture
def held_out():
    return report_of(
        *own("ce", 0.70, 0.71, held_out=True), *own("gce", 0.80, 0.81, held_out=True)
    )  # fmt: skip


def test_no_form_calls_held_out_labels_a_test_set(held_out):
    page = html(held_out)
    forms = [*map(text_of, [page]), to_markdown(held_out.tables), to_latex(held_out.tables)]
    for form in [*forms, *held_out.conclusions]:
        assert "test accuracy" not in form.lower()
        assert "test set" not in form.lower()
    assert all(HELD_OUT in form.lower() for form in forms)
    assert f"{HELD_OUT}, %" in page, "the title of the axis"
    assert "test accuracy" not in page
    assert {f.title for f in held_out.overview} == {"Accuracy on held-out labels by loss"}
    assert [s.title for s in held_out.curves if "ccuracy" in s.title] == [
        "Accuracy on held-out labels"
    ]


def test_the_conclusion_says_what_held_out_labels_mean(held_out):
    assert f"{HELD_OUT}, 10.00" in held_out.conclusions[0]
    assert any(f"no classifier can reach 100{SPACE}%" in line for line in held_out.conclusions)
    tested = report_of(*own("ce", 0.70, 0.71), *own("gce", 0.80, 0.81))
    assert not any("held-out" in line for line in tested.conclusions)
    assert "held-out" not in text_of(html(tested))


def test_each_row_of_the_csv_says_what_it_is_of(held_out):
    def on(report):
        return {r["accuracy_on"] for r in csv.DictReader(io.StringIO(to_csv(report.tables)))}

    assert on(held_out) == {"held-out labels"}
    assert on(report_of(*own("ce", 0.7))) == {"test set"}


def test_nobody_says_that_the_users_test_set_is_clean():
    (section, *_) = report_of(*own("ce", 0.7)).curves
    assert section.text == "On the test set, %."
    (section, *_) = report_of(record(0.7)).curves
    assert section.text == "On the clean test set, %."


def test_drawn_noise_without_a_test_set_is_held_out_too():
    records = [*own("ce", 0.7, held_out=True, noise="symmetric"),
               *own("gce", 0.8, held_out=True, noise="symmetric")]  # fmt: skip
    report = report_of(*records)
    assert f"10.0 points of {HELD_OUT} to" in report.conclusions[0]
    assert "test accuracy" not in text_of(html(report)).lower()


def test_some_tested_and_some_held_out():
    mixed = report_of(*own("ce", 0.7), *own("gce", 0.8, held_out=True))
    words = "accuracy on a test set or on held-out labels"
    assert words in mixed.conclusions[0]
    assert words in to_markdown(mixed.tables).lower()
    assert mixed.overview[0].chart == "both-dots"


# How many labels are wrong.


def test_where_the_truth_is_known_the_percentage_is_said():
    report = report_of(*own("ce", 0.7, wrong=0.1975), *own("gce", 0.8, wrong=0.1975))
    known = f"labels as given, 19.8{SPACE}% wrong"
    assert known in report.conclusions[0]
    assert report.tables[0].title == f"pets.csv, {known}"
    page = html(report)
    assert known in page
    assert "rate unknown" not in page
    assert known in to_markdown(report.tables)
    failed = replace(own("mae", 0.7, wrong=0.1975)[0], error="diverged at step 3")
    assert known in report_of(failed).study.problems[0]


# What the page is about.


def test_the_papers_argument_is_not_in_a_report_of_ones_own_data():
    losses = ("ce", "nce", "mae", "nce+rce")
    unknown = report_of(*(r for loss in losses for r in own(loss, 0.7)))
    assert unknown.story == []
    text = text_of(html(unknown))
    for words in ("The story in figures", "Not in these results", "active-passive", "Robust"):
        assert words not in text
    (section,) = report_of(*(r for x in losses for r in own(x, 0.7, wrong=0.2, last={
        "memorised": 0.1}))).story  # fmt: skip
    assert section.title == "Right and wrong labels learnt"
    assert "Robust" not in section.figures[0].caption


def test_beside_published_data_the_argument_is_that_of_the_published():
    report = report_of(
        record(0.5), record(0.7, loss="nce"), *own("ce", 0.7), *own("nce", 0.8)
    )  # fmt: skip
    (figure,) = next(s for s in report.story if s.anchor == "robust").figures
    assert figure.title == "Digits, symmetric 0.4"
    assert report.conclusions[0].endswith("on Digits with symmetric noise of 0.4.")
    assert any("NCE comes first on pets.csv" in line for line in report.conclusions)


@pytest.mark.parametrize(
    "losses", [("nce", "5*nce"), ("nce+rce", "10*nce+rce"), ("2*nce+rce", "10*nce+0.1*rce")]
)
def test_weights_that_a_user_compares_are_compared(losses):
    report = report_of(*(r for x in losses for r in own(x, 0.7, held_out=True)))
    assert len(report.tables[0].rows) == len(losses)
    assert report.study.scaled == report.study.grid == {}


# Which loss is best, and how sure.


def behind(report):
    return {row.label: (row.behind, row.note) for row in report.tables[0].rows}


def test_a_lead_that_all_seeds_share_is_clear_however_far_they_are_apart():
    """The split of a seed is easy or hard for all losses: only the differences are chance."""
    report = report_of(*own("ce", 0.60, 0.70, 0.80), *own("gce", 0.651, 0.749, 0.85))
    assert report.conclusions[0] == (
        "Generalized cross entropy (GCE) is best on pets.csv with labels as given, rate unknown: "
        f"75.00{SPACE}±{SPACE}5.74{SPACE}% test accuracy, 5.00{SPACE}±{SPACE}0.06 points before "
        "cross entropy (CE)."
    )
    assert behind(report) == {"CE": ("5.00 ± 0.06", ""), "GCE": ("best", "")}


def test_a_lead_within_the_deviation_of_the_differences_is_level():
    report = report_of(*own("ce", 0.70, 0.70, 0.70), *own("gce", 0.70, 0.73, 0.68))
    assert "(GCE) comes first, level with cross entropy (CE), on pets.csv" in report.conclusions[0]
    assert behind(report) == {"CE": ("0.33 ± 1.45", "level"), "GCE": ("first", "")}


def test_a_lead_that_few_seeds_cannot_show():
    report = report_of(*own("ce", 0.70, 0.70, 0.70), *own("gce", 0.71, 0.72, 0.74))
    assert (
        "(GCE) comes first, but cannot be told apart from cross entropy (CE) with 3 seeds, on "
        in report.conclusions[0]
    )
    assert behind(report) == {"CE": ("2.33 ± 0.88", "not told apart"), "GCE": ("first", "")}
    more = report_of(*own("ce", *[0.7] * 6), *own("gce", *[0.71, 0.72, 0.74] * 2))
    assert behind(more)["GCE"] == ("best", "")


def test_best_is_only_what_leads_all_others():
    report = report_of(
        *own("ce", 0.70, 0.70, 0.70), *own("gce", 0.68, 0.60, 0.66),
        *own("mae", 0.71, 0.71, 0.711),
    )  # fmt: skip
    assert "(MAE) comes first on pets.csv" in report.conclusions[0]
    assert (
        "MAE cannot be told apart from generalized cross entropy (GCE) with 3 seeds."
        in report.conclusions
    )
    assert behind(report)["MAE"] == ("first", "")


def test_seeds_that_only_one_loss_has_are_in_no_difference():
    report = report_of(*own("ce", 0.60, 0.70), *own("gce", 0.65, 0.75, 0.95))
    assert behind(report)["CE"][0] == "5.00 ± 0.00"
    once = report_of(*own("ce", 0.60), *own("gce", 0.65, 0.75, 0.95))
    assert behind(once)["CE"] == ("18.33", "")
    assert "with one seed nothing can be said about chance" in once.conclusions[0]


def test_the_rule_is_stated_where_it_is_used():
    several = report_of(*own("ce", 0.70, 0.71), *own("gce", 0.80, 0.82))
    rule = f"95{SPACE}% interval of the difference (Student's t)"
    assert any(rule in line for line in several.conclusions)
    assert rule in to_markdown(several.tables).replace("\\", "")
    assert "±" not in to_latex(several.tables)
    single = report_of(*own("ce", 0.70), *own("gce", 0.80))
    assert not any("Student" in line for line in single.conclusions)
    assert "Student" not in to_markdown(single.tables)


def test_the_text_forms_have_the_differences_and_their_errors():
    report = report_of(*own("ce", 0.70, 0.71), *own("gce", 0.80, 0.82))
    line = next(x for x in to_markdown(report.tables).split("\n") if x.startswith("| CE"))
    assert line.endswith("| 70.50 ± 0.50 | 10.50 ± 0.50 |")
    ce, gce = csv.DictReader(io.StringIO(to_csv(report.tables)))
    assert (ce["behind_best_points"], ce["behind_best_standard_error"]) == ("10.50", "0.50")
    assert (ce["verdict"], gce["verdict"]) == ("clear", "best")


def test_published_noise_has_deviations_and_no_such_column():
    (table,) = report_of(*seeds((0.7, 0.8)), *seeds((0.8, 0.9), loss="gce")).tables
    assert not table.says_how_sure
    assert "mean ± deviation over 2 seeds" in to_markdown([table])
    assert "behind" not in to_markdown([table])


# What each loss did with the labels that it did not believe.

TRUTH = {"train_accuracy": 0.8, "memorised": 0.25, "wrong_accuracy": 0.7}


def test_labels_not_believed_where_the_truth_is_known():
    records = own("ce", 0.7, 0.8, wrong=0.2, last=TRUTH, pairs=PAIRS)
    (table,) = report_of(*records).disbelief
    (row,) = table.rows
    assert table.knows_truth
    assert row.disbelieved == pytest.approx(20)
    assert row.really_wrong == pytest.approx(75), "0.2 * 0.75 of 0.2 that are not believed"
    assert (row.seen_through, row.memorised) == (70, 25)
    assert list(map(str, row.pairs)) == ["given cat, says dog: 60", "given dog, says cat: 20"]


def test_where_it_is_not_known_only_what_was_not_believed():
    report = report_of(*own("ce", 0.7, last={"train_accuracy": 0.8}, pairs=PAIRS))
    (table,) = report.disbelief
    assert not table.knows_truth
    (row,) = table.rows
    assert row.disbelieved == pytest.approx(20)
    assert row.really_wrong is row.seen_through is row.memorised is None
    text = text_of(html(report))
    assert "What each loss did with the labels it did not believe" in text
    assert "given cat, says dog: 30" in text
    assert "really wrong" not in text


def test_a_loss_that_believes_all_divides_by_nothing():
    believed = {"train_accuracy": 1.0, "memorised": 1.0, "wrong_accuracy": 0.0}
    report = report_of(*own("ce", 0.7, wrong=0.2, last=believed, pairs=[]))
    (row,) = report.disbelief[0].rows
    assert (row.disbelieved, row.really_wrong, row.pairs) == (0, None, [])
    assert "no label" in text_of(html(report))


def test_without_such_numbers_there_is_no_such_section():
    report = report_of(*own("ce", 0.7), record(0.8))
    assert report.disbelief == []
    assert "did not believe" not in html(report)


def test_names_of_classes_are_only_text_and_cut():
    hostile, long = "<b>cat</b>", "a very long name of a disease of leaves"
    page = html(report_of(*own("ce", 0.7, pairs=[[hostile, long, 1200]])))
    assert hostile not in page
    assert "given &lt;b&gt;cat&lt;/b&gt;, says a very long name of a di…: 1,200" in page


def test_the_most_frequent_pairs_of_all_seeds_come_first():
    one, other = own("ce", 0.7, 0.8, pairs=[])
    one.about["disbelieved"] = [[f"c{i}", "x", 20 - i] for i in range(9)]
    other.about["disbelieved"] = [["c8", "x", 30]]
    (row,) = report_of(one, other).disbelief[0].rows
    assert [pair.given for pair in row.pairs] == ["c8", "c0", "c1", "c2", "c3"]
    assert row.pairs[0].num == 42
