"""The picture of a loss: its numbers, and its files."""

from __future__ import annotations

import json
import math
import re
import sys

import pytest

import noiseproof
from noiseproof import pictures
from noiseproof._errors import MissingExtraError, UsageError


def column(rows, curve):
    return {round(row["p"], 2): row["y"] for row in rows if row["curve"] == curve}


def test_values_and_gradients_of_mae():
    """MAE is 2 (1 - p_y), and its gradient by the logits 2 p_y (1{k = y} - p_k)."""
    rows = pictures.curves(noiseproof.parse("mae"), num_classes=3)
    assert column(rows["value"], "value")[0.5] == pytest.approx(1)
    norm = 2 * 0.5 * (0.5**2 + 2 * 0.25**2) ** 0.5
    assert column(rows["value"], "gradient norm")[0.5] == pytest.approx(norm)
    assert column(rows["training"], "clean label")[0.5] == pytest.approx(norm)
    wrong = 2 * 0.25 * (0.75**2 + 0.5**2 + 0.25**2) ** 0.5  # p is 0.5 of the true class
    assert column(rows["training"], "wrong label")[0.5] == pytest.approx(wrong)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    pytest.importorskip("vl_convert", reason="the extra plot is not installed")
    folder = tmp_path_factory.mktemp("pictures")
    for suffix in ("png", "svg", "html"):
        pictures.draw(noiseproof.parse("nce + rce"), folder / f"loss.{suffix}")
    return folder


def test_each_format_is_what_it_is_named(files):
    assert (files / "loss.png").read_bytes().startswith(b"\x89PNG")
    svg = (files / "loss.svg").read_text()
    assert svg.startswith("<svg")
    assert "nce + rce, 10 classes" in svg
    assert {path.name for path in files.iterdir()} == {"loss.png", "loss.svg", "loss.html"}


def test_the_page_holds_all_that_it_needs(files):
    page = (files / "loss.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "<title>nce + rce, 10 classes</title>" in page
    assert not re.search(r"<(script|link)[^>]+(src|href)=", page)
    spec = json.loads(re.search(r'vegaEmbed\("#chart", (.*), \{mode', page)[1])
    assert len(spec["hconcat"]) == 2


def test_the_same_loss_gives_the_same_bytes(files, tmp_path):
    pictures.draw(noiseproof.parse("nce + rce"), tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == (files / "loss.svg").read_bytes()


def test_vega_lite_has_no_complaint(capfd):
    vl_convert = pytest.importorskip("vl_convert", reason="the extra plot is not installed")
    rows = pictures.curves(noiseproof.parse("ce"))
    for tooltips in (False, True):
        spec = pictures._chart(rows, "ce", tooltips)
        vl_convert.vegalite_to_vega(spec, show_warnings=True)
    assert "".join(capfd.readouterr()) == ""


def test_other_suffixes_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"written as png, svg, html; not as 'loss\.bmp'"):
        pictures.draw(noiseproof.parse("ce"), tmp_path / "loss.bmp")


def test_a_link_is_followed_and_a_folder_refused(tmp_path):
    pytest.importorskip("vl_convert", reason="the extra plot is not installed")
    (tmp_path / "there").mkdir()
    (tmp_path / "loss.svg").symlink_to(tmp_path / "there" / "loss.svg")
    pictures.draw(noiseproof.parse("ce"), tmp_path / "loss.svg")
    assert (tmp_path / "loss.svg").is_symlink()
    assert (tmp_path / "there" / "loss.svg").read_text().startswith("<svg")
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["loss.svg"]
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(UsageError, match=r"folder\.svg is a folder; give the name of a file$"):
        pictures.draw(noiseproof.parse("ce"), tmp_path / "folder.svg")


@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
def test_what_is_no_number_is_left_out(tmp_path, monkeypatch, suffix):
    pytest.importorskip("vl_convert", reason="the extra plot is not installed")
    rows = pictures.curves(noiseproof.parse("ce"))
    rows["value"][0]["y"], rows["value"][2]["y"] = math.nan, math.inf
    monkeypatch.setattr(pictures, "curves", lambda *_: rows)
    pictures.draw(noiseproof.parse("ce"), tmp_path / f"loss.{suffix}")
    content = (tmp_path / f"loss.{suffix}").read_bytes()
    if suffix == "html":
        spec = re.search(rb'vegaEmbed\("#chart", (.*), \{mode', content)[1]
        assert json.loads(spec)["hconcat"][0]["data"]["values"][0]["y"] is None


def test_without_vl_convert_the_error_has_the_command(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingExtraError, match=r'pip install "noiseproof\[plot\]"'):
        pictures.draw(noiseproof.parse("ce"), tmp_path / "loss.svg")
    assert not list(tmp_path.iterdir())
