"""The paper's tables and figures, what came after, and a quick look: as data."""

from __future__ import annotations

import functools

from .._errors import UsageError
from .._hints import nearest
from ..runs import Run
from ._bench import Bench, grid, unique

_THREE = (0, 1, 2)
_TABLE = ("ce", "fl", "gce", "nlnl", "sce", "nfl+mae", "nfl+rce", "nce+mae", "nce+rce")
_PAPER = ("mnist", "cifar10", "cifar100")
_APL = ("nfl+mae", "nfl+rce", "nce+mae", "nce+rce")


def _symmetric() -> Bench:
    axes = {"dataset": _PAPER, "loss": _TABLE, "seed": _THREE}
    runs = grid(noise="none", **axes) + grid(noise="symmetric", rate=(0.2, 0.4, 0.6, 0.8), **axes)
    return Bench(
        "table-symmetric", "Table 2: clean and symmetric noise",
        "the losses that are robust and learn well stay high as the noise grows; CE falls",
        _by_seed(runs),
    )  # fmt: skip


def _asymmetric() -> Bench:
    runs = grid(
        dataset=_PAPER, loss=_TABLE, seed=_THREE, noise="asymmetric", rate=(0.1, 0.2, 0.3, 0.4)
    )
    return Bench(
        "table-asymmetric", "Table 3: asymmetric noise",
        "the same under classes mistaken for their neighbours", unique(runs),
    )  # fmt: skip


def _ngce() -> Bench:
    axes = {"dataset": "cifar10", "loss": ("gce", "ngce+mae", "ngce+rce"), "seed": _THREE}
    runs = grid(noise="symmetric", rate=(0.4, 0.8), **axes)
    runs += grid(noise="asymmetric", rate=0.4, **axes)
    return Bench(
        "table-ngce", "Table 4: GCE normalised and made active + passive",
        "a third robust active loss, NGCE, gains from a passive one as NCE and NFL do",
        _by_seed(runs),
    )  # fmt: skip


def _webvision() -> Bench:
    runs = grid(dataset="webvision", loss=("ce", "gce", "sce", "nce+mae", "nce+rce"))
    return Bench(
        "table-webvision", "Table 5: WebVision-mini, the noise of the web",
        "the order of the losses holds under real noise", unique(runs),
    )  # fmt: skip


_NORMALISED = ("ce", "nce", "fl", "nfl", "mae", "nmae", "rce", "nrce")
_SIX_TENTHS = {"noise": "symmetric", "rate": 0.6}


def _figure_1() -> Bench:
    return Bench(
        "figure-1", "Figure 1: each loss beside its normalised form, CIFAR-100",
        "normalised, every loss is robust, and underfits",
        unique(grid(dataset="cifar100", loss=_NORMALISED, **_SIX_TENTHS)),
    )  # fmt: skip


def _figure_2() -> Bench:
    return Bench(
        "figure-2", "Figure 2: each loss beside its normalised form, CIFAR-10",
        "the same where the task is easier",
        unique(grid(dataset="cifar10", loss=_NORMALISED, **_SIX_TENTHS)),
    )  # fmt: skip


def _figure_3() -> Bench:
    losses = [
        loss if scale == 1 else f"{scale}*{loss}"
        for loss in ("nce", "nfl", "mae", "rce")
        for scale in (1, 2, 5, 10)
    ]
    return Bench(
        "figure-3", "Figure 3: robust losses scaled, CIFAR-100",
        "underfitting is no matter of a larger step: scaling helps little",
        unique(grid(dataset="cifar100", loss=losses, **_SIX_TENTHS)),
    )  # fmt: skip


def _figure_4() -> Bench:
    # Both weights are 1 on CIFAR-100 too, where the names of the losses would bring 10 and 0.1.
    weighed = ["1*" + text.replace("+", "+1*") for text in _APL]
    others = ["nfl+nce", "mae+rce"]
    runs = grid(dataset="cifar10", loss=[*_APL, *others], **_SIX_TENTHS)
    runs += grid(dataset="cifar100", loss=[*weighed, *others], **_SIX_TENTHS)
    return Bench(
        "figure-4", "Figure 4: active + passive against two of a kind",
        "an active and a passive loss together learn what two of one kind do not", unique(runs),
    )  # fmt: skip


def _figure_5() -> Bench:
    losses = [f"{alpha:g}*nce+{beta:g}*rce" for alpha in (0.1, 1, 10) for beta in (0.1, 1, 10, 100)]
    runs = grid(dataset=("cifar10", "cifar100"), loss=losses, holdout=0.2, **_SIX_TENTHS)
    return Bench(
        "figure-5", "Figure 5: the weights of NCE and RCE",
        "which weights to take, chosen on noisy labels that were held out", unique(runs),
    )  # fmt: skip


# Those with published settings for the data set; JS was published for symmetric noise alone.
_SUCCESSORS: dict[str, tuple[str, ...]] = {
    "mnist": ("anl-ce", "anl-fl"),
    "cifar10": ("agce", "aul", "ael", "nce+agce", "nce+aul", "nce+ael", "epsilon-softmax",
                "anl-ce", "anl-fl", "jal-ce", "jal-fl"),
    "cifar100": ("nce+agce", "nce+aul", "nce+ael", "epsilon-softmax", "anl-ce", "anl-fl",
                 "jal-ce", "jal-fl"),
}  # fmt: skip


def _successors() -> Bench:
    runs = []
    for dataset, losses in _SUCCESSORS.items():
        js = () if dataset == "mnist" else ("js",)
        axes = {"dataset": dataset, "seed": _THREE}
        # A rate of 0 is clean; the settings of JS and of epsilon-softmax follow kind and rate.
        runs += grid(loss=losses + js, noise="symmetric", rate=(0.0, 0.2, 0.4, 0.6, 0.8), **axes)
        runs += grid(loss=losses, noise="asymmetric", rate=(0.1, 0.2, 0.3, 0.4), **axes)
    return Bench(
        "successors", "The same cells for the losses that came after",
        "how far one loss alone has come since", _by_seed(runs),
    )  # fmt: skip


def _human() -> Bench:
    losses = ["ce", "gce", "sce", "nce+mae", "nce+rce", "nce+agce", "anl-ce", "jal-ce", "jal-fl"]
    worst = ("cifar10n-worst", "cifar10n-aggregate", "cifar10n-random1")
    runs = grid(dataset="cifar10", noise=worst, loss=[*losses, "epsilon-softmax"], seed=_THREE)
    runs += grid(dataset="cifar100", noise="cifar100n", loss=losses, seed=_THREE)
    return Bench(
        "human-noise", "People's own mistakes: CIFAR-10N and CIFAR-100N",
        "what is left of the gains where the noise was made by people", _by_seed(runs),
    )  # fmt: skip


def _quick() -> Bench:
    losses = ["ce", "fl", "gce", "sce", "mae", "rce", "nce", "nfl", *_APL]
    # Large batches with a larger rate part the losses as the protocol's do, in half the time.
    runs = grid(
        dataset="digits", noise="symmetric", rate=(0.4, 0.6), loss=losses, seed=_THREE,
        epochs=20, batch_size=128, lr=0.04,
    )  # fmt: skip
    return Bench(
        "quick", "The whole idea in a minute, on handwritten digits",
        "CE and FL learn the wrong labels by heart; the robust losses do not", unique(runs),
    )  # fmt: skip


_MAKERS = {
    "quick": _quick,
    "table-symmetric": _symmetric,
    "table-asymmetric": _asymmetric,
    "table-ngce": _ngce,
    "table-webvision": _webvision,
    "figure-1": _figure_1,
    "figure-2": _figure_2,
    "figure-3": _figure_3,
    "figure-4": _figure_4,
    "figure-5": _figure_5,
    "successors": _successors,
    "human-noise": _human,
}


def _by_seed(runs: list[Run]) -> tuple[Run, ...]:
    """The first seed of all before the second of any."""
    return unique(sorted(runs, key=lambda run: run.seed))


def names() -> list[str]:
    """The benches that come with the package.

    >>> names()[:2]
    ['quick', 'table-symmetric']
    """
    return list(_MAKERS)


@functools.cache
def _made(name: str) -> Bench:
    return _MAKERS[name]()


def bench(name: str) -> Bench:
    """A bench by its name.

    >>> found = bench("table-symmetric")
    >>> len(found), len(found.cells)
    (405, 135)
    """
    if name not in _MAKERS:
        hint = nearest(name, _MAKERS)
        raise UsageError(
            f"unknown bench {name!r}{hint}; the known ones are {', '.join(_MAKERS)}, "
            "or a grid of your own in a file: noiseproof bench mine.toml"
        )
    return _made(name)
