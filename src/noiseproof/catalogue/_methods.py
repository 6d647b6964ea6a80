"""Methods: published losses by name, as papers print them and with the settings they used.

To add a method, add an entry to `METHODS`. A method is asked for by its name or by its label, in
any case and with its parts in any order: ``nce+rce``, ``RCE + NCE``. A text with numbers in it is
no method, but a loss as it stands.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches

from .. import syntax
from .._errors import UsageError
from .._hints import nearest
from ._auto import AUTO, auto_setting, is_auto
from ._datasets import DATASETS
from ._noises import CLEAN
from ._setting import ByNoise, Method, Setting

NLNL = "nlnl"
"""A method that is a procedure of three stages and no loss."""

_PAPER = "Ma et al., ICML 2020"
_OURS = "noiseproof"
_ANL = "Ye et al., NeurIPS 2023"
_JAL = "Wang et al., ICCV 2025"
_ALF = "Zhou et al., ICML 2021"
_EPS = "Wang et al., NeurIPS 2024"
_GJS = "Englesson and Azizpour, NeurIPS 2021"


def _same(text: str, *datasets: str) -> dict[str, Setting]:
    return {dataset: Setting(text, _PAPER) for dataset in datasets}


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
        paper[dataset] = Setting(f"{alpha}*{active} + {beta}*{passive}", _PAPER)
    if active in ("nce", "nfl"):
        paper["digits"] = Setting(f"{active} + {_DIGITS_WEIGHTS[passive]}*{passive}", _OURS)
    paper |= {dataset: Setting(text, _PAPER) for dataset, text in webvision.items()}
    authors: dict[str, Setting] = {}
    for dataset, (alpha, beta_rce, beta_mae) in _WEIGHTS_AUTHORS.items():
        if dataset not in _ACTIVE_AUTHORS[active]:
            continue
        text = f"{beta_rce}*{_RCE_AUTHORS}" if passive == "rce" else f"{beta_mae / 2}*mae"
        authors[dataset] = Setting(f"{alpha}*{_ACTIVE_AUTHORS[active][dataset]} + {text}", _PAPER)
    return Method(f"{active}+{passive}".upper(), paper, authors)


def _sce() -> Method:
    weights = {"mnist": (0.01, 1), "cifar10": (0.1, 1), "cifar100": (6, 0.1), "webvision": (10, 1)}
    paper = {d: Setting(f"sce(alpha={a}, beta={b})", _PAPER) for d, (a, b) in weights.items()}
    authors = {d: Setting(f"{a}*ce + {b}*{_RCE_AUTHORS}", _PAPER) for d, (a, b) in weights.items()}
    return Method("SCE", paper, authors)


def _single(label: str, authors: Mapping[str, str | Mapping[str, str]]) -> Method:
    """A single robust loss, which their configurations scale by 10 on some data sets."""
    found: dict[str, Setting | ByNoise] = {}
    for dataset, text in authors.items():
        if isinstance(text, str):
            found[dataset] = Setting(text, _PAPER)
        else:
            found[dataset] = {noise: Setting(t, _PAPER) for noise, t in text.items()}
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
        return Setting(NLNL, _PAPER)
    if name == AUTO:
        classes = _classes(dataset) if classes is None else classes
        if classes is None:
            raise UsageError(f"auto needs to know how many classes {dataset} has")
        return auto_setting(classes)
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


def _classes(dataset: str) -> int | None:
    return DATASETS[dataset].num_classes if dataset in DATASETS else None


def no_settings(method: str, dataset: str, noise: str) -> UsageError:
    """The error for a method that has no settings for a data set and cannot do without."""
    entry = METHODS[method]
    has = ", ".join(sorted(entry.paper)) or "no data set"
    return UsageError(
        f"{method} has no published settings for {dataset!r} ({noise}); it has for {has}"
    )


@functools.lru_cache(maxsize=4096)
def label_of(
    loss: str,
    dataset: str,
    *,
    noise: str = "symmetric",
    rate: float = 0.0,
    protocol: str = "paper",
    shrink: float = 0.0,
    own_data: bool = False,
) -> str:
    """What a table calls a loss, given by its canonical text.

    The loss of auto with a penalty of its kind is auto. Else it is the label of the method that has
    this loss on this data set; any other loss is called by its text, with the names in capitals. A
    weight of 1 is then written where the text without it would be a method's with other weights.

    >>> label_of("nce + 100*rce(A=-4)", "mnist"), label_of("nce + rce(A=-4)", "cifar100")
    ('NCE+RCE', '1*NCE+1*RCE')
    """
    classes = None if own_data else _classes(dataset)
    if shrink and is_auto(loss, classes):
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
