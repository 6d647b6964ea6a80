"""The site, by Sphinx: `make site`. The pages of this folder are read as they are."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import gallery  # noqa: E402
import reference  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402

from noiseproof import __version__  # noqa: E402

project = "noiseproof"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4  # the anchors of GitHub
html_theme = "furo"
pygments_dark_style = "monokai"
html_title = "noiseproof"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = html_show_sphinx = html_show_sourcelink = False
html_copy_source = False

CONTENTS = {
    "Use": (
        "start", "which-loss", "choose", "one-rule", "own-data", "training", "find-wrong-labels",
        "imbalance", "export",
    ),
    "In your trainer": ("trainers/index", "trainers/pytorch", "trainers/*"),
    "Recipes": ("recipes/index", "recipes/*"),
    "Understand": (
        "losses", "losses-in-code", "active-or-passive", "noise", "theory", "paper-notes",
        "reproduction",
    ),
    "Reference": ("api/index", "speed", "stability", "CHANGELOG"),
    "Contribute": ("CONTRIBUTING", "ARCHITECTURE"),
    "More": ("*",),
}  # fmt: skip


def contents() -> str:
    """What index.md ends with: every page once, under the first caption that has it."""
    lines, seen = [], {"index"}
    for caption, patterns in CONTENTS.items():
        found = (path for pattern in patterns for path in sorted(HERE.glob(f"{pattern}.md")))
        names = [str(path.relative_to(HERE).with_suffix("")) for path in found]
        pages = [name for name in dict.fromkeys(names) if name not in seen]
        seen.update(pages)
        if pages:
            lines += ["```{toctree}", f":caption: {caption}", ":hidden:", "", *pages, "```", ""]
    return "\n".join(lines)


def write_pages(app: Sphinx) -> None:
    gallery.write(HERE / "losses")
    reference.write(HERE / "api")


def adapt(app: Sphinx, docname: str, source: list[str]) -> None:
    """What reads one way in the repository and another way on the site."""
    if docname == "losses":
        source[0] = gallery.overview()  # of the gallery, in place of one long page
    if docname == "index":
        source[0] += "\n" + contents()
    included = r"\]\(\.\./(ARCHITECTURE|CHANGELOG|CONTRIBUTING)\.md"
    source[0] = re.sub(included, r"](\1.md", source[0])
    by_file = r"\[[\w./-]+\.md\]\(([\w./-]+\.md(?:#[\w-]+)?)\)"
    source[0] = re.sub(by_file, r"*[](\1)*", source[0])  # its title in place of a file's name


def renew(app: Sphinx, *_: object) -> list[str]:
    """The pages that depend on more than their files."""
    return ["index", "losses"]


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", write_pages)
    app.connect("env-get-outdated", renew)
    app.connect("source-read", adapt)
    app.connect("autodoc-skip-member", reference.skip_foreign)
    app.connect("autodoc-process-docstring", reference.keep_colons, priority=400)
