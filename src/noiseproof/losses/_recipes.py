"""Published settings as data: which losses a paper used on which data set, and how trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .._hints import nearest
from ._module import Loss
from ._parse import parse
from ._prediction import log_softmax
from ._wrappers import register

_PAPER = "Ma et al., ICML 2020"
_ANL = "Ye et al., NeurIPS 2023"
_JAL = "Wang et al., ICCV 2025"
_ALF = "Zhou et al., ICML 2021"
_EPS = "Wang et al., NeurIPS 2024"
_GJS = "Englesson and Azizpour, NeurIPS 2021"
_APL: dict[str, tuple[float, float]] = {"mnist": (1, 100), "cifar10": (1, 1), "cifar100": (10, 0.1)}


@dataclass(frozen=True)
class Recipe:
    """A loss with what its paper wants of training beside it."""

    name: str
    dataset: str
    loss: Loss
    l1: float  # the weight of the L1 norm of all parameters, added to the loss
    weight_decay: float | None  # in place of the protocol's; None leaves that as it is
    source: str


@dataclass(frozen=True)
class _Row:
    text: str
    source: str
    l1: float = 0.0
    weight_decay: float | None = None


def _table() -> dict[tuple[str, str], _Row]:
    rows: dict[tuple[str, str], _Row] = {}
    for dataset in ("mnist", "cifar10", "cifar100"):
        alpha, beta = _APL[dataset]
        for name in ("ce", "fl", "gce"):
            rows[name, dataset] = _Row(name, _PAPER)
        for active in ("nce", "nfl"):
            for passive in ("mae", "rce"):
                text = f"{alpha}*{active} + {beta}*{passive}"
                rows[f"{active}+{passive}", dataset] = _Row(text, _PAPER)
    for passive in ("mae", "rce"):
        rows[f"ngce+{passive}", "cifar10"] = _Row(f"ngce + {passive}", _PAPER)
    for dataset, alpha, beta in (
        ("mnist", 0.01, 1), ("cifar10", 0.1, 1), ("cifar100", 6, 0.1), ("webvision", 10, 1),
    ):  # fmt: skip
        rows["sce", dataset] = _Row(f"sce(alpha={alpha}, beta={beta})", _PAPER)
    rows["ce", "webvision"] = _Row("ce", _PAPER)
    rows["gce", "webvision"] = _Row("gce", _PAPER)
    rows["nce+rce", "webvision"] = _Row("50*nce + 0.1*rce", _PAPER)
    rows["nce+mae", "webvision"] = _Row("50*nce + mae", _PAPER)
    for dataset, alpha, beta, l1 in (
        ("mnist", 1, 1, 1e-6),
        ("cifar10", 5, 5, 5e-5),
        ("cifar100", 10, 1, 5e-7),
        ("webvision", 20, 1, 5e-6),
    ):
        rows["anl-ce", dataset] = _Row(f"{alpha}*nce + {beta}*nnce", _ANL, l1, 0.0)
        rows["anl-fl", dataset] = _Row(f"{alpha}*nfl + {beta}*nnfl", _ANL, l1, 0.0)
    for dataset, alpha, a, l1, decay in (
        ("cifar10", 1, 30, 5e-5, 0.0),
        ("cifar100", 5, 20, 5e-6, 0.0),
        ("webvision", 50, 30, 0.0, 3e-5),
    ):
        rows["jal-ce", dataset] = _Row(f"{alpha}*nce + amse(a={a})", _JAL, l1, decay)
        rows["jal-fl", dataset] = _Row(f"{alpha}*nfl + amse(a={a})", _JAL, l1, decay)
    for name, text in (
        ("agce", "agce(a=0.6, q=0.6)"),
        ("aul", "aul(a=5.5, q=3)"),
        ("ael", "ael(a=2.5)"),
        ("nce+agce", "nce + 4*agce(a=6, q=1.5)"),
        ("nce+aul", "nce + 4*aul(a=6.3, q=1.5)"),
        ("nce+ael", "nce + 4*ael(a=5)"),
    ):
        rows[name, "cifar10"] = _Row(text, _ALF)
    for name, text in (
        ("nce+agce", "10*nce + 0.1*agce(a=1.8, q=3)"),
        ("nce+aul", "10*nce + 0.015*aul(a=6, q=3)"),
        ("nce+ael", "10*nce + 0.1*ael(a=1.5)"),
    ):
        rows[name, "cifar100"] = _Row(text, _ALF)
    return rows


@register
def fl_held(logits: Tensor) -> Tensor:
    """The focal loss (gamma 0.5) of the paper's authors, whose factor (1 - p)^gamma is a constant
    to the gradient.
    """
    log_p = log_softmax(logits)
    return -torch.sqrt(-torch.expm1(log_p.detach())) * log_p


def _authors_table() -> dict[tuple[str, str], _Row]:
    """What the code of the paper's authors computes where it differs from the paper."""
    rce = "rce(A=-9.210340371976182)"  # the one-hot label is clamped at 1e-4
    rows: dict[tuple[str, str], _Row] = {}
    for dataset, alpha, beta_rce, beta_mae, rho in (
        ("mnist", 1, 10, 10, 0.1), ("cifar10", 1, 1, 1, 0.1), ("cifar100", 10, 0.1, 1, 0.7),
    ):  # fmt: skip
        actives = {"nce": "nce", "nfl": "normalize(fl_held)", "ngce": f"ngce(rho={rho})"}
        for active, text in actives.items():
            rows[f"{active}+mae", dataset] = _Row(f"{alpha}*{text} + {beta_mae / 2}*mae", _PAPER)
            rows[f"{active}+rce", dataset] = _Row(f"{alpha}*{text} + {beta_rce}*{rce}", _PAPER)
        rows["fl", dataset] = _Row("fl_held", _PAPER)
        rows["mae", dataset] = _Row("0.5*mae", _PAPER)
        rows["rce", dataset] = _Row(rce, _PAPER)
    for dataset, weights in {"mnist": (0.01, 1), "cifar10": (0.1, 1), "cifar100": (6, 0.1)}.items():
        rows["sce", dataset] = _Row(f"{weights[0]}*ce + {weights[1]}*{rce}", _PAPER)
    return rows


# Where the setting follows the noise: by data set and kind, then by rate.
_JS_PI = {
    ("cifar10", "symmetric"): {0.0: 0.1, 0.2: 0.7, 0.4: 0.7, 0.6: 0.9, 0.8: 0.9},
    ("cifar100", "symmetric"): {0.0: 0.1, 0.2: 0.1, 0.4: 0.3, 0.6: 0.5, 0.8: 0.3},
}
_EPSILON_ALPHA = {
    ("cifar100", "symmetric"): {0.0: 0.1, 0.2: 0.05, 0.4: 0.03, 0.6: 0.0125, 0.8: 0.0075},
    ("cifar100", "asymmetric"): {0.1: 0.015, 0.2: 0.007, 0.3: 0.005, 0.4: 0.004},
}


def _by_noise(name: str, dataset: str, noise: str, rate: float | None) -> _Row | None:
    if name == "js" and (dataset, noise) in _JS_PI:
        pi = _at_rate(_JS_PI[dataset, noise], name, noise, rate)
        return _Row(f"js(pi={pi})", _GJS)
    if name == "epsilon-softmax" and dataset == "cifar10":
        alpha, m = (0.01, 1e5) if noise == "symmetric" else (0.02, 1e3)
        return _Row(f"{alpha}*epsilon_softmax(ce, m={m}) + 5*mae", _EPS)
    if name == "epsilon-softmax" and (dataset, noise) in _EPSILON_ALPHA:
        alpha = _at_rate(_EPSILON_ALPHA[dataset, noise], name, noise, rate)
        m = 1e4 if noise == "symmetric" else 1e2
        return _Row(f"{alpha}*epsilon_softmax(ce, m={m}) + mae", _EPS)
    return None


def _at_rate(by_rate: dict[float, float], name: str, noise: str, rate: float | None) -> float:
    if rate not in by_rate:
        known = ", ".join(f"{r:g}" for r in by_rate)
        given = "none" if rate is None else f"{rate:g}"
        raise ValueError(
            f"{name} was published for {noise} noise of rate {known}; rate was {given}"
        )
    return by_rate[rate]


RECIPES = _table()
AUTHORS = _authors_table()


def recipe(
    name: str,
    dataset: str,
    *,
    noise: str = "symmetric",
    rate: float | None = None,
    protocol: str = "paper",
    **keywords: Any,
) -> Recipe:
    """A published loss with its published settings for a data set.

    Args:
        name: ``"anl-ce"``, ``"jal-fl"``, ``"nce+agce"``, ``"nce+rce"``, ...
        dataset: ``"mnist"``, ``"cifar10"``, ``"cifar100"`` or ``"webvision"``.
        noise: ``"symmetric"`` or ``"asymmetric"``, for a recipe that depends on it.
        rate: the noise rate, for a recipe that depends on it (``js``, ``epsilon-softmax``).
        protocol: ``"paper"``, or ``"authors"`` for what the code of the paper's authors computes
            where it differs: A = -9.21, half of MAE, FL's factor without a gradient, other weights.
        keywords: ``reduction`` and so on, of the loss.

    >>> anl = recipe("anl-ce", "cifar10")
    >>> anl.loss, anl.l1, anl.weight_decay
    (Loss('5*nce + 5*nnce'), 5e-05, 0.0)
    """
    name, dataset = name.lower().replace(" ", ""), dataset.lower().replace("-", "")
    if protocol not in ("paper", "authors"):
        raise ValueError(f"protocol is 'paper' or 'authors'; it was {protocol!r}")
    row = AUTHORS.get((name, dataset)) if protocol == "authors" else None
    row = row or RECIPES.get((name, dataset)) or _by_noise(name, dataset, noise, rate)
    if row is None:
        names = list(dict.fromkeys([*(n for n, _ in RECIPES), "js", "epsilon-softmax"]))
        if name not in names:
            raise ValueError(
                f"unknown recipe {name!r}{nearest(name, names)}; "
                f"the known ones are {', '.join(names)}"
            )
        has = sorted({d for n, d in RECIPES if n == name} or {"cifar10", "cifar100"})
        raise ValueError(
            f"{name} has no published settings for {dataset!r} ({noise}); "
            f"it has for {', '.join(has)}"
        )
    return Recipe(name, dataset, parse(row.text, **keywords), row.l1, row.weight_decay, row.source)
