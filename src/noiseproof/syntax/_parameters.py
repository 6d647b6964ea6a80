"""The numbers in a loss by name: read them, or replace some of them."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from .._errors import UsageError, UsageTypeError
from .._hints import nearest
from ._read import read
from ._tree import Hypers, Leaf, Sum, Tree, Wrapped, ordered, short

Change = Callable[[str, str, float], float]
"""From the loss or form that has a number, its name there and its value, to a new value."""


def parameters(loss: str | Tree) -> dict[str, float]:
    """The numbers of a loss by name.

    A hyper-parameter has its own name, and the weight of a term of a sum has the name of the term.
    A name that occurs twice is written with that of its loss before it.

    >>> parameters("nce + 0.1*rce")
    {'nce': 1.0, 'rce': 0.1, 'A': -4.0}
    >>> parameters("agce + 2*aul")
    {'agce': 1.0, 'agce__a': 0.6, 'agce__q': 0.6, 'aul': 2.0, 'aul__a': 5.5, 'aul__q': 3.0}
    """
    return _named(_tree(loss))[0]


def with_parameters(loss: str | Tree, values: Mapping[str, Any]) -> str:
    """The text of a loss with other numbers.

    Args:
        loss: the loss.
        values: the new numbers by their names in `parameters`; ``alpha`` and ``beta`` also stand
            for the weights of a sum of two terms, the active one first, as the papers write it.

    >>> with_parameters("nce + rce", {"alpha": 10, "beta": 0.1, "A": -6})
    '10*nce + 0.1*rce(A=-6)'
    """
    tree = _tree(loss)
    known, names = _named(tree)
    terms = list(_weights(tree)) if isinstance(tree, Sum) else []
    aliases = dict(zip(("alpha", "beta"), terms, strict=True)) if len(terms) == 2 else {}
    changed: dict[tuple[str, str], float] = {}
    for name, value in values.items():
        key = names.get(name) or (aliases.get(name) if name not in known else None)
        if key is None:
            has = ", ".join(known) or "no numbers"
            raise UsageError(
                f"the loss {short(tree)!r} has no parameter {name!r}{nearest(name, known)}; "
                f"it has {has}"
            )
        if not isinstance(value, numbers.Real) or isinstance(value, bool):
            raise UsageTypeError(f"{short(tree)}: {name} must be a number; it was {value!r}")
        changed[key] = float(value)
    text = short(_mapped(tree, lambda owner, name, value: changed.get((owner, name), value)))
    read(text)  # checks the range of each
    return text


def _tree(loss: str | Tree) -> Tree:
    return ordered(read(loss) if isinstance(loss, str) else loss)


def _named(tree: Tree) -> tuple[dict[str, float], dict[str, tuple[str, str]]]:
    """Every number by its name, and of every name, the long ones too, which number it is."""
    found: list[tuple[tuple[str, str], float]] = []

    def note(owner: str, name: str, value: float) -> float:
        found.append(((owner, name), value))
        return value

    _mapped(tree, note)
    occurs = Counter(key for key, _ in found)
    shared = Counter(name or owner for owner, name in occurs)
    values: dict[str, float] = {}
    names: dict[str, tuple[str, str]] = {}
    for (owner, name), value in found:
        if occurs[owner, name] > 1:  # such as both gammas of fl(gamma=1) + fl(gamma=2)
            continue
        long = f"{owner}__{name}" if name else owner
        plain = name or owner
        key = plain if shared[plain] == 1 else long
        values[key] = value
        names |= {key: (owner, name), long: (owner, name)}
    return values, names


def _mapped(tree: Tree, change: Change) -> Tree:
    def hypers(owner: str, given: Hypers) -> Hypers:
        return tuple((name, change(owner, name, value)) for name, value in given)

    match tree:
        case Leaf(name=name, hyper=hyper):
            return Leaf(name, hypers(name, hyper))
        case Wrapped(word=word, inner=inner, hyper=hyper):
            return Wrapped(word, _mapped(inner, change), hypers(word, hyper))
        case Sum(terms=terms):
            return Sum(
                tuple((change(_name(t), "", factor), _mapped(t, change)) for factor, t in terms)
            )


def _weights(tree: Sum) -> Mapping[tuple[str, str], float]:
    return {(_name(term), ""): factor for factor, term in tree.terms}


def _name(term: Tree) -> str:
    match term:
        case Leaf(name=name):
            return name
        case Wrapped(word=word):
            return word
    raise AssertionError("a sum has no sum among its terms")
