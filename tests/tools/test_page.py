"""The page of suspects: what is in it, and that a person can go through it with the keyboard."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys

import numpy as np
import pytest
import torch

import noiseproof
from noiseproof.tools import audit
from noiseproof.tools._apply import read_corrections

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
CLASSES = ("cat", "<b>dog</b>", "=1+1", 'a "quoted", one')
HOSTILE = "</script><script>alert(1)</script>\n<img src=x onerror=alert(2)> \u202e\x1b[31m"


def subject(n: int = 40):
    """Labels of which a quarter is wrong."""
    truth = np.arange(n) % 4
    p = np.full((n, 4), 0.02)
    p[np.arange(n), truth] = 0.94
    given = np.where(np.arange(n) % 20 < 5, (truth + 1) % 4, truth)
    return audit(
        p, given, classes=CLASSES, names=[f"sample {i} {HOSTILE}" for i in range(n)],
        annotators=[f"worker {i % 2}" for i in range(n)],
    )  # fmt: skip


def data_of(page: str) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_what_the_page_holds(tmp_path):
    found = subject()
    page = found.to_html(tmp_path / "page.html", [f"{i}: {HOSTILE}" for i in range(40)]).read_text()
    assert page.count("<script") == 2  # the data, and ours
    assert "alert(1)</script>" not in page
    assert "\x1b" not in page
    rows = data_of(page)["rows"]
    assert len(rows) == len(found)
    assert [row[1] for row in rows] == found.index.tolist()
    assert rows[0][7] == "text"
    assert rows[0][8][0].startswith(f"{rows[0][1]}: <")
    assert all(row[3] in [k for k, _ in row[6]] for row in rows)  # the given class is shown
    assert "http" not in re.sub(r"http-equiv", "", page)
    assert "connect-src" not in page
    assert "default-src 'none'" in page


def test_kinds_of_samples(tmp_path):
    found = subject()

    def shown(sample) -> list:
        page = found.to_html(tmp_path / "page.html", lambda i: sample, number=1).read_text()
        return data_of(page)["rows"][0][7:9]

    assert shown(np.zeros((8, 8), np.uint8))[1].startswith("data:image/png;base64,iVBOR")
    assert shown(np.zeros((3, 8, 6), np.uint8))[0] == "image"
    assert shown(torch.zeros((3, 8, 6), dtype=torch.uint8)) == shown(np.zeros((8, 6, 3), np.uint8))
    pillow = pytest.importorskip("PIL.Image")
    assert shown(pillow.new("P", (6, 8))) == shown(np.zeros((8, 6, 3), np.uint8))
    assert shown(b"\xff\xd8\xff rest")[1].startswith("data:image/jpeg;")
    assert shown({"age": 3, HOSTILE: "x"})[0] == "row"
    assert shown({"age": 3})[1] == [["age", "3"]]
    (_, review), (_, book) = shown({"review": "word " * 100, "book": "word " * 1000})[1]
    assert review == "word " * 100
    assert len(book) < 2100
    assert book.endswith("…")
    assert shown(None) == ["", ""]
    with pytest.raises(noiseproof.UsageError, match="PNG"):
        shown(b"<svg onload=alert(1)>")
    with pytest.raises(noiseproof.UsageError, match="uint8"):
        shown(np.zeros((8, 8)))
    with pytest.raises(noiseproof.UsageError, match="samples"):
        found.to_html(tmp_path / "page.html", ["one"])


def test_marks_of_other_labels_are_not_taken_for_these(tmp_path):
    one, other = subject(40), subject(44)
    keys = {data_of(a.to_html(tmp_path / "p.html").read_text())["key"] for a in (one, other, one)}
    assert len(keys) == 2


def test_jinja2_may_be_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(noiseproof.MissingExtraError, match=r"noiseproof\[report\]"):
        subject().to_html(tmp_path / "page.html")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with playwright.sync_playwright() as play:
        options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        opened = play.chromium.launch(executable_path=CHROMIUM, args=options)
        yield opened
        opened.close()


@pytest.mark.slow
@pytest.mark.parametrize("size", [(390, 844), (1280, 900)])
def test_a_person_goes_through_it_with_the_keyboard(browser, tmp_path, size):
    found = subject(4000)  # a thousand suspects
    place = found.to_html(tmp_path / "page.html", lambda i: f"{i} {HOSTILE}", apply="the command")
    context = browser.new_context(viewport={"width": size[0], "height": size[1]})
    page, complaints = context.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.on("request", lambda r: complaints.append(r.url) if r.url != place.as_uri() else None)
    page.set_default_timeout(60_000)
    page.goto(place.as_uri())
    suspects = found.suspects()
    assert len(suspects) == 1000

    def current() -> str:
        return page.inner_text("#rank")

    assert current() == "1 of 1,000"
    assert page.inner_text("#given") == suspects[0].given
    assert page.inner_text("#suggested") == suspects[0].suggested
    assert page.locator(".row").count() < 60  # however many there are, those in view
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    page.keyboard.press("c")  # change the first to what is suggested
    page.keyboard.press("y")  # keep the second
    page.keyboard.press("d")  # drop the third
    assert current() == "4 of 1,000"
    page.keyboard.press("k")
    assert page.inner_text("#mark") == "dropped"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("/")
    page.keyboard.type("ca")  # another class, by the letters that it begins with
    page.keyboard.press("Enter")
    page.keyboard.press("c")
    page.keyboard.press("u")  # and not this one
    assert current() == "5 of 1,000"
    assert "4 of 1,000" in page.inner_text("#done")
    page.keyboard.press("End")
    assert current() == "1,000 of 1,000"
    assert page.locator('.row[aria-current="true"]').inner_text().startswith("1000")
    page.reload()
    assert "4 of 1,000" in page.inner_text("#done")  # marks are still there
    assert current() == "1,000 of 1,000"
    page.keyboard.press("Home")
    page.click("#keep")  # buttons do the same, and a mark can be changed
    page.keyboard.press("u")
    assert page.inner_text("#mark") == f"→ {suspects[0].suggested}"
    with page.expect_download() as download:
        page.keyboard.press("e")
    assert "the command" in page.inner_text("#note")
    path = tmp_path / "corrections.csv"
    download.value.save_as(path)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["index"]) for row in rows] == [s.index for s in suspects[:4]]
    fourth = "keep" if suspects[3].given == "cat" else "change"
    assert [row["decision"] for row in rows] == ["change", "keep", "drop", fourth]
    corrected = read_corrections(path, found.labels, found.classes)
    expected = found.labels.copy()
    expected[suspects[0].index] = CLASSES.index(suspects[0].suggested)
    expected[suspects[3].index] = 0
    assert np.array_equal(corrected.labels, expected)
    assert np.flatnonzero(~corrected.kept).tolist() == [suspects[2].index]
    assert complaints == []
    context.close()


@pytest.mark.slow
def test_every_control_has_a_name(browser, tmp_path):
    file = subject().to_html(tmp_path / "page.html", lambda i: np.zeros((8, 8), np.uint8))
    page = browser.new_page()
    page.goto(file.as_uri())
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, input, img, progress')].filter(e => !("
        "e.innerText || e.ariaLabel || e.alt || (e.labels && e.labels.length))).length"
    )
    assert unnamed == 0
    page.close()
