"""The site: it builds without a warning, fetches nothing, and has a page for every loss."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import noiseproof

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site, built from a copy of docs/: what the build writes there other tests would read."""
    for library in ("furo", "myst_parser", "sphinx", "vl_convert"):
        pytest.importorskip(library, reason="the extra site is not installed")
    here = tmp_path_factory.mktemp("site")
    for path in ROOT.iterdir():  # pages link to files beside docs/
        if path.name != "docs" and not path.name.startswith("."):
            (here / path.name).symlink_to(path)
    built = {str(ROOT / "docs"): {"losses", "api", "__pycache__"}}
    shutil.copytree(ROOT / "docs", here / "docs", ignore=lambda at, _: built.get(at, ()))
    options = ["--quiet", "--fail-on-warning", "--keep-going", "-d", here / "doctrees"]
    run = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, here / "docs", here / "html"],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return here / "html"


class Resources(HTMLParser):
    """What a browser fetches to show a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        sources = [given.get("src"), given.get("srcset"), given.get("poster")]
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "prefetch"):
            sources.append(given.get("href"))
        self.found += filter(None, sources)


def test_nothing_is_fetched(site):
    pages = list(site.rglob("*.html"))
    resources = {resource for page in pages for resource in Resources(page).found}
    assert len(resources) > 5  # styles, scripts and pictures were looked at
    assert not [r for r in resources if r.startswith(("http:", "https:", "//"))]
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text()), style


def test_formulas_are_drawn_by_the_browser(site):
    page = (site / "losses" / "nce.html").read_text()
    assert "<math" in page
    assert "\\log" not in page
    assert "mathjax" not in " ".join(Resources(site / "losses" / "nce.html").found).lower()


def test_every_loss_has_a_page_and_a_picture(site):
    overview = (site / "losses.html").read_text()
    for name, entry in noiseproof.losses.registry().items():
        if not hasattr(noiseproof.losses, entry.loss.__name__):
            continue  # another test's, or a doctest's
        page = (site / "losses" / f"{name}.html").read_text()
        assert f"noiseproof.losses.html#noiseproof.losses.{entry.loss.__name__}" in page
        assert (site / "_images" / f"{name}.svg").exists()
        assert f'href="losses/{name}.html"' in overview


def test_every_public_name_is_in_the_reference(site):
    for package in ("losses", "noise", "data", "train", "runs", "theory"):
        page = (site / "api" / f"noiseproof.{package}.html").read_text()
        module = getattr(noiseproof, package)
        for name in getattr(module, "__all__", ()):
            if inspect.isroutine(getattr(module, name)) or inspect.isclass(getattr(module, name)):
                assert re.search(rf"noiseproof\.\w+\.{name}\b", page), f"{package}.{name}"


def test_pages_are_in_the_contents(site):
    contents = (site / "index.html").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert f'href="{page.stem}.html"' in contents or page.stem == "index"
