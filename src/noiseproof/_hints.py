"""A guess at what a misspelt name was meant to be."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from ._errors import UsageError


def nearest(name: str, known: Iterable[str]) -> str:
    """`` (did you mean 'nce'?)`` where one of the known names is close, else nothing.

    >>> nearest("resnet43", ["cnn8", "resnet34"])
    " (did you mean 'resnet34'?)"
    """
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def match_name(name: str, known: Iterable[str], what: str) -> str:
    """The known name that was meant, whatever its case, blanks, hyphens and underscores.

    >>> match_name("CIFAR-10", ["mnist", "cifar10"], "data set")
    'cifar10'
    """
    bare = {_bare(one): one for one in known}
    found = bare.get(_bare(name))
    if found is None:
        names = ", ".join(bare.values())
        hint = nearest(str(name).lower(), bare.values())
        raise UsageError(f"unknown {what} {name!r}{hint}; the known ones are {names}")
    return found


def one_of(name: str, value: object, known: Sequence[str]) -> str:
    """The value of a setting that was meant, in any case: torch's own name is AdamW.

    >>> one_of("optimizer", "AdamW", ["sgd", "adamw"])
    'adamw'
    """
    found = value.lower() if isinstance(value, str) else value
    if found not in known:
        hint = nearest(str(found), known)
        raise UsageError(f"{name} is one of {', '.join(known)}; it was {value!r}{hint}")
    return str(found)


def _bare(name: str) -> str:
    return re.sub(r"[-_ ]", "", str(name).lower())
