"""From text to tree, over Python's own syntax tree. Text is read, never run."""

from __future__ import annotations

import ast
import warnings

from .._errors import UsageError, UsageTypeError
from .._hints import nearest
from ._hyper import check_all
from ._signatures import FORMS, SIGNATURES
from ._tree import Leaf, Tree, Wrapped, add

LONGEST = 1000  # characters; far more than a loss needs, far less than tires Python's own parser


def read(text: str, *, known_only: bool = True) -> Tree:
    """The tree of a text, its names and hyper-parameters checked.

    A text is losses by name, with hyper-parameters in parentheses by keyword, scaled by numbers,
    added, subtracted and wrapped: ``nce``, ``10*nce + 0.1*rce(A=-4)``, ``normalize(fl(gamma=2))``,
    ``2*(ce + mae)``. Names are read in either case.

    Args:
        text: the loss.
        known_only: whether a name that no loss has is an error; it may be that of a loss which a
            user declared elsewhere.

    >>> read("2*fl(gamma=1)")
    Sum(terms=((2.0, Leaf(name='fl', hyper=(('gamma', 1.0),))),))
    """
    if not isinstance(text, str):
        raise UsageTypeError(f"a loss is given as a text; it was {type(text).__name__}")
    if len(text) > LONGEST:
        raise UsageError(f"a loss of {len(text)} characters is too long to read; {LONGEST} at most")
    try:
        with warnings.catch_warnings():  # Python's own remarks on its syntax, such as 10inf
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UsageError(
            f"cannot read the loss {text!r}; write it as '10*nce + 0.1*rce(A=-4)'"
        ) from None
    value = _Reader(text, known_only).read(tree)
    if isinstance(value, float):
        raise UsageError(f"{text!r} is a number, not a loss; write it as '{text.strip()}*nce'")
    return value


class _Reader:
    def __init__(self, text: str, known_only: bool) -> None:
        self.text = text
        self.known_only = known_only

    def read(self, node: ast.expr) -> Tree | float:
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
        if isinstance(node, ast.Tuple):
            raise self.error("a text is one loss; several stand apart, as in --loss ce gce")
        part = ast.get_source_segment(self.text.strip(), node) or self.text
        raise self.error(f"{part!r} is neither a loss nor a number")

    def number(self, value: float) -> float:
        try:
            return float(value)
        except OverflowError:
            raise self.error("a number in it is too large") from None

    def product(self, left: Tree | float, right: Tree | float) -> Tree | float:
        if isinstance(left, float) and isinstance(right, float):
            return left * right
        if isinstance(left, float) and not isinstance(right, float):
            return add((left, right))
        if isinstance(right, float) and not isinstance(left, float):
            return add((right, left))
        raise self.error("losses are scaled by numbers and added, not multiplied")

    def sum(self, left: ast.expr, sign: float, right: ast.expr) -> Tree:
        a, b = self.read(left), self.read(right)
        if isinstance(a, float) or isinstance(b, float):
            raise self.error("a number is added to a loss; numbers scale losses, as in 10*nce")
        return add((1.0, a), (sign, b))

    def call(self, name: str, args: list[ast.expr], given: list[ast.keyword]) -> Tree:
        word = name.lower()
        if word in FORMS:
            inner = self.read(args[0]) if len(args) == 1 else None
            if inner is None or isinstance(inner, float):
                raise self.error(_takes_one(word))
            return Wrapped(word, inner, check_all(FORMS[word], self.numbers(name, given), word))
        if args and word in SIGNATURES:
            raise self.error(f"hyper-parameters go by name, as in fl(gamma=2), not {name}(2)")
        return self.named(name, self.numbers(name, given))

    def numbers(self, name: str, given: list[ast.keyword]) -> dict[str, float]:
        values: dict[str, float] = {}
        for keyword in given:
            value = None if keyword.arg is None else self.read(keyword.value)
            if keyword.arg is None or not isinstance(value, float):
                raise self.error(f"the hyper-parameters of {name} are numbers, as in fl(gamma=2)")
            if keyword.arg in values:
                raise self.error(f"{keyword.arg} is given twice; leave one out")
            values[keyword.arg] = value
        return values

    def named(self, name: str, hyper: dict[str, float]) -> Tree:
        word = name.lower()
        if word in FORMS:
            raise self.error(_takes_one(word))
        if word in ("forward_correction", "backward_correction"):
            raise self.error(f"a text holds no matrix T; use noiseproof.{word}(loss, T) in Python")
        if word not in SIGNATURES and not self.known_only:
            return Leaf(word, tuple(hyper.items()))
        if word not in SIGNATURES:
            known = [*(n for n, s in SIGNATURES.items() if s.listed), *FORMS]
            hint = _in_python(name) or nearest(word, known)
            raise self.error(f"unknown loss {name!r}{hint}; the known ones are {', '.join(known)}")
        return Leaf(word, check_all(SIGNATURES[word].hyper, hyper, word))

    def error(self, reason: str) -> UsageError:
        place = "" if self.text.strip().isidentifier() else f"cannot read the loss {self.text!r}: "
        return UsageError(place + reason)


def _in_python(name: str) -> str:
    """A hint where a loss is called as its class or function is: CrossEntropy, focal_loss."""
    bare = name.lower().replace("_", "").removesuffix("loss")
    classes = {n: s.class_name.lower() for n, s in SIGNATURES.items() if s.listed}
    found = [n for n, one in classes.items() if one.removesuffix("loss") == bare]
    return f" (did you mean {found[0]!r}?)" if found else ""


def _takes_one(word: str) -> str:
    hyper = "".join(f", {h.name}={h.default:g}" for h in FORMS[word].values())
    return f"{word} takes one loss, as in {word}(fl(gamma=2){hyper})"
