"""The text face: ``parse("10*nce + 0.1*rce(A=-4)")``, from a tree of names to a loss."""

from __future__ import annotations

from typing import Any

from .. import catalogue, syntax
from .._errors import UsageError
from ._expression import Custom, Expression, combine
from ._mapped import FORMS
from ._module import Loss, declared_losses


def parse(text: str, **keywords: Any) -> Loss:
    """The loss that a text describes; ``str(loss)`` is such a text.

    A text is losses by name, with hyper-parameters in parentheses by keyword, scaled by numbers,
    added, subtracted and wrapped: ``nce``, ``10*nce + 0.1*rce(A=-4)``, ``normalize(fl(gamma=2))``,
    ``2*(ce + mae)``. Names are read in either case. Nothing in it is evaluated as code.

    Args:
        text: the loss.
        keywords: ``weight``, ``ignore_index``, ``reduction``, ``label_smoothing``, of the whole.

    >>> parse("10*nce + 0.1*rce(A=-4)")
    Loss('10*nce + 0.1*rce')
    >>> parse("nce", reduction="sum")
    NormalizedCrossEntropy(reduction='sum')
    """
    try:
        tree = syntax.read(text)
    except UsageError:
        method = catalogue.method_named(text) if isinstance(text, str) else None
        if method is None:
            raise
        raise catalogue.no_text(method) from None
    return Loss.of(build(tree), **keywords)


def build(tree: syntax.Tree) -> Expression:
    """The expression of a tree."""
    match tree:
        case syntax.Leaf(name=name, hyper=hyper):
            loss = declared_losses[name]
            if not isinstance(loss, type):
                return Custom(loss, name)
            expression: Expression = loss.expression_of(**dict(hyper))  # type: ignore[attr-defined]
            return expression
        case syntax.Wrapped(word=word, inner=inner, hyper=hyper):
            return FORMS[word].make(build(inner), **dict(hyper))
        case syntax.Sum(terms=terms):
            return combine(*((factor, build(term)) for factor, term in terms))
