"""What things are called in a report, and the colour and dash that a loss has everywhere in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

DATASETS = {
    "digits": "Digits",
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "webvision": "WebVision-mini",
    "clothing1m": "Clothing1M",
}
PERCENT = "\N{NO-BREAK SPACE}%"
TIMES = "\N{MULTIPLICATION SIGN}"  # before a factor
CLEAN = "none"
DRAWN = ("symmetric", "asymmetric", "pairflip", "instance")  # noise that has a rate
APL = ("NFL+MAE", "NFL+RCE", "NCE+MAE", "NCE+RCE", "NGCE+MAE", "NGCE+RCE")


def is_apl(method: str) -> bool:
    """Whether a method is a robust active loss plus a robust passive one, whatever the weights.

    >>> is_apl("NCE+RCE"), is_apl("10*NCE+0.1*RCE(A=-4)"), is_apl("NFL+NCE")
    (True, True, False)
    """
    return re.sub(r"[\d.]+\*|\([^()]*\)", "", method) in APL


def dataset_name(dataset: str) -> str:
    return DATASETS.get(dataset, dataset)


def noise_name(noise: str, rate: float) -> str:
    """The noise of a cell in words.

    >>> noise_name("symmetric", 0.4), noise_name("none", 0), noise_name("cifar10n-worst", 0)
    ('symmetric 0.4', 'clean', 'CIFAR-10N worst')
    """
    if noise == CLEAN:
        return "clean"
    if noise in DRAWN:
        return f"{noise} {rate:g}"
    return noise.replace("cifar10n-", "CIFAR-10N ").replace("cifar100n", "CIFAR-100N")


@dataclass(frozen=True)
class Style:
    """How a line is drawn: one colour for each theme, and a dash."""

    light: str
    dark: str
    dash: tuple[int, ...] = ()


# A hue for each family, a dash for each member: told apart also by those who do not see the hues.
_GREY = ("#5c6470", "#b3bbc7")
_PINK = ("#a8478c", "#e795cb")
_OCHRE = ("#946b00", "#e3bb47")
_BROWN = ("#7a4a2b", "#cf9f7d")
_SKY = ("#2b86bd", "#71c5f3")
_GREEN = ("#00795a", "#3fcaa0")
_BLUE = ("#0a4fa3", "#7db2ff")
_RED = ("#c2470f", "#ff9566")
_VIOLET = ("#6546b0", "#b8a5ff")
_BLACK = ("#14171c", "#ffffff")
_WINE = ("#8d1442", "#f2799f")
_OLIVE = ("#5d7a00", "#b9d65c")
_DASHED, _DOTTED, _MIXED = (6, 3), (2, 2), (8, 3, 2, 3)
_KNOWN = {
    "CE": Style(*_GREY), "FL": Style(*_GREY, _DASHED),
    "GCE": Style(*_PINK), "SCE": Style(*_OCHRE), "NLNL": Style(*_BROWN),
    "MAE": Style(*_SKY), "RCE": Style(*_SKY, _DASHED),
    "NMAE": Style(*_SKY, _DOTTED), "NRCE": Style(*_SKY, (1, 3)), "MAE+RCE": Style(*_SKY, _MIXED),
    "NCE": Style(*_GREEN), "NFL": Style(*_GREEN, _DASHED),
    "NGCE": Style(*_GREEN, _DOTTED), "NFL+NCE": Style(*_GREEN, _MIXED),
    "NCE+RCE": Style(*_BLUE), "NCE+MAE": Style(*_BLUE, _DASHED),
    "NFL+RCE": Style(*_RED), "NFL+MAE": Style(*_RED, _DASHED),
    "NGCE+RCE": Style(*_VIOLET), "NGCE+MAE": Style(*_VIOLET, _DASHED),
    "JAL-CE": Style(*_BLACK), "JAL-FL": Style(*_BLACK, _DASHED),
    "ANL-CE": Style(*_WINE), "ANL-FL": Style(*_WINE, _DASHED),
    "CEeps+MAE": Style(*_OLIVE), "FLeps+MAE": Style(*_OLIVE, _DASHED),
    # of the scaling figure: the factor, from light to strong
    f"{TIMES}1": Style("#5c6470", "#b3bbc7", _DOTTED), f"{TIMES}2": Style("#2b86bd", "#71c5f3"),
    f"{TIMES}5": Style("#946b00", "#e3bb47", _DASHED), f"{TIMES}10": Style("#c2470f", "#ff9566"),
}  # fmt: skip
_REST = (_OCHRE, _VIOLET, _WINE, _OLIVE, _BROWN, _PINK, _BLUE, _RED, _GREEN)
_DASHES = (_DOTTED, _MIXED, (4, 2), (1, 3), (10, 2))


def styles(labels: Iterable[tuple[str, str]]) -> dict[str, Style]:
    """The style of each label, given with its method: the method's, with a dash of its own where
    a method has several labels; those without a colour of their own share out the rest.
    """
    found: dict[str, Style] = {}
    bases = dict(_KNOWN)
    labels_of: dict[str, int] = {}
    for label, method in labels:
        if label in found:
            continue
        if method not in bases:
            turn, hue = divmod(len(bases) - len(_KNOWN), len(_REST))
            bases[method] = Style(*_REST[hue], _DASHES[turn % len(_DASHES)])
        base, nth = bases[method], labels_of.get(method, 0)
        dash = base.dash if nth == 0 else _DASHES[(nth - 1) % len(_DASHES)]
        found[label] = Style(base.light, base.dark, dash)
        labels_of[method] = nth + 1
    return found
