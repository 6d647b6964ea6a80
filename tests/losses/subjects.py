"""What the tests of the losses run over: the registry, and from it everything that follows.

A loss that is added to the registry is a subject of every test here without a line of its own.
"""

from __future__ import annotations

import torch
from torch import Tensor, exp

import noiseproof
from noiseproof.losses import Hyper, SeparableLoss


class Brier(SeparableLoss, name="brier", formula="sum_k (p_k - q_k)^2", reference="a test"):
    """The squared distance to the label: the one separable loss here with an ``other`` part."""

    @staticmethod
    def summand(p: Tensor, q: Tensor) -> Tensor:
        return (p - q) ** 2

    @staticmethod
    def target(log_p: Tensor) -> Tensor:
        return torch.expm1(log_p) ** 2

    @staticmethod
    def other(log_p: Tensor) -> Tensor:
        return exp(2 * log_p)


def inside(hyper: Hyper, value: float) -> bool:
    try:
        hyper.check(value, "")
    except ValueError:
        return False
    return True


def _variants(name: str, hyper: dict[str, Hyper]) -> list[str]:
    """A loss with each hyper-parameter in turn at values over its range, the ends included."""
    values = (-9.21, 0.0, 0.3, 1.0, 3.0)
    return [
        f"{name}({h.name}={value})"
        for h in hyper.values()
        for value in values
        if inside(h, value) and value != h.default
    ]


ENTRIES = noiseproof.losses.registry()
NAMES = list(ENTRIES)
VARIANTS = [v for n, e in ENTRIES.items() for v in _variants(n, dict(e.hyperparameters))]

APL = ["nce + mae", "nce + rce", "nfl + mae", "nfl + rce", "ngce + mae", "ngce + rce"]
SUMS = [*APL, "nfl + nce", "mae + rce", "10*nce + 0.1*rce", "2*ce - 0.5*mae + brier"]
JOINT = ["5*nce + 5*nnce", "nfl + nnfl", "nce + amse(a=20)", "nce + 4*agce(a=6, q=1.5)"]
WRAPPED = [
    "normalize(sce)",
    "normalize(brier)",
    "normalize(2*fl + mae)",
    "normalize(brier) + nce",
    "normalize(bitempered)",
    "symmetrize(fl)",
    "symmetrize(brier) + unhinged",
    "negative(gce)",
]
# Losses of another prediction, which may tell logits apart that have one softmax.
MAPPED = [
    "0.01*epsilon_softmax(ce, m=100) + 5*mae",
    "logit_clip(nce, tau=2)",
    "bootstrap(ce, beta=0.8)",
    "bootstrap(nce + mae, beta=0.5, hard=1)",
    "softplus(ldr(lam=10))",
    "normalize(logit_clip(ce + brier, tau=3))",
]

SUBJECTS = [*NAMES, *SUMS, *JOINT, *WRAPPED]
ALL = [*SUBJECTS, *VARIANTS]
EVERY = [*ALL, *MAPPED]  # for what holds of any loss at all


def is_symmetric(text: str) -> bool:
    low, high = noiseproof.losses.class_sum_range(noiseproof.parse(text), 10)
    return high - low <= 1e-9 * max(1.0, abs(high))


ROBUST = [text for text in ALL if is_symmetric(text)]
