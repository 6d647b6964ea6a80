"""A loss as a tree of names and numbers, and the texts that it is written as."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from .._errors import UsageError
from ._signatures import SIGNATURES

Hypers = tuple[tuple[str, float], ...]
_ORDER = {"active": 0, "undetermined": 1, "passive": 2}


@dataclass(frozen=True)
class Leaf:
    """A loss by its name, with every hyper-parameter that it has."""

    name: str
    hyper: Hypers = ()


@dataclass(frozen=True)
class Wrapped:
    """A form of a loss, such as ``normalize(fl(gamma=2))``."""

    word: str
    inner: Tree
    hyper: Hypers = ()


@dataclass(frozen=True)
class Sum:
    """A weighted sum; build it with `add`, which flattens it and collects equal terms."""

    terms: tuple[tuple[float, Tree], ...]


Tree: TypeAlias = Leaf | Wrapped | Sum


def add(*parts: tuple[float, Tree]) -> Tree:
    """The weighted sum of trees: nested sums flattened, equal terms collected."""
    collected: dict[Tree, float] = {}
    for factor, part in parts:
        for inner, term in part.terms if isinstance(part, Sum) else ((1.0, part),):
            collected[term] = collected.get(term, 0.0) + factor * inner
            if not math.isfinite(collected[term]):
                raise UsageError(f"the factor of {short(term)} is not finite")
    terms = tuple((factor, term) for term, factor in collected.items())
    return terms[0][1] if len(terms) == 1 and terms[0][0] == 1 else Sum(terms)


def canonical(loss: str | Tree) -> str:
    """The one text of all texts that mean the same loss.

    Every hyper-parameter is written out, so that the text means the same whatever the defaults; a
    form that has a name has that name; active losses come before passive ones, as the paper writes
    them, and each group is sorted.

    >>> canonical("rce + 10*normalize(ce)")
    '10*nce + rce(A=-4)'
    """
    return _write(ordered(_as_tree(loss)), explicit=True)


def short(loss: str | Tree) -> str:
    """The text with the hyper-parameters that are not at their default, in the order given.

    >>> short("rce(A=-4) + fl(gamma=2)")
    'rce + fl(gamma=2)'
    """
    return _write(_as_tree(loss), explicit=False)


def leaves(tree: Tree) -> Iterator[Leaf]:
    """Every loss that is named in a tree."""
    match tree:
        case Leaf():
            yield tree
        case Wrapped(inner=inner):
            yield from leaves(inner)
        case Sum(terms=terms):
            for _, term in terms:
                yield from leaves(term)


def uses_user_losses(tree: Tree, *, but_of: Collection[str] = ()) -> bool:
    """Whether a loss in it was declared or registered outside this package.

    Args:
        tree: the loss.
        but_of: modules whose losses do not count.
    """

    def counts(name: str) -> bool:
        if name not in SIGNATURES:
            return True
        known = SIGNATURES[name]
        return known.user and not any(f"{known.module}.".startswith(f"{m}.") for m in but_of)

    return any(counts(leaf.name) for leaf in leaves(tree))


def number(value: float) -> str:
    """The shortest text that reads back as the same float: ``10``, ``0.1``, ``1e-07``."""
    return repr(float(value)).removesuffix(".0")


def _as_tree(loss: str | Tree) -> Tree:
    if not isinstance(loss, str):
        return loss
    from ._read import read

    return read(loss)


def ordered(tree: Tree) -> Tree:
    """The same loss with names for its forms that have one, and its terms in order."""
    match tree:
        case Sum(terms=terms):
            inside = add(*((factor, ordered(term)) for factor, term in terms))
            if not isinstance(inside, Sum):
                return inside
            return Sum(tuple(sorted(inside.terms, key=lambda t: (_rank(t[1]), canonical(t[1])))))
        case Wrapped(word=word, inner=inner, hyper=hyper):
            inner = ordered(inner)
            if word == "normalize" and isinstance(inner, Sum) and len(inner.terms) == 1:
                factor, only = inner.terms[0]
                inner = only if factor > 0 else inner  # a factor cancels
            if word == "normalize" and _is_normalized(inner):
                return inner  # its sum over classes is 1 already
            if isinstance(inner, Leaf):
                for name, s in SIGNATURES.items():
                    if (s.form, s.of) == (word, inner.name):
                        return Leaf(name, inner.hyper)
            return Wrapped(word, inner, hyper)
    return tree


def _is_normalized(tree: Tree) -> bool:
    if isinstance(tree, Wrapped):
        return tree.word == "normalize"
    return isinstance(tree, Leaf) and SIGNATURES[tree.name].form == "normalize"


def _rank(tree: Tree) -> int:
    while isinstance(tree, Wrapped):
        tree = tree.inner
    kinds = [SIGNATURES[leaf.name].kind for leaf in leaves(tree) if leaf.name in SIGNATURES]
    return max((_ORDER[kind] for kind in kinds), default=1)


def _write(tree: Tree, *, explicit: bool) -> str:
    match tree:
        case Leaf(name=name, hyper=hyper):
            given = ", ".join(_shown(name, hyper, explicit))
            return f"{name}({given})" if given else name
        case Wrapped(word=word, inner=inner, hyper=hyper):
            given = ", ".join([_write(inner, explicit=explicit), *_assigned(hyper)])
            return f"{word}({given})"
        case Sum(terms=terms):
            text = ""
            for factor, term in terms:
                size, body = abs(factor), _write(term, explicit=explicit)
                scaled = body if size == 1 else f"{number(size)}*{body}"
                if text:
                    text += f" - {scaled}" if factor < 0 else f" + {scaled}"
                else:
                    text = f"-{scaled}" if factor < 0 else scaled
            return text


def _shown(name: str, hyper: Hypers, explicit: bool) -> Iterable[str]:
    declared = SIGNATURES[name].hyper if name in SIGNATURES else {}
    return _assigned(
        tuple((n, v) for n, v in hyper if explicit or n not in declared or v != declared[n].default)
    )


def _assigned(hyper: Hypers) -> list[str]:
    return [f"{name}={number(value)}" for name, value in hyper]
