"""Words of a report: the names of losses in full, and long lists cut short."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from ..catalogue import GIVEN, dataset_title, noise_group, noise_title
from ..results import published
from ._styles import PERCENT

MAX_LISTED = 6
JudgedOn = Literal["test", "held-out", "both"]
"""what accuracies are of: a test set, labels that were held out, or of some runs one and of some
the other"""
ACCURACY_WORDS: dict[JudgedOn, str] = {
    "test": "test accuracy",
    "held-out": "accuracy on held-out labels",
    "both": "accuracy on a test set or on held-out labels",
}
HELD_OUT_NOTE = (
    "Held-out labels are a part of the labels as given that was not trained on, as noisy as the "
    f"rest. Where some are wrong, no classifier can reach 100{PERCENT} on them: they compare the "
    "losses, and the level is not the true accuracy. Where the mistakes favour some classes, they "
    "may favour a loss that repeats the mistakes."
)
_FULL_NAMES = {
    "auto": "one rule for any noise",
    "CE": "cross entropy",
    "FL": "focal loss",
    "GCE": "generalized cross entropy",
    "NLNL": "negative learning for noisy labels",
    "SCE": "symmetric cross entropy",
    "MAE": "mean absolute error",
    "RCE": "reverse cross entropy",
    "NCE": "normalized cross entropy",
    "NFL": "normalized focal loss",
    "NGCE": "normalized generalized cross entropy",
    "NMAE": "normalized mean absolute error",
    "NRCE": "normalized reverse cross entropy",
    "AGCE": "asymmetric generalized cross entropy",
    "AUL": "asymmetric unhinged loss",
    "AEL": "asymmetric exponential loss",
    "JS": "Jensen-Shannon divergence",
    "LDR-KL": "label-distributionally robust loss with a KL divergence",
    "CEeps": "cross entropy of the epsilon-softmax",
    "FLeps": "focal loss of the epsilon-softmax",
    "ANL-CE": "active negative loss with cross entropy",
    "ANL-FL": "active negative loss with focal loss",
    "JAL-CE": "joint asymmetric loss with cross entropy",
    "JAL-FL": "joint asymmetric loss with focal loss",
}
_NAME = "|".join(sorted(map(re.escape, _FULL_NAMES), key=len, reverse=True))
_TERM = rf"(?:[\d.]+\*)?(?:{_NAME})"
# What a user's own loss is called stands for nothing that we know.
_LOSS = re.compile(rf"(?<![\w*+.-]){_TERM}(?:\+{_TERM})*(?![\w*+(-]| \([^)]*\bown\b)")


def full_names(label: str) -> dict[str, str]:
    """The names that a loss's label has, each with the words that it stands for.

    >>> full_names("NCE+RCE")
    {'NCE': 'normalized cross entropy', 'RCE': 'reverse cross entropy'}
    """
    if not _LOSS.fullmatch(label):
        return {}
    return {name: _FULL_NAMES[name] for name in re.findall(_NAME, label)}


def spell_out(sentences: Iterable[str]) -> list[str]:
    """Sentences in which each loss is named in full where it comes first.

    >>> spell_out(["CE loses to NCE+RCE.", "CE is last."])
    ... # doctest: +NORMALIZE_WHITESPACE
    ['Cross entropy (CE) loses to NCE+RCE (normalized cross entropy + reverse cross entropy).',
     'CE is last.']
    """
    known: set[str] = set()

    def name_in_full(match: re.Match[str]) -> str:
        label, names = match[0], full_names(match[0])
        new = {name: words for name, words in names.items() if name not in known}
        known.update(names)
        if not new:
            return label
        if label not in names and len(new) < len(names):
            return f"{label} ({', '.join(f'{name}: {words}' for name, words in new.items())})"
        words = " + ".join(names.values())
        in_full = f"{words} ({label})" if label in names else f"{label} ({words})"
        return in_full[0].upper() + in_full[1:] if match.start() == 0 else in_full

    return [_LOSS.sub(name_in_full, sentence) for sentence in sentences]


def noise_words(noise: str, rate: float | None = None, wrong: float | None = None) -> str:
    """A noise in a title; of labels as given, the percentage that is wrong or that nobody knows it.

    >>> noise_words("symmetric", 0.4), noise_words("given"), noise_words("given", wrong=19.75)
    ('symmetric 0.4', 'labels as given, rate unknown', 'labels as given, 19.8\xa0% wrong')
    """
    title = noise_title(noise, rate)
    if noise != GIVEN:
        return title
    return f"{title}, rate unknown" if wrong is None else f"{title}, {wrong:.1f}{PERCENT} wrong"


def where(dataset: str, noise: str, rate: float | None = None, wrong: float | None = None) -> str:
    """A condition in a sentence, after "on".

    >>> where("digits", "symmetric", 0.4), where("fruit", "given")
    ('Digits with symmetric noise of 0.4', 'fruit with labels as given, rate unknown')
    """
    group, words = noise_group(noise), noise_words(noise, wrong=wrong)
    if group == "drawn":
        words = f"{words} noise" + ("" if rate is None else f" of {rate:g}")
    elif group != "given":
        words = f"{words} labels"
    return f"{dataset_title(dataset)} with {words}"


@functools.cache
def protocol_title(protocol: str, dataset: str) -> str:
    """Whose settings a protocol has: the paper has none for a data set that it did not use.

    >>> protocol_title("paper", "mnist"), protocol_title("paper", "digits")
    ('paper', 'defaults of this package')
    """
    in_paper = any(p.dataset == dataset for p in published() if p.table.startswith("table-"))
    return "defaults of this package" if protocol == "paper" and not in_paper else protocol


def listed(items: Sequence[object], more: str = "more") -> str:
    """Items with commas, no more than a line can hold.

    >>> listed(["a", "b"]), listed(range(9))
    ('a, b', '0, 1, 2, 3, 4, 5 and 3 more')
    """
    shown = ", ".join(map(str, items[:MAX_LISTED]))
    rest = len(items) - MAX_LISTED
    return shown if rest <= 0 else f"{shown} and {rest} {more}"


def seeds_listed(seeds: Sequence[int]) -> str:
    """Seeds, as a range where there are many in a row.

    >>> seeds_listed([0, 1, 2]), seeds_listed(range(50))
    ('0, 1, 2', '0 to 49')
    """
    in_a_row = len(seeds) > MAX_LISTED and seeds[-1] - seeds[0] == len(seeds) - 1
    return f"{seeds[0]} to {seeds[-1]}" if in_a_row else listed(seeds)
