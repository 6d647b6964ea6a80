"""From a loss to what tables call it, and where they have it."""

from __future__ import annotations

import functools
import re

from .. import syntax
from .._errors import UsageError
from ._auto import AUTO, LR, is_auto
from ._lookup import known_classes, method_named, setting_of
from ._methods import METHODS, NLNL
from ._setting import Setting


@functools.lru_cache(maxsize=4096)
def label_of(
    loss: str,
    dataset: str,
    *,
    noise: str = "symmetric",
    rate: float = 0.0,
    protocol: str = "paper",
    shrink: float = 0.0,
    lr: float = LR,
    optimizer: str = "sgd",
    own_data: bool = False,
) -> str:
    """What a table calls a loss, given by its canonical text.

    The loss of auto with a penalty of its kind is auto. Else it is the label of the method that has
    this loss on this data set; any other loss is called by its text, with the names in capitals. A
    weight of 1 is then written where the text without it would be a method's with other weights.

    >>> label_of("nce + 100*rce(A=-4)", "mnist"), label_of("nce + rce(A=-4)", "cifar100")
    ('NCE+RCE', '1*NCE+1*RCE')
    """
    classes = None if own_data else known_classes(dataset)
    if shrink and is_auto(loss, classes, lr, optimizer):
        return METHODS[AUTO].label
    found = _labels(dataset, noise, rate, protocol).get(loss)
    if found is not None:
        return found
    try:
        tree = syntax.read(loss, known_only=False)
    except UsageError:  # a function of the user's, by its name
        return loss
    text = syntax.short(tree)
    if method_named(text) is not None:  # the method has other numbers: write these out
        if isinstance(tree, syntax.Sum):
            text = "+".join(f"{syntax.number(c)}*{syntax.short(term)}" for c, term in tree.terms)
        else:
            text = syntax.canonical(tree) if "(" in syntax.canonical(tree) else f"1*{text}"
    return _NAME.sub(lambda m: _CAPITALS.get(m[0], m[0]), text.replace(" ", ""))


_NAME = re.compile(r"\b[a-z]\w*(?![\w=])")
_CAPITALS = {name: m.label for name, m in METHODS.items() if name.isalpha() and m.label.isalpha()}


def _labels(dataset: str, noise: str, rate: float, protocol: str) -> dict[str, str]:
    """The label of each method by the canonical text of its loss, under one condition."""
    settings: list[Setting | None] = []
    for name in METHODS:
        try:
            settings.append(setting_of(name, dataset, noise=noise, rate=rate, protocol=protocol))
        except UsageError:
            settings.append(None)
    return _labels_with(tuple(settings))


@functools.lru_cache(maxsize=256)
def _labels_with(settings: tuple[Setting | None, ...]) -> dict[str, str]:
    """The same, given the setting of each method; hundreds of rates share them."""
    found: dict[str, str] = {}
    for (name, method), setting in zip(METHODS.items(), settings, strict=True):
        try:
            text = NLNL if name == NLNL else syntax.canonical(setting.loss if setting else name)
        except UsageError:
            continue
        found.setdefault(text, method.label)
    return found


def rank_of(label: str) -> tuple[int, str]:
    """Sorts labels as the paper's tables have them, those of no method last."""
    return _RANKS.get(label, len(_RANKS)), label


_RANKS = {method.label: i for i, method in enumerate(METHODS.values())}

_ACTIVE = ("nce", "nfl", "ngce", "fl_detached")
_PASSIVE = ("mae", "rce")


def is_active_passive(loss: str) -> bool:
    """Whether a loss, by its text or label, is one robust active loss plus one robust passive one.

    >>> is_active_passive("NCE+RCE"), is_active_passive("10*nce + rce"), is_active_passive("ANL-CE")
    (True, True, False)
    """
    try:
        tree = syntax.read(loss)
    except UsageError:
        return False
    names = [leaf.name for leaf in syntax.leaves(tree)]
    return (
        isinstance(tree, syntax.Sum)
        and len(names) == 2
        and sum(name in _ACTIVE for name in names) == 1
        and sum(name in _PASSIVE for name in names) == 1
    )
