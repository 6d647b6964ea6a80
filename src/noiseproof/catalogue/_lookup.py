"""From what a user calls a loss to what it is trained with.

A method is asked for by its name or by its label, in any case and with its parts in any order:
``nce+rce``, ``RCE + NCE``. A text with numbers in it is no method, but a loss as it stands.
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from difflib import get_close_matches

from .. import syntax
from .._errors import UsageError
from .._hints import nearest
from ._auto import AUTO, auto_setting
from ._datasets import DATASETS, protocol_of
from ._methods import METHODS, NLNL, PAPER
from ._noises import CLEAN
from ._setting import Setting


def _key(name: str) -> str:
    """A name without what does not matter: blanks, case, the order of its parts."""
    bare = "".join(name.split()).lower()
    return "+".join(sorted(bare.replace("_", "-").split("+")))


_BY_KEY = {_key(name): name for name in METHODS} | {
    _key(method.label): name for name, method in METHODS.items()
}


def method_named(text: str) -> str | None:
    """The method that a text names, or None: a text of one's own.

    >>> method_named("RCE + NCE"), method_named("10*nce + 0.1*rce")
    ('nce+rce', None)
    """
    if text.strip().lower() in syntax.SIGNATURES and syntax.SIGNATURES[text.strip().lower()].user:
        return None  # a loss that the user declared goes before a method of that name
    return _BY_KEY.get(_key(text))


def setting_of(
    method: str, dataset: str, *, noise: str, rate: float | None, protocol: str = "paper"
) -> Setting | None:
    """What a method was trained with on a data set, or None where nothing was published.

    Raises:
        UsageError: it was published for other rates of this noise.
    """
    entry = METHODS[method]
    dataset = DATASETS[dataset].like or dataset if dataset in DATASETS else dataset
    if protocol == "authors" and entry.authors is None:
        raise UsageError(
            f"the code of the paper's authors has no {method}: give protocol='paper', and "
            "variant='authors' for the labels that it draws"
        )
    if noise == CLEAN:  # settings that follow the rate were published for clean labels as rate 0
        noise, rate = "symmetric", 0.0
    found = (entry.authors or {}).get(dataset) if protocol == "authors" else None
    found = found or entry.paper.get(dataset)
    if found is None and dataset not in DATASETS and not _is_text(method):
        return _borrowed(method, noise, rate)
    if found is None or isinstance(found, Setting):
        return found
    by_noise = found.get(noise, found.get("*"))
    if by_noise is None or isinstance(by_noise, Setting):
        return by_noise
    if rate is None or rate not in by_noise:
        known = ", ".join(f"{r:g}" for r in by_noise)
        given = "none" if rate is None else f"{rate:g}"
        raise UsageError(
            f"{method} was published for {noise} noise of rate {known}; rate was {given}"
        )
    return by_noise[rate]


_LENDER = "cifar10"


def _borrowed(method: str, noise: str, rate: float | None) -> Setting | None:
    """For data of one's own: the loss that was published for CIFAR-10, and its weights alone."""
    try:
        found = setting_of(method, _LENDER, noise=noise, rate=rate)
    except UsageError:
        return None
    if found is None:
        return None
    note = (
        f"{METHODS[method].label} has no settings for this data: its weights for CIFAR-10 are used"
    )
    return replace(found, l1=0.0, weight_decay=None, note=note + (", no L1" if found.l1 else ""))


def known_classes(dataset: str) -> int | None:
    """The number of classes of a data set by name; None of data of one's own."""
    return DATASETS[dataset].num_classes if dataset in DATASETS else None


@functools.cache
def _is_text(method: str) -> bool:
    """Whether the name of a method can be read as a loss, with weights of 1."""
    try:
        syntax.read(method)
    except UsageError:
        return False
    return True


def resolve_loss(
    text: str,
    dataset: str,
    *,
    noise: str,
    rate: float | None,
    protocol: str = "paper",
    classes: int | None = None,
) -> Setting:
    """The loss that a text means on a data set, its text canonical.

    The name of a method brings its published settings; where there are none for the data set, and
    for any other text, the text is read as it stands. What ``auto`` means follows from the number
    of classes, which has to be given for a data set that is not listed.
    """
    name = method_named(text)
    if name == NLNL:
        return Setting(NLNL, PAPER)
    if name == AUTO:
        classes = known_classes(dataset) if classes is None else classes
        if classes is None:
            raise UsageError(f"auto needs to know how many classes {dataset} has")
        return auto_setting(classes, protocol_of(protocol, dataset).lr)
    unpublished: UsageError | None = None
    if name is not None:
        if protocol == "authors" and METHODS[name].authors is None:
            setting_of(name, dataset, noise=noise, rate=rate, protocol=protocol)  # says so
        try:
            found = setting_of(name, dataset, noise=noise, rate=rate, protocol=protocol)
        except UsageError as error:
            found, unpublished = None, error
        if found is not None:
            return replace(found, loss=syntax.canonical(found.loss))
    try:
        return Setting(syntax.canonical(text), "")
    except UsageError as error:
        if name is not None:
            raise unpublished or no_settings(name, dataset, noise) from None
        words = re.findall(r"[\w-]+", text.lower())
        alone = next((name for name in (AUTO, NLNL) if name in words), None)
        if alone is not None:
            raise UsageError(
                f"{alone} takes no numbers and is no part of a sum: give it alone, --loss {alone}"
            ) from None
        meant = get_close_matches(text.lower(), (*syntax.SIGNATURES, AUTO, NLNL), n=1)
        if meant in ([AUTO], [NLNL]):
            raise UsageError(f"unknown loss {text!r} (did you mean {meant[0]!r}?)") from None
        hint = nearest(text.lower(), METHODS)
        if "-" in text and hint:  # a method that is no sum of losses, misspelt
            names = ", ".join(METHODS)
            raise UsageError(f"unknown loss {text!r}{hint}; methods are {names}") from None
        raise error


def no_text(method: str) -> UsageError:
    """The error for a method whose name cannot be read as a loss."""
    what = (
        "one setting of loss, penalty and average, from the number of classes"
        if method == AUTO
        else "a published loss with settings for each data set"
    )
    return UsageError(
        f"{method} is {what}: noiseproof train --dataset cifar10 --loss {method}, or "
        f"noiseproof.recipe({method!r}, 'cifar10')"
    )


def no_settings(method: str, dataset: str, noise: str) -> UsageError:
    """The error for a method that has no settings for a data set and cannot do without."""
    entry = METHODS[method]
    has = ", ".join(sorted(entry.paper)) or "no data set"
    return UsageError(
        f"{method} has no published settings for {dataset!r} ({noise}); it has for {has}"
    )
