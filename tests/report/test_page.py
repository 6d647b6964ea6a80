"""The page as a file: its content, that it is well-formed HTML, and that it is reproducible."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from noiseproof._errors import MissingExtraError
from noiseproof.report import html, make_report, write
from noiseproof.report._curves import sample_indices

from .subjects import bundle, reading, record, whole

pytest.importorskip("jinja2", reason="the extra report is not installed")
pytest.importorskip("vl_convert", reason="the extra report is not installed")
VOID = {"meta", "br", "link", "img", "input", "hr"}
HOSTILE = "</script><script>alert(1)</script>\"'&<b>"


class WellFormed(HTMLParser):
    """Asserts that elements are closed in order; collects ids, references to them, and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.ids, self.refs, self.elements = [], [], [], []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.elements.append((tag, given))
        self.ids += [given["id"]] if "id" in given else []
        self.refs += given.get("aria-labelledby", "").split()
        if given.get("href", "").startswith("#"):
            self.refs.append(given["href"][1:])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.text += data


def parse(page: str) -> WellFormed:
    parser = WellFormed()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


@pytest.fixture(scope="module")
def page() -> str:
    problems = ("a/b is damaged; fetch it again",)
    return html(make_report(reading(*whole(), record(0.5, loss=HOSTILE), problems=problems)))


def data_of(page: str) -> dict:
    return json.loads(re.search(r'id="report-data">(.*?)</script>', page, flags=re.S)[1])


def test_it_is_well_formed_and_its_references_exist(page):
    parser = parse(page)
    assert len(parser.ids) == len(set(parser.ids))
    assert set(parser.refs) <= set(parser.ids)
    tags = [tag for tag, _ in parser.elements]
    for landmark in ("header", "nav", "main", "footer", "h1"):
        assert tags.count(landmark) == 1
    for tag, given in parser.elements:
        if tag == "th":
            assert given["scope"] in ("row", "col")
        if given.get("role") in ("img", "region", "group"):
            assert given.get("aria-label") or given.get("aria-labelledby")
    assert tags.count("table") == tags.count("caption")


def test_headings_do_not_skip_a_level(page):
    levels = [int(tag[1]) for tag, _ in parse(page).elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))


def test_nothing_is_fetched(page):
    for _, given in parse(page).elements:
        assert "src" not in given
        assert not given.get("href", "#").startswith(("http", "//"))
    assert "default-src 'none'" in page
    assert "@import" not in page


def test_hostile_names_are_only_text(page):
    parser = parse(page)
    scripts = [given for tag, given in parser.elements if tag == "script"]
    assert len(scripts) == 4
    assert "</script><script>alert(1)" in parser.text
    assert any("alert(1)" in label for label in data_of(page)["labels"])


def test_tables_numbers_problems_and_provenance_are_there(page):
    text = " ".join(parse(page).text.split())
    for words in ("64.50 ± 0.71", "86.00", "\N{MINUS SIGN}21.50", "not run", "a/b is damaged",
                  "2 problems in these results", "ended early: diverged at step 3",
                  "Abacus 9", "torch 2.11.0", "batch size 32", "NCE+RCE"):  # fmt: skip
        assert words in text
    assert record(dataset="mnist", noise="none", rate=0.0, loss="ce").accuracy == 0.9
    for made in whole():
        assert made.hash in page


def test_every_figure_of_the_story_is_there_in_its_order():
    names = [f.name for f in make_report(reading(*whole())).figures]
    groups = [re.match("[a-z]+(-passive)?", name)[0] for name in names]
    assert list(dict.fromkeys(groups)) == [
        "overview", "robust", "underfitting", "scaling", "active-passive", "parameters",
        "accuracy", "memorised", "calibration",
    ]  # fmt: skip
    assert len(names) == len(set(names))


def test_one_or_two_rates_are_ranked_with_dots():
    found = make_report(
        reading(record(0.9), record(0.8, rate=0.6), record(0.95, loss="nce"))
    ).figures
    assert found[0].name == "ranking"
    (panel,) = found[0].panels
    assert [(r["label"], r["filled"], r["hollow"]) for r in panel.rows] == [
        ("NCE", 95, None),
        ("CE", 90, 80),
    ]
    assert panel.note == "filled: symmetric 0.4, hollow: symmetric 0.6"


def test_a_line_needs_three_rates():
    every = [record(0.9 - rate, rate=rate) for rate in (0.2, 0.4, 0.6)]
    two = [record(0.8 - rate, rate=rate, loss="nce") for rate in (0.2, 0.6)]
    (panel,) = make_report(reading(*every, *two)).figures[0].panels
    assert [c.label for c in panel.curves] == ["CE"]
    assert panel.note == "and 1 in the tables alone, of fewer than three rates"
    (panel,) = make_report(reading(*two, record(0.9, rate=0.4))).figures[0].panels
    assert {c.label for c in panel.curves} == {"CE", "NCE"}, "or else nothing would be drawn"
    assert not panel.note


def test_points_lost_are_counted_from_the_best_of_all_epochs_not_of_those_drawn():
    ce, nce = (record(0.6, loss=loss, epochs=200) for loss in ("ce", "nce"))
    between = next(i for i in range(100, 200) if i not in sample_indices(200))
    history = [dict(row) for row in ce.history]
    history[between]["test_accuracy"] = 0.9
    figures = make_report(reading(replace(ce, history=history), nce)).figures
    (caption,) = [f.caption for f in figures if f.name == "robust-digits"]
    assert caption.endswith("lost from the best epoch to the last: CE 30.0, NCE 0.0.")


def test_of_a_run_that_chooses_an_epoch_that_epoch_counts():
    plain, auto = record(0.8), record(0.9, loss="auto")
    report = make_report(reading(plain, auto))
    assert {e.label: e.cell.mean for e in report.study.entries} == {
        "CE": pytest.approx(80), "auto": pytest.approx(45),
    }  # fmt: skip
    both = "after the last epoch or, where a run chooses one, at the epoch that was chosen"
    assert both in report.figures[0].caption
    assert f"Test accuracy in percent {both}: the mean" in html(report)
    for records, when in ((plain, "after the last epoch"), (auto, "at the epoch that was chosen")):
        assert make_report(reading(records)).study.measured == when


def test_the_page_says_that_a_number_of_one_seed_has_no_deviation():
    two = record(0.8), record(0.9, seed=1)
    said = "the sample deviation over the seeds (none for one seed); the best two"
    assert said in html(make_report(reading(*two, record(0.7, loss="nce"))))
    assert said not in html(make_report(reading(*two)))


def test_charts_hold_the_records_numbers(page):
    data = data_of(page)
    (mnist,) = [p for p in data["figures"]["overview"] if len(p["curves"]) > 5]
    curves = {data["labels"][curve[0]]: curve for curve in mnist["curves"]}
    assert data["xs"][curves["CE"][1]] == [0, 0.4, 0.6]
    assert curves["CE"][2] == [70.5, 66.5, 64.5]
    (grid,) = data["figures"]["parameters"]
    assert {(r["y"], r["x"]): r["value"] for r in grid["rows"]}[10, 1] == pytest.approx(34.95)
    scaled = data["figures"]["scaling-mnist-symmetric-0.6"][0]
    assert [data["labels"][curve[0]] for curve in scaled["curves"]] == ["×1", "×2", "×5", "×10"]  # noqa: RUF001


def text_of(page: str) -> str:
    return " ".join(parse(page).text.split())


def test_what_was_not_run_is_one_line_and_not_in_the_contents():
    small = html(make_report(reading(record(0.9), record(0.8, loss="nce"))))
    text = text_of(small)
    assert (
        "Not in these results: Scaling, which noiseproof bench figure-3 trains; Active + passive, "
        "which noiseproof bench figure-4 trains; Parameters, which noiseproof bench figure-5 "
        "trains."
    ) in text
    assert text.count("noiseproof bench") == 3
    assert not {"scaling", "active-passive", "parameters"} & {*parse(small).ids, *parse(small).refs}
    assert "Published" not in text
    assert "Problems" not in text


def test_small_figures_are_explained_wherever_they_are():
    """Digits have no published numbers, what is shown beside them has."""
    others = make_report(reading(record(0.8, dataset="mnist", rate=0.6)))
    page = html(make_report(reading(record(0.9), record(0.8, loss="nce"))), beside=others)
    own, beside = page.split('id="beside"')
    explained = "in small figures, the published number and how many points ours is above (+)"
    assert explained not in own
    assert explained in beside


def test_losses_are_spelt_out_beside_the_tables(page):
    for words in ("CE cross entropy", "NFL normalized focal loss", "RCE reverse cross entropy"):
        assert words in text_of(page)


def test_a_height_is_kept_for_every_chart(page):
    plots = [given for _, given in parse(page).elements if given.get("class") == "plot"]
    assert len(plots) == sum(map(len, data_of(page)["figures"].values()))
    assert all(re.fullmatch(r"min-height: \d{2,3}px", given["style"]) for given in plots)


def test_a_chart_and_a_table_share_the_width_where_they_are_alone(page):
    few = html(make_report(reading(record(0.9), record(0.8, loss="nce"))))
    assert '<div class="pair">' in few
    assert '<div class="pair">' not in page


def test_control_characters_reach_neither_page_nor_data():
    name = "a\x00b\x1b[31m\u202e"
    records = [record(a, dataset=name, loss=x) for a, x in ((0.9, "nce"), (0.8, name))]
    page = html(make_report(reading(*records)), title=name)
    shown = r"a\x00b\x1b[31m\u202e"
    assert not re.search("[\x00\x1b\u202e]", page.split("<script>\n!function")[0])
    assert shown in text_of(page)
    assert f"{shown} (own loss)" in data_of(page)["labels"]
    assert f'data-label="{shown} (own loss)"' in page


def test_one_run_and_only_failed_runs_give_a_page_too():
    for records in ([record(0.9)], [record(0.9, error="diverged")]):
        parse(html(make_report(reading(*records))))


def test_the_same_results_give_the_same_bytes(tmp_path):
    found = bundle(tmp_path / "a.jsonl", *whole())
    again = bundle(tmp_path / "b.jsonl", *reversed(whole()))
    assert html(make_report(found)) == html(make_report(again))


def test_long_runs_stay_small():
    records = [
        record(0.5, loss=loss, rate=rate, seed=seed, epochs=200)
        for loss in ("ce", "fl", "nce", "mae", "rce", "nfl")
        for rate in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
        for seed in (0, 1, 2)
    ]
    found = html(make_report(reading(*records)))
    assert len(found.encode()) < 3e6
    data = data_of(found)
    assert max(map(len, data["xs"])) <= 60
    assert all(xs[-1] == 200 for xs in data["xs"] if xs[-1] > 1)


@pytest.mark.slow
def test_a_report_imports_no_torch(tmp_path):
    bundle(tmp_path / "runs.jsonl", *whole())
    code = (
        "import sys\n"
        f"place, out = {str(tmp_path)!r}, {str(tmp_path / 'r.html')!r}\n"
        "sys.argv = ['noiseproof', 'report', place, '--out', out]\n"
        "from noiseproof.cli import main\n"
        "main()\n"
        "assert not {'torch', 'numpy'} & set(sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "r.html" in run.stdout
    assert "Cross entropy (CE) loses up to 15.5 points" in run.stdout


def test_every_part_is_computed_once(monkeypatch, tmp_path):
    from noiseproof.report import _report

    calls = Counter()

    def counted(name):
        compute = getattr(_report, name)
        monkeypatch.setattr(_report, name, lambda *a: calls.update([name]) or compute(*a))

    for name in ("make_study", "make_tables", "make_conclusions", "overview_figures"):
        counted(name)
    report = make_report(reading(*whole()))
    write(report, tmp_path / "report.html")
    write(report, tmp_path / "report.csv", "csv")
    assert report.conclusions
    assert report.figures
    assert set(calls.values()) == {1}
    assert len(calls) == 4
    assert report.story is report.story
    assert report.curves is report.curves


def test_formats_write_their_files(tmp_path):
    report = make_report(reading(*whole()))
    for format, start in (("latex", b"% needs"), ("csv", b"dataset,"), ("markdown", b"### MNIST")):
        (path,) = write(report, tmp_path / "tables", format)
        assert path.read_bytes().startswith(start)
    few = make_report(
        reading(record(0.9), record(0.8, loss="nce"), record(0.7, loss="nce", rate=0.6))
    )
    svgs = write(few, tmp_path / "figures", "svg")
    assert {p.suffix for p in svgs} == {".svg"}
    assert all(b"<svg" in p.read_bytes() and b"NCE" in p.read_bytes() for p in svgs[:1])
    pngs = write(few, tmp_path / "figures", "png")
    assert len(pngs) == len(svgs)
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in pngs)


@pytest.mark.parametrize(
    ("records", "format", "out", "message"),
    [
        ([], "html", "r.html", "no results to report on"),
        ([record()], "pdf", "r.pdf", "written as html, latex, csv, markdown, png, svg; not as 'p"),
        (
            [record()],
            None,
            "r.pdf",
            r"written as \.html, \.tex, \.csv, \.md, and its figures with "
            r"--format png or svg; not as \.pdf, so give another name than",
        ),
        ([record()], "html", ".", "is a folder; give the name of a file"),
        ([record()], "png", "a-file", "is a file; --out names the folder"),
        ([record(error="diverged")], "png", "new", "nothing to draw"),
    ],
)
def test_mistakes_are_one_line(tmp_path, records, format, out, message):
    (tmp_path / "a-file").write_text("")
    with pytest.raises(ValueError, match=message) as caught:
        write(make_report(reading(*records)), tmp_path / out, format)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["jinja2", "vl_convert"])
def test_what_is_not_installed_is_named(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r'pip install "noiseproof\[report\]"'):
        html(make_report(reading(record(0.9), record(0.8, loss="nce"))))


def test_results_beside_its_own_are_labelled_and_do_not_conclude():
    own = reading(*(record(a, loss=loss) for a, loss in ((0.7, "ce"), (0.9, "nce"))))
    others = reading(
        *(record(a, loss=loss, dataset="mnist", rate=r)
          for a, loss in ((0.99, "nce+rce"), (0.4, "ce")) for r in (0.2, 0.4, 0.6)),
        record(0.95, loss="mae"),  # the same table as one of the report's own
        problems=("c/d is damaged",),
    )  # fmt: skip
    alone, page = html(make_report(own)), html(make_report(own), beside=make_report(others))
    parser = parse(page)
    assert len(parser.ids) == len(set(parser.ids))
    assert set(parser.refs) <= set(parser.ids)
    before, after = page.split('id="beside"')
    assert "Not made by the runs of this report: results from made-up." in after
    assert "99.00" in after
    assert "99.00" not in before
    assert "c/d is damaged" in page
    headline = r'class="conclusion">(.*?)</p>'
    assert re.findall(headline, page)[0] == re.findall(headline, alone)[0]
    assert "NCE+RCE" in re.findall(headline, page)[1]
    assert set(data_of(page)["figures"]) == {*data_of(alone)["figures"], "beside-overview",
                                             "beside-ranking"}  # fmt: skip
    assert "For comparison" not in alone


def test_only_the_page_shows_results_beside_its_own(tmp_path):
    with pytest.raises(ValueError, match="only the page shows results beside its own; a csv"):
        write(
            make_report(reading(record())),
            tmp_path / "x.csv",
            "csv",
            beside=make_report(reading(record())),
        )
