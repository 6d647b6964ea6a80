"""The text face: ``parse("10*nce + 0.1*rce(A=-4)")``. Text is read, never run."""

from __future__ import annotations

import ast
from typing import Any

from .._hints import nearest
from ._expression import Custom, Expression, combine
from ._forms import Form
from ._hyper import check_all
from ._mapped import FORMS
from ._module import Loss, _names, listed

LONGEST = 1000  # characters; far more than a loss needs, far less than tires Python's own parser


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
    if not isinstance(text, str):
        raise TypeError(f"parse takes the text of a loss; it was {type(text).__name__}")
    if len(text) > LONGEST:
        raise ValueError(f"a loss of {len(text)} characters is too long to read; {LONGEST} at most")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(
            f"cannot read the loss {text!r}; write it as '10*nce + 0.1*rce(A=-4)'"
        ) from None
    value = _Reader(text).read(tree)
    if isinstance(value, float):
        raise ValueError(f"{text!r} is a number, not a loss; write it as '{text.strip()}*nce'")
    return Loss.of(value, **keywords)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def read(self, node: ast.expr) -> Expression | float:
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int() | float() as value):
                return self.number(value)
            case ast.Name(id=name):
                return self.named(name, {})
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.product(-1.0, self.read(operand))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.read(operand)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self.product(self.read(left), self.read(right))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.sum(left, 1.0, right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return self.sum(left, -1.0, right)
            case ast.BinOp(op=ast.Div()):
                raise self.error("'/' is not read; write 0.5*nce for half of nce")
            case ast.Call(func=ast.Name(id=name), args=args, keywords=given):
                return self.call(name, args, given)
        part = ast.get_source_segment(self.text.strip(), node) or self.text
        raise self.error(f"{part!r} is neither a loss nor a number")

    def number(self, value: float) -> float:
        try:
            return float(value)
        except OverflowError:
            raise self.error("a number in it is too large") from None

    def product(self, left: Expression | float, right: Expression | float) -> Expression | float:
        match left, right:
            case float(), float():
                return left * right
            case float(), Expression():
                return combine((left, right))
            case Expression(), float():
                return combine((right, left))
        raise self.error("losses are scaled by numbers and added, not multiplied")

    def sum(self, left: ast.expr, sign: float, right: ast.expr) -> Expression:
        a, b = self.read(left), self.read(right)
        if isinstance(a, float) or isinstance(b, float):
            raise self.error("a number is added to a loss; numbers scale losses, as in 10*nce")
        return combine((1.0, a), (sign, b))

    def call(self, name: str, args: list[ast.expr], given: list[ast.keyword]) -> Expression:
        form = FORMS.get(name.lower())
        if form is not None:
            inner = self.read(args[0]) if len(args) == 1 else None
            if not isinstance(inner, Expression):
                raise self.error(_takes_one(form))
            return form.make(inner, **dict(check_all(form.hyper, self.numbers(name, given), name)))
        if args and name.lower() in _names:
            raise self.error(f"hyper-parameters go by name, as in fl(gamma=2), not {name}(2)")
        return self.named(name, self.numbers(name, given))

    def numbers(self, name: str, given: list[ast.keyword]) -> dict[Any, float]:
        values = {}
        for keyword in given:
            value = None if keyword.arg is None else self.read(keyword.value)
            if not isinstance(value, float):
                raise self.error(f"the hyper-parameters of {name} are numbers, as in fl(gamma=2)")
            values[keyword.arg] = value
        return values

    def named(self, name: str, hyper: dict[Any, float]) -> Expression:
        meaning = _names.get(name.lower())
        if name.lower() in FORMS:
            raise self.error(_takes_one(FORMS[name.lower()]))
        if name in ("forward_correction", "backward_correction"):
            raise self.error(f"a text holds no matrix T; use noiseproof.{name}(loss, T) in Python")
        if meaning is None:
            known = [*listed(), *FORMS]
            hint = nearest(name.lower(), known)
            raise self.error(f"unknown loss {name!r}{hint}; the known ones are {', '.join(known)}")
        if not isinstance(meaning, type):
            if hyper:
                raise self.error(f"{name} is a function, which takes no hyper-parameters here")
            return Custom(meaning, name.lower())
        expression: Expression = meaning.expression_of(**hyper)  # type: ignore[attr-defined]
        return expression

    def error(self, reason: str) -> ValueError:
        place = "" if self.text.strip().isidentifier() else f"cannot read the loss {self.text!r}: "
        return ValueError(place + reason)


def _takes_one(form: type[Form]) -> str:
    hyper = "".join(f", {h.name}={h.default:g}" for h in form.hyper.values())
    return f"{form.word} takes one loss, as in {form.word}(fl(gamma=2){hyper})"
