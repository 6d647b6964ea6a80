"""Formulas as MathML, which browsers draw themselves: no script, no font, nothing to fetch."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator

# As TeX sets them, and browsers do not: a space between log and p_y, if there is no bracket; the
# bars of a norm of one height.
_APPLIED = re.compile(r"<mo>&ApplyFunction;</mo>(?!\s*<mo[^>]*>\()")
_BAR = re.compile(r'<mo( class="\w+")?>([|\u2223\u2016])</mo>')


def _mathml(tex: str, as_block: bool) -> str:
    text = _APPLIED.sub('<mspace width="0.1667em"></mspace>', tex2mathml(tex, as_block=as_block))
    return _BAR.sub(r'<mo\1 stretchy="false">\2</mo>', text)


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(_mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{_mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
