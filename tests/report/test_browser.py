"""The page in a real browser, Debian's Chromium, at two widths and in two themes."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path

import pytest

from noiseproof import parse, pictures
from noiseproof.report import make_report, write
from noiseproof.results import cells, read
from noiseproof.train import Run, fit_many

from .subjects import reading, record

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install playwright"
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium"),
    pytest.mark.slow,
]
PHONE, DESKTOP = (390, 844), (1280, 900)
RATES = (0.2, 0.4, 0.6)
LOSSES = ("ce", "nce", "nce+rce")


@pytest.fixture(scope="module")
def runs_folder(tmp_path_factory) -> Path:
    """A small real bench: three losses, three rates, two seeds of one."""
    out = tmp_path_factory.mktemp("bench")
    runs = [Run(rate=r, loss=loss, epochs=3, device="cpu") for r in RATES for loss in LOSSES]
    fit_many([*runs, Run(rate=0.6, loss="ce", epochs=3, device="cpu", seed=1)], out=out)
    return out


@pytest.fixture(scope="module")
def page_file(runs_folder, tmp_path_factory) -> Path:
    report = make_report(read(runs_folder))
    return write(report, tmp_path_factory.mktemp("page") / "report.html")[0]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as play:
        options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        opened = play.chromium.launch(executable_path=CHROMIUM, args=options)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser, page_file):
    """Opens a page; the test fails if it logs, raises or requests anything."""
    pages, complaints = [], []

    def go(size=DESKTOP, theme="light", file=page_file):
        width, height = size
        page = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme=theme,
            reduced_motion="reduce",
        )  # fmt: skip
        page.on("console", lambda message: complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("request", lambda r: complaints.append(r.url) if r.url != file.as_uri() else None)
        page.set_default_timeout(120_000)  # however slow the machine is
        page.goto(file.as_uri())
        pages.append(page)
        return page

    yield go
    for page in pages:
        page.close()
    assert complaints == []


def plot(page, figure="overview"):
    found = page.locator(f"#figure-{figure} .plot").first
    found.scroll_into_view_if_needed()
    found.locator("svg.marks").wait_for()
    return found


def drawn_lines(found) -> int:
    return found.locator("g.mark-line path").count()


def test_the_tables_numbers_are_the_results(visit, runs_folder):
    page = visit()
    table = page.locator("#table-digits-symmetric table")
    assert table.locator("thead th").all_inner_texts() == ["Loss", "0.2", "0.4", "0.6"]
    found = {(c.method, c.rate): c for c in cells(read(runs_folder).records)}
    for row in table.locator("tbody tr").all():
        method = row.locator("th").inner_text().strip()
        for rate, cell in zip(RATES, row.locator("td").all(), strict=True):
            assert cell.inner_text().startswith(f"{found[method, rate].mean:.2f}")
    assert f"± {found['CE', 0.6].deviation:.2f}" in table.inner_text()
    assert table.locator("strong").count() == 2 * len(RATES)


def test_hovering_a_curve_reads_it_off(visit, runs_folder):
    page = visit()
    found = plot(page, "accuracy-digits-symmetric")
    box = found.bounding_box()
    tooltip = page.locator("#tooltip")
    assert tooltip.is_hidden()
    page.mouse.move(box["x"] + box["width"] - 6, box["y"] + 60)
    tooltip.wait_for(state="visible")
    text = tooltip.inner_text()
    assert text.startswith("Epoch 3")
    for cell in cells(read(runs_folder).records):
        if cell.rate == RATES[0]:
            assert re.search(rf"{re.escape(cell.method)}\s+{cell.mean:.2f}", text)
    assert found.locator(".cursor circle").count() == len(LOSSES)
    page.mouse.move(5, 5)
    tooltip.wait_for(state="hidden")
    assert found.locator(".cursor").count() == 0


def test_hovering_a_dot_says_what_it_is(visit):
    page = visit()
    dot = plot(page, "underfitting-digits-symmetric").locator("g.mark-symbol path").last
    dot.hover()
    tooltip = page.locator("#tooltip")
    tooltip.wait_for(state="visible")
    assert re.fullmatch(r"NCE\+RCE: [\d.]+\s% of the right labels .*", tooltip.inner_text())


def test_the_arrow_keys_read_it_off_too(visit):
    page = visit()
    found = plot(page, "accuracy-digits-symmetric")
    found.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator("#tooltip").inner_text().startswith("Epoch 2")
    assert "NCE+RCE" in page.locator("#spoken").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#tooltip").is_hidden()


def test_zooming_and_resetting_by_the_keys_and_the_wheel(visit):
    page = visit()
    found = plot(page, "accuracy-digits-symmetric")

    ticks = """(plot) =>
      [...plot.querySelectorAll("g.role-axis-label text")].map((e) => e.textContent).sort().join()
    """
    handle = found.element_handle()
    before = page.evaluate(ticks, handle)

    def wait_until(same: bool) -> None:
        sign = "===" if same else "!=="
        page.wait_for_function(
            f"([plot, before]) => ({ticks})(plot) {sign} before", arg=[handle, before]
        )

    found.focus()
    page.keyboard.press("+")
    wait_until(same=False)
    page.keyboard.press("0")
    wait_until(same=True)
    box = found.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    page.keyboard.down("Shift")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Shift")
    wait_until(same=False)


def test_a_legend_entry_hides_and_shows_its_line(visit):
    page = visit()
    found = plot(page)
    button = page.locator("#figure-overview .legend button", has_text=re.compile("^CE$"))
    before = drawn_lines(found)
    assert before == len(LOSSES)
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    page.wait_for_function("([e, n]) => e.querySelectorAll('g.mark-line path').length === n",
                           arg=[found.element_handle(), before - 1])  # fmt: skip
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("([e, n]) => e.querySelectorAll('g.mark-line path').length === n",
                           arg=[found.element_handle(), before])  # fmt: skip
    assert button.get_attribute("aria-pressed") == "true"


def colours(page) -> tuple[str, str]:
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    line = page.locator("#figure-overview g.mark-line path").first.get_attribute("stroke")
    return paper, line


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_the_theme_switches_page_and_charts(visit, size):
    page = visit(size)
    plot(page)
    light = colours(page)
    hidden = page.locator("#figure-overview .legend button").last
    hidden.click()
    page.locator("#theme").click()
    page.wait_for_selector("#figure-overview .plot[data-drawn=dark] svg.marks")
    dark = colours(page)
    assert light[0] == "rgb(255, 255, 255)"
    assert all(a != b for a, b in zip(light, dark, strict=True))
    assert drawn_lines(plot(page)) == len(LOSSES) - 1  # what was hidden stays hidden
    hidden.click()
    page.locator("#theme").click()
    page.wait_for_selector("#figure-overview .plot[data-drawn=light] svg.marks")
    assert colours(page) == light


def test_the_systems_theme_is_the_first(visit):
    page = visit(theme="dark")
    plot(page)
    assert page.locator("#figure-overview .plot").first.get_attribute("data-drawn") == "dark"
    assert colours(page)[0] != "rgb(255, 255, 255)"


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_the_page_is_never_wider_than_the_screen(visit, size):
    page = visit(size)
    page.locator("details.runs summary").click()
    for found in page.locator(".plot").all():
        found.scroll_into_view_if_needed()
        found.locator("svg.marks").wait_for()
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width == size[0]
    for box in (found.bounding_box() for found in page.locator(".plot svg.marks").all()):
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= size[0]
    assert page.locator(".plot svg.marks").count() == page.locator(".plot").count()


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_the_contents_lead_to_their_places(visit, size):
    """Charts are drawn when they are scrolled into view, and must not move what is below them."""
    anchors = visit(size).locator(".contents a").evaluate_all("all => all.map((a) => a.hash)")
    assert len(anchors) > 4
    for anchor in anchors:
        page = visit(size)
        page.locator(f'.contents a[href="{anchor}"]').click()
        page.wait_for_function(
            "(where) => location.hash === where &&"
            " [...document.querySelectorAll('.plot')].every((plot) => {"
            " const { top, bottom } = plot.getBoundingClientRect();"
            " const far = bottom < -600 || top > innerHeight + 600;"
            " return far || plot.querySelector('svg.marks'); })",
            arg=anchor,
        )
        top, at_the_end = page.evaluate(
            "(where) => [document.querySelector(where).getBoundingClientRect().top,"
            " scrollY + innerHeight >= document.documentElement.scrollHeight - 1]", anchor,
        )  # fmt: skip
        assert 40 <= top <= 80 or (at_the_end and top > 40), f"{anchor} is at {top}"
        page.close()


@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_drawing_a_chart_moves_nothing(visit, size):
    page = visit(size)
    heights = "all => all.map((plot) => plot.getBoundingClientRect().height)"
    before = page.locator(".plot").evaluate_all(heights)
    for found in page.locator(".plot").all():
        found.scroll_into_view_if_needed()
        found.locator("svg.marks").wait_for()
    assert page.locator(".plot").evaluate_all(heights) == before
    drawn = page.locator(".plot svg.marks").evaluate_all(heights)
    assert all(0 <= kept - used <= 6 for kept, used in zip(before, drawn, strict=True))


def test_a_wide_page_is_used(visit):
    page = visit(DESKTOP)
    figure, table = (
        page.locator(where).bounding_box() for where in ("#figure-overview", "#tables table")
    )
    assert figure["x"] + figure["width"] <= table["x"], "the two are side by side"
    assert figure["width"] + table["width"] > 0.8 * DESKTOP[0]
    for found in page.locator("figure.chart .panels").all():
        assert found.bounding_box()["width"] > 0.4 * DESKTOP[0]


def test_the_runs_are_listed_when_they_are_asked_for(visit, runs_folder):
    page = visit()
    lines = page.locator("details.runs tbody tr")
    assert lines.count() == 0
    page.locator("details.runs summary").click()
    lines.first.wait_for()
    records = read(runs_folder).records
    assert {line.split("\t")[0] for line in lines.all_inner_texts()} == {r.hash for r in records}
    by_hash = {r.hash: r for r in records}
    run, data, noise, *_, seed, accuracy, settings, machine = lines.first.inner_text().split("\t")
    record = by_hash[run]
    assert (data, noise, seed) == ("Digits", f"symmetric {record.run.rate}", str(record.run.seed))
    assert accuracy == f"{100 * record.accuracy:.2f}"
    assert (settings.strip(), machine.strip()) == ("S1", "M1")


@pytest.mark.parametrize("name", ["a\x00b\x1b\u202e'\"<i>&\\", "__proto__", "[x](y)"])
def test_hostile_names_and_numbers_leave_the_charts_alive(visit, tmp_path, name):
    records = [
        record(a, dataset=name, loss=x, rate=r, seed=s)
        for a, x, s in ((0.9, "nce", 0), (0.8, name, 0), (math.nan, "ce", 0), (math.inf, "ce", 1))
        for r in RATES
    ]
    (file,) = write(make_report(reading(*records)), tmp_path / "r.html", title=name)
    page = visit(file=file)
    assert drawn_lines(plot(page)) == 2
    found = plot(page, file_figure(page, "accuracy-"))
    box = found.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 6, box["y"] + 60)
    page.locator("#tooltip").wait_for(state="visible")
    assert "NCE" in page.locator("#tooltip").inner_text()
    assert page.locator("#figure-overview .swatch:not(.none)").count() == 2


def file_figure(page, start: str) -> str:
    found = page.locator(f'[id^="figure-{start}"]').first.get_attribute("id")
    return found.removeprefix("figure-")


def test_the_first_stop_of_the_keyboard_skips_to_the_results(visit):
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_printing_draws_every_chart_in_light(visit, tmp_path):
    page = visit(theme="dark")
    page.pdf(path=tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert page.locator(".plot svg.marks").count() == page.locator(".plot").count()


def test_contrast_is_sufficient(visit):
    """WCAG's contrast ratio to the background: 4.5 for text and 3 for lines, in both themes."""
    script = """() => {
      const linear = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
      const light = (c) => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(linear);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
        return (x + 0.05) / (y + 0.05); };
      const page = getComputedStyle(document.body).backgroundColor;
      const of = (e, name) => ratio(getComputedStyle(e)[name], page);
      const all = (where, name) => [...document.querySelectorAll(where)].map((e) => of(e, name));
      return [Math.min(...all("p, li, td, th, dt, dd, summary, a:not(.skip), h1, h2, h3", "color")),
              Math.min(...all(".swatch:not(.none)", "stroke"))];
    }"""
    for theme in ("light", "dark"):
        text, lines = visit(theme=theme).evaluate(script)
        assert text >= 4.5
        assert lines >= 3


def test_the_picture_of_a_loss_is_a_page_with_tooltips(visit, tmp_path):
    pictures.draw(parse("nce + rce"), tmp_path / "loss.html")
    page = visit(file=tmp_path / "loss.html")
    page.locator("#chart svg.marks").wait_for()
    assert drawn_lines(page) == 4
    page.locator("g.mark-symbol.role-mark path").nth(30).hover(force=True)
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    assert re.search(r"value\s+p\s+0\.\d\d", tooltip.inner_text())
