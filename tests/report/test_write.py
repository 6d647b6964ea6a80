"""Files of a report: their formats, their names, and what the command line says of them."""

from __future__ import annotations

import sys

import pytest

from noiseproof import cli
from noiseproof.report import Figure, make_report, write

from .subjects import bundle, reading, record

pytest.importorskip("vl_convert", reason="the extra report is not installed")
EVIL = "x/../../home/logo"


def run_cli(monkeypatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["noiseproof", "report", *map(str, arguments)])
    cli.main()


def two(dataset="digits", **settings):
    return [record(a, dataset=dataset, loss=x, **settings) for a, x in ((0.9, "nce"), (0.8, "ce"))]


def test_a_suffix_that_is_no_format_is_refused(monkeypatch, capsys, tmp_path):
    bundle(tmp_path / "runs.jsonl", *two())
    with pytest.raises(SystemExit) as stop:
        run_cli(monkeypatch, tmp_path / "runs.jsonl", "--out", tmp_path / "x.pdf")
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("noiseproof: a report is written as .html, .tex, .csv, .md, and its fig")
    assert said.count("\n") == 1
    assert not (tmp_path / "x.pdf").exists()


@pytest.mark.parametrize(
    ("name", "start"),
    [("r.html", b"<!doctype"), ("r.htm", b"<!doctype"), ("r", b"<!doctype"), ("r.tex", b"% needs"),
     ("r.csv", b"dataset,"), ("r.md", b"### Digits")],
)  # fmt: skip
def test_the_suffix_chooses_the_format_from_python_too(tmp_path, name, start):
    (path,) = write(make_report(reading(*two())), tmp_path / name)
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("name", [EVIL, "../" * 9 + "tmp/x", "a\x00b", "x" * 300, ".", "a b", "ü"])
def test_names_of_data_sets_never_leave_the_folder_of_the_pictures(tmp_path, name):
    out = tmp_path / "a" / "figures"
    written = write(make_report(reading(*two(name))), out, "svg")
    assert {path.parent for path in written} == {out}
    assert sorted(out.iterdir()) == sorted(written)
    assert sorted(tmp_path.rglob("*.svg")) == sorted(written)
    assert all(path.name.replace("-", "").replace(".", "").isalnum() for path in written)


def test_two_names_never_share_a_file(tmp_path):
    one = Figure("accuracy-a/b", "", "", [])
    assert one.name != Figure("accuracy-a-b", "", "", []).name != Figure("accuracy-a:b", "", "", [])
    report = make_report(reading(*two("a/b"), *two("a:b")))
    written = write(report, tmp_path / "figures", "svg")
    assert len(set(written)) == len(report.figures)


def test_names_of_figures_are_ids_of_the_page(tmp_path):
    (path,) = write(make_report(reading(*two("my data"))), tmp_path / "r.html")
    page = path.read_text()
    assert 'aria-labelledby="caption-my-data-symmetric-' in page
    assert 'id="table-my data' not in page


def test_what_is_printed_cannot_steer_the_terminal(monkeypatch, capsys, tmp_path):
    name = "[red]a\x1b[31m\x00"
    bundle(tmp_path / "runs.jsonl", *two(name), record(error="it\x1b[2Jended", dataset=name))
    with (tmp_path / "runs.jsonl").open("a") as file:
        file.write('{"about": {}, "settings": {"\\u001b[31m": 1}, "history": {}, "error": null}\n')
    run_cli(monkeypatch, tmp_path, "--out", tmp_path / "r.csv")
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert "\x00" not in said.out + said.err
    assert r"on [red]a\x1b[31m\x00 with symmetric noise" in said.out


def test_a_picture_of_hostile_names_can_be_drawn(tmp_path):
    name = "a\x00b\x1b<&\x0b"
    records = [record(a, dataset=name, loss=x) for a, x in ((0.9, "nce"), (0.8, name))]
    for format in ("svg", "png"):
        assert write(make_report(reading(*records)), tmp_path / format, format)
