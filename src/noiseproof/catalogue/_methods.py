"""Methods: published losses by name, as papers print them and with the settings they used.

To add a method, add an entry to `METHODS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ._auto import AUTO
from ._setting import ByNoise, Method, Setting

NLNL = "nlnl"
"""A method that is a procedure of three stages and no loss."""

PAPER = "Ma et al., ICML 2020"
_OURS = "noiseproof"
_ANL = "Ye et al., NeurIPS 2023"
_JAL = "Wang et al., ICCV 2025"
_ALF = "Zhou et al., ICML 2021"
_EPS = "Wang et al., NeurIPS 2024"
_GJS = "Englesson and Azizpour, NeurIPS 2021"


def _same(text: str, *datasets: str) -> dict[str, Setting]:
    return {dataset: Setting(text, PAPER) for dataset in datasets}


_TABLES = ("mnist", "cifar10", "cifar100")
_ALL = (*_TABLES, "webvision")
_WEIGHTS = {"mnist": (1, 100), "cifar10": (1, 1), "cifar100": (10, 0.1)}
# Not the paper's, which has no digits: in both the factor of 1 - p_y is 0.4.
_DIGITS_WEIGHTS = {"rce": 0.1, "mae": 0.2}
# What the code of the paper's authors computes where it differs from the paper: the one-hot label
# is clamped at 1e-4, MAE is half, the focal factor carries no gradient, and other weights.
_RCE_AUTHORS = "rce(A=-9.210340371976182)"
_WEIGHTS_AUTHORS = {
    "mnist": (1, 10, 10), "cifar10": (1, 1, 1), "cifar100": (10, 0.1, 1), "webvision": (50, 0.1, 1),
}  # fmt: skip
_NFL_AUTHORS = "normalize(fl_detached)"
_ACTIVE_AUTHORS = {
    "nce": dict.fromkeys(_ALL, "nce"),
    "nfl": dict.fromkeys(_ALL, _NFL_AUTHORS),
    "ngce": {"mnist": "ngce(rho=0.1)", "cifar10": "ngce(rho=0.1)", "cifar100": "ngce"},
}


def _active_passive(active: str, passive: str, *datasets: str, **webvision: str) -> Method:
    paper: dict[str, Setting] = {}
    for dataset in datasets:
        alpha, beta = _WEIGHTS[dataset]
        paper[dataset] = Setting(f"{alpha}*{active} + {beta}*{passive}", PAPER)
    if active in ("nce", "nfl"):
        paper["digits"] = Setting(f"{active} + {_DIGITS_WEIGHTS[passive]}*{passive}", _OURS)
    paper |= {dataset: Setting(text, PAPER) for dataset, text in webvision.items()}
    authors: dict[str, Setting] = {}
    for dataset, (alpha, beta_rce, beta_mae) in _WEIGHTS_AUTHORS.items():
        if dataset not in _ACTIVE_AUTHORS[active]:
            continue
        text = f"{beta_rce}*{_RCE_AUTHORS}" if passive == "rce" else f"{beta_mae / 2}*mae"
        authors[dataset] = Setting(f"{alpha}*{_ACTIVE_AUTHORS[active][dataset]} + {text}", PAPER)
    return Method(f"{active}+{passive}".upper(), paper, authors)


def _sce() -> Method:
    weights = {"mnist": (0.01, 1), "cifar10": (0.1, 1), "cifar100": (6, 0.1), "webvision": (10, 1)}
    paper = {d: Setting(f"sce(alpha={a}, beta={b})", PAPER) for d, (a, b) in weights.items()}
    authors = {d: Setting(f"{a}*ce + {b}*{_RCE_AUTHORS}", PAPER) for d, (a, b) in weights.items()}
    return Method("SCE", paper, authors)


def _single(label: str, authors: Mapping[str, str | Mapping[str, str]]) -> Method:
    """A single robust loss, which their configurations scale by 10 on some data sets."""
    found: dict[str, Setting | ByNoise] = {}
    for dataset, text in authors.items():
        if isinstance(text, str):
            found[dataset] = Setting(text, PAPER)
        else:
            found[dataset] = {noise: Setting(t, PAPER) for noise, t in text.items()}
    return Method(label, authors=found)


_FOCAL_NOTE = (
    "the focal factor carries no gradient, as in the published code; "
    "the loss as the paper prints it is {text}"
)


def _focal_note(text: str) -> str:
    """What is trained where a text has the focal loss of published code; else nothing."""
    printed = text.replace(_NFL_AUTHORS, "nfl").replace("negative(fl_detached)", "nnfl")
    return "" if printed == text else _FOCAL_NOTE.format(text=printed)


def _active_negative(label: str, active: str, negative: str) -> Method:
    rows = {
        "mnist": (1, 1, 1e-6), "cifar10": (5, 5, 5e-5), "cifar100": (10, 1, 5e-7),
        "webvision": (20, 1, 5e-6),
    }  # fmt: skip
    texts = {d: f"{alpha}*{active} + {beta}*{negative}" for d, (alpha, beta, _) in rows.items()}
    return Method(label, {
        dataset: Setting(texts[dataset], _ANL, l1, 0.0, _focal_note(texts[dataset]))
        for dataset, (_, _, l1) in rows.items()
    }, None)  # fmt: skip


def _joint_asymmetric(label: str, active: str) -> Method:
    rows = {
        "cifar10": (1, 30, 5e-5, 0.0), "cifar100": (5, 20, 5e-6, 0.0),
        "webvision": (50, 30, 0.0, 3e-5),
    }  # fmt: skip
    texts = {d: f"{alpha}*{active} + amse(a={a})" for d, (alpha, a, *_) in rows.items()}
    return Method(label, {
        dataset: Setting(texts[dataset], _JAL, l1, decay, _focal_note(texts[dataset]))
        for dataset, (_, _, l1, decay) in rows.items()
    }, None)  # fmt: skip


def _asymmetric(label: str, **texts: str) -> Method:
    return Method(label, {dataset: Setting(text, _ALF) for dataset, text in texts.items()}, None)


def _js() -> Method:
    pi = {
        "cifar10": {0.0: 0.1, 0.2: 0.7, 0.4: 0.7, 0.6: 0.9, 0.8: 0.9},
        "cifar100": {0.0: 0.1, 0.2: 0.1, 0.4: 0.3, 0.6: 0.5, 0.8: 0.3},
    }
    return Method("JS", {
        dataset: {"symmetric": {r: Setting(f"js(pi={p})", _GJS) for r, p in rates.items()}}
        for dataset, rates in pi.items()
    }, None)  # fmt: skip


_EPSILON_NOTE = (
    "at this rate the paper has the weight 0.0125 and its published code 0.00125; 0.0125 is used, "
    "which lies between the weights of the neighbouring rates"
)


def _epsilon_softmax() -> Method:
    def text(alpha: float, m: float, beta: float) -> Setting:
        return Setting(f"{alpha}*epsilon_softmax(ce, m={m}) + {beta}*mae", _EPS)

    symmetric = {0.0: 0.1, 0.2: 0.05, 0.4: 0.03, 0.6: 0.0125, 0.8: 0.0075}
    asymmetric = {0.1: 0.015, 0.2: 0.007, 0.3: 0.005, 0.4: 0.004}
    return Method("CEeps+MAE", {
        "cifar10": {"symmetric": text(0.01, 1e5, 5), "*": text(0.02, 1e3, 5)},
        "cifar100": {
            "symmetric": {rate: text(alpha, 1e4, 1) for rate, alpha in symmetric.items()}
            | {0.6: replace(text(0.0125, 1e4, 1), note=_EPSILON_NOTE)},
            "asymmetric": {rate: text(alpha, 1e2, 1) for rate, alpha in asymmetric.items()},
        },
    }, None)  # fmt: skip


# In the order of the paper's tables, then of those that came after.
METHODS: dict[str, Method] = {
    "ce": Method("CE", _same("ce", *_ALL)),
    "fl": Method("FL", _same("fl", *_TABLES), _same("fl_detached", *_TABLES)),
    "gce": Method("GCE", _same("gce", *_ALL)),
    NLNL: Method("NLNL"),
    "sce": _sce(),
    "mae": Method("MAE", authors=_same("0.5*mae", *_TABLES)),
    "rce": Method("RCE", authors=_same(_RCE_AUTHORS, *_TABLES)),
    "nce": _single("NCE", {"mnist": "10*nce", "cifar10": "nce", "cifar100": "nce"}),
    "nfl": _single(
        "NFL",
        {
            "mnist": _NFL_AUTHORS,
            "cifar100": _NFL_AUTHORS,
            "cifar10": {"symmetric": f"10*{_NFL_AUTHORS}", "*": _NFL_AUTHORS},
        },
    ),
    "ngce": _single(
        "NGCE",
        {
            "mnist": {"symmetric": "10*ngce(rho=0.1)", "*": "ngce(rho=0.1)"},
            "cifar10": "ngce(rho=0.1)",
            "cifar100": "ngce(rho=0.7)",
        },
    ),
    # theirs are half of NMAE, and (K - 1) / 4 times NRCE
    "nmae": _single("NMAE", dict.fromkeys(_TABLES, "0.5*nmae")),
    "nrce": _single(
        "NRCE",
        {
            "mnist": "2.25*nrce",
            "cifar10": "2.25*nrce",
            "cifar100": "24.75*nrce",
        },
    ),
    "nfl+mae": _active_passive("nfl", "mae", *_TABLES),
    "nfl+rce": _active_passive("nfl", "rce", *_TABLES),
    "nce+mae": _active_passive("nce", "mae", *_TABLES, webvision="50*nce + mae"),
    "nce+rce": _active_passive("nce", "rce", *_TABLES, webvision="50*nce + 0.1*rce"),
    "ngce+mae": _active_passive("ngce", "mae", "cifar10"),
    "ngce+rce": _active_passive("ngce", "rce", "cifar10"),
    # sums of their losses, with the weights 1
    "nfl+nce": _single("NFL+NCE", dict.fromkeys(_TABLES, f"{_NFL_AUTHORS} + nce")),
    "mae+rce": _single("MAE+RCE", dict.fromkeys(_TABLES, f"0.5*mae + {_RCE_AUTHORS}")),
    "agce": _asymmetric("AGCE", cifar10="agce(a=0.6, q=0.6)"),
    "aul": _asymmetric("AUL", cifar10="aul(a=5.5, q=3)"),
    "ael": _asymmetric("AEL", cifar10="ael(a=2.5)"),
    "nce+agce": _asymmetric(
        "NCE+AGCE", cifar10="nce + 4*agce(a=6, q=1.5)", cifar100="10*nce + 0.1*agce(a=1.8, q=3)"
    ),
    "nce+aul": _asymmetric(
        "NCE+AUL", cifar10="nce + 4*aul(a=6.3, q=1.5)", cifar100="10*nce + 0.015*aul(a=6, q=3)"
    ),
    "nce+ael": _asymmetric(
        "NCE+AEL", cifar10="nce + 4*ael(a=5)", cifar100="10*nce + 0.1*ael(a=1.5)"
    ),
    "js": _js(),
    "ldr": Method("LDR-KL", authors=None),
    "epsilon-softmax": _epsilon_softmax(),
    "epsilon-softmax-fl": Method("FLeps+MAE", authors=None),
    "anl-ce": _active_negative("ANL-CE", "nce", "nnce"),
    # the focal factor as in their code: without a gradient
    "anl-fl": _active_negative("ANL-FL", _NFL_AUTHORS, "negative(fl_detached)"),
    "jal-ce": _joint_asymmetric("JAL-CE", "nce"),
    "jal-fl": _joint_asymmetric("JAL-FL", _NFL_AUTHORS),
    AUTO: Method(AUTO, authors=None),  # its setting follows from the number of classes
}
