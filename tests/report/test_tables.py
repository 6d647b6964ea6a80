"""The numbers of tables are those of the records, beside the published ones."""

from __future__ import annotations

import csv
import io
import re
import unicodedata

import pytest

from noiseproof.report import make_report, to_csv, to_latex, to_markdown

from .subjects import reading, record, seeds, whole


def made(*records):
    return make_report(reading(*records)).tables


def cells_of(table):
    return {row.label: row.cells for row in table.rows}


def test_a_cell_is_the_mean_and_the_sample_deviation_of_its_seeds():
    (table,) = made(*seeds((0.90, 0.92), loss="ce"), *seeds((0.8, 0.8), loss="nce"))
    (ce,) = cells_of(table)["CE"]
    assert ce.mean == pytest.approx(91)
    assert ce.deviation == pytest.approx(2**0.5)
    assert ce.seeds == (0, 1)
    assert ce.published is None
    assert table.headers == ["0.4"]
    assert table.num_seeds == "2 seeds"
    assert table.protocol == "defaults of this package", "the paper has no digits"
    assert made(record(0.9, dataset="mnist"))[0].protocol == "paper"


def test_a_changed_record_changes_its_cell():
    before = to_csv(made(record(0.9), record(0.8, loss="nce")))
    after = to_csv(made(record(0.9), record(0.8123, loss="nce")))
    (changed,) = [
        (a, b) for a, b in zip(before.split("\n"), after.split("\n"), strict=True) if a != b
    ]
    assert ",NCE," in changed[0]
    assert "80.00" in changed[0]
    assert "81.23" in changed[1]


def test_the_top_two_of_a_column():
    losses = {"ce": 0.5, "nce": 0.7, "mae": 0.9, "nce+rce": 0.8}
    (table,) = made(*(record(a, loss=loss) for loss, a in losses.items()))
    best = {label for label, cells in cells_of(table).items() if cells[0].top_two}
    assert best == {"MAE", "NCE+RCE"}


def test_ties_with_the_second_are_in_the_top_two_and_of_two_only_one_is():
    (table,) = made(*(record(a, loss=f) for f, a in (("ce", 0.9), ("nce", 0.9), ("mae", 0.9))))
    assert all(cells[0].top_two for cells in cells_of(table).values())
    (table,) = made(record(0.9), record(0.8, loss="nce"))
    assert [cells[0].top_two for cells in cells_of(table).values()] == [True, False]
    (table,) = made(record(0.9))
    assert not cells_of(table)["CE"][0].top_two


def test_the_papers_cells_are_there_and_the_missing_are_missing():
    (table,) = made(*seeds((0.85, 0.87), dataset="mnist", rate=0.6, loss="ce"))
    assert table.headers == ["clean", "0.2", "0.4", "0.6", "0.8"]
    rows = cells_of(table)
    assert list(rows)[:4] == ["CE", "FL", "GCE", "NLNL"]
    assert rows["CE"][3].published.mean == 86.00
    assert rows["CE"][3].difference == pytest.approx(0)
    assert rows["CE"][0].mean is None
    assert rows["CE"][0].difference is None
    assert rows["NCE+RCE"][3].published.mean == 97.48
    assert table.num_missing == 9 * 5 - 1


def test_protocols_and_settings_are_never_mixed():
    (table,) = made(
        record(0.5, loss="nce+rce", epochs=40),
        record(0.7, loss="nce+rce", epochs=40, protocol="authors", variant="authors"),
        record(0.9, loss="nce+rce", epochs=8),
        record(0.4, loss="ce", epochs=40),
        record(0.4, loss="mae", epochs=40),
    )
    rows = cells_of(table)
    assert rows["NCE+RCE"][0].mean == pytest.approx(50)
    assert rows["NCE+RCE (authors)"][0].mean == pytest.approx(70)
    assert rows["NCE+RCE (epochs 8)"][0].mean == pytest.approx(90)
    assert table.protocol == ""


def test_a_run_that_failed_is_no_number():
    (table,) = made(record(0.1, error="diverged"), record(0.5, loss="nce"))
    (cell,) = cells_of(table)["CE"]
    assert cell.mean is None
    assert cell.num_failed == 1


def test_scales_and_grids_are_not_in_the_tables():
    (table,) = made(*whole())
    assert not [row for row in table.rows if "*" in row.label]


def test_people_and_clean_labels():
    first, second = made(
        record(0.8, dataset="cifar10", noise="cifar10n-worst", rate=0.0, loss="ce"),
        record(0.9, dataset="mnist", noise="none", rate=0.0, loss="ce"),
    )[::-1]
    assert first.title == "CIFAR-10, human labels"
    assert "CIFAR-10N worst" in first.headers
    assert second.title == "MNIST, clean labels"


HOSTILE = "<script>alert(1)</script>|&_%$#\\{}"


def test_csv_parses_to_the_same_numbers():
    found = made(*whole(), record(0.5, loss=HOSTILE, dataset="mnist"))
    rows = list(csv.DictReader(io.StringIO(to_csv(found))))
    cells = sum(len(t.columns) * len(t.rows) for t in found)
    assert len(rows) == cells
    own = [r for r in rows if r["method"] == "CE" and r["rate"] == "0.6"]
    numbers = ("mean_percent", "deviation_percent", "published_percent", "difference_points")
    assert [tuple(r[name] for name in numbers) for r in own] == [
        ("64.50", "0.71", "86.00", "-21.50")
    ]
    assert any(r["method"] == HOSTILE for r in rows)
    assert all(r["mean_percent"] == "" for r in rows if r["method"] == "NLNL")


def test_columns_of_percents_say_so():
    """Those of ``noiseproof results --csv``, such as last_test_accuracy, are fractions."""
    (row,) = csv.DictReader(io.StringIO(to_csv(made(record(0.5)))))
    percents = {name for name in row if name.endswith("_percent")}
    assert percents == {
        "mean_percent", "deviation_percent", "published_percent", "published_deviation_percent",
    }  # fmt: skip
    assert row["mean_percent"] == "50.00"
    assert not {"mean", "deviation", "published", "difference"} & set(row)


@pytest.mark.parametrize("name", ["=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_cell_of_a_csv_is_a_formula(name):
    records = (record(0.5, dataset=name), record(0.6, dataset=name, loss=name))
    rows = list(csv.reader(io.StringIO(to_csv(made(*records)))))
    cells = {cell for row in rows for cell in row}
    assert not [c for c in cells if c[:1] in "=+-@\t\r" and c and not is_number(c)]
    assert any(c.startswith(("'", "\\")) and c.endswith(name.strip()) for c in cells)


def is_number(text):
    return re.fullmatch(r"[+-]?\d+(\.\d+)?", text) is not None


def test_a_title_is_only_text_in_latex_and_markdown():
    name = "a\\input{/etc/passwd}<script>_&%$#|[*]~^"
    found = made(record(0.5, dataset=name), record(0.6, dataset=name, loss="nce"))
    heading = next(x for x in to_markdown(found).split("\n") if x.startswith("### "))
    assert heading == (
        r"### a\\input\{/etc/passwd\}\<script\>\_\&%\$\#\|\[\*\]\~^, symmetric noise"
    )
    caption = next(x for x in to_latex(found).split("\n") if x.startswith(r"\caption"))
    assert caption.startswith(
        r"\caption{a\textbackslash{}input\{/etc/passwd\}\textless{}script\textgreater{}\_\&\%\$\#"
        r"\textbar{}{[}{*}{]}\textasciitilde{}\textasciicircum{}, symmetric noise: test accuracy"
    )


@pytest.mark.parametrize("to_text", [to_csv, to_latex, to_markdown])
def test_control_characters_reach_no_file(to_text):
    name = "a\x00b\x1b[31m\nc\u202e"
    text = to_text(made(record(0.5, dataset=name), record(0.6, dataset=name, loss=name)))
    assert not [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf")]
    assert "x00b" in text


def test_markdown_has_a_line_for_each_row_and_the_same_columns():
    found = made(*whole(), record(0.5, loss=HOSTILE, dataset="mnist"))
    lines = [x for x in to_markdown(found).split("\n") if x.startswith("|")]
    assert len(lines) == 2 + len(found[0].rows)
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
    assert widths == {len(found[0].columns) + 3}
    assert "<script>" not in to_markdown(found)
    assert re.search(r"\*\*\d\d\.\d\d\*\* ± ", to_markdown(found))


def test_latex_looks_as_if_it_compiled():
    text = to_latex(made(*whole(), record(0.5, loss=HOSTILE, dataset="mnist")))
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 1
    bare = re.sub(r"\\[\\{}&%$#_]", "", text)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    columns = len(re.search(r"\\begin\{tabular\}\{(\w+)\}", text)[1])
    for row in re.findall(r"^.*\\\\$", text, flags=re.M):
        assert len(re.findall(r"(?<!\\)&", row)) == columns - 1
    assert "±" not in text
    assert "#" not in re.sub(r"\\#", "", text)
    assert r"\textbf{" in text


def test_captions_say_what_is_bold_in_brackets_and_of_one_seed():
    several = seeds((0.90, 0.92), dataset="mnist"), seeds((0.8, 0.9), dataset="mnist", loss="gce")
    alone = record(0.7, dataset="mnist", loss="sce")
    for write, plus in ((to_markdown, "±"), (to_latex, r"$\pm$")):
        text = write(made(*several[0], *several[1], alone))
        assert f"mean {plus} deviation over 1 to 2 seeds; a number without {plus} is of one" in text
        assert (
            " The best two of each column are in bold. In brackets the published number and ours "
            "minus it, from Ma et al., ICML 2020, table 2."
        ) in text
    assert " The best of each column is in bold.\n" in to_markdown(
        made(*seeds((0.9, 0.8)), *seeds((0.9, 0.7), loss="nce"))
    )
    one = to_markdown(made(record(0.9)))
    assert "Test accuracy in percent, of 1 seed." in one
    assert "bold" not in one
