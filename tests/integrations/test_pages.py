"""The pages about trainers and the recipes: their examples run as pasted, and are short."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import alone

DOCS = Path(__file__).parent.parent.parent / "docs"
TRAINERS = sorted(page.stem for page in (DOCS / "trainers").glob("*.md") if alone.blocks(page))
RECIPES = sorted(page.stem for page in (DOCS / "recipes").glob("*.md") if alone.blocks(page))


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINERS)
def test_trainers(name, tmp_path):
    alone.run(DOCS / "trainers" / f"{name}.md", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_recipes(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in alone.blocks(DOCS / "recipes" / f"{name}.md"):
        exec(compile(block, name, "exec"), {"__name__": "__main__"})


def test_examples_are_short():
    pages = [*(DOCS / "trainers").glob("*.md"), *(DOCS / "recipes").glob("*.md")]
    assert len(pages) >= 16
    for page in pages:
        for block in alone.blocks(page):
            assert block.count("\n") <= 60, page.name
            assert max(map(len, block.splitlines())) <= 100, page.name


@pytest.mark.parametrize("folder", ["trainers", "recipes"])
def test_every_page_is_in_its_index(folder):
    index = (DOCS / folder / "index.md").read_text()
    for page in (DOCS / folder).glob("*.md"):
        assert page.name in ("index.md", "sklearn.md") or f"({page.name})" in index
