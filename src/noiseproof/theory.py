"""What a loss will stand, computed: the paper's definitions and lemmas as numbers.

>>> from noiseproof import parse, theory
>>> verdict = theory.check(parse("nce"), num_classes=10)
>>> verdict.symmetric, verdict.constant
(True, 1.0)
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ._errors import UsageError
from .losses import Kind, Loss, parse, terms
from .losses._forms import probe_logits
from .losses._mapped import TransitionMatrix
from .losses._prediction import Prediction

SCALES = (1e2, 1e4, 1e6, 1e8)
"""How far apart logits are drawn to find out where a loss goes to."""

MOST_CLASSES = 10_000
"""The largest number of classes at which a loss is checked: a gigabyte, and half a minute."""

_BLOCK = 1 << 20
"""How many logits are looked at at once."""


@dataclass(frozen=True)
class Range:
    """The infimum and supremum of something over all predictions; infinite where it grows on."""

    low: float
    high: float

    @property
    def constant(self) -> bool:
        size = max(abs(self.low), abs(self.high))
        return math.isfinite(size) and self.high - self.low <= 1e-6 * max(1.0, size)

    def __str__(self) -> str:
        if self.constant:
            return f"{_tidy(self.high):.6g}"
        return f"{_tidy(self.low):.4g} to {_tidy(self.high):.4g}"


@dataclass(frozen=True, repr=False)
class Check:
    """What :func:`check` found; shown as a small table."""

    loss: str
    num_classes: int
    kind: Kind
    values: Range  # of L(f, k)
    sums: Range  # of sum_j L(f, j)
    worst: tuple[float, ...]  # the probabilities at which the sum is furthest from its median
    terms: tuple[Check, ...]  # of a sum of losses
    asymmetry: float | None  # the asymmetry ratio, for a loss of p_y alone that falls with it

    @property
    def symmetric(self) -> bool:
        """Whether sum_j L(f, j) is the same for every prediction."""
        return self.sums.constant

    @property
    def constant(self) -> float | None:
        return _tidy(self.sums.high) if self.symmetric else None

    @property
    def max_symmetric_rate(self) -> float | None:
        """Symmetric noise is tolerated at rates below this (Lemma 1); None if at none."""
        return (self.num_classes - 1) / self.num_classes if self.symmetric else None

    @property
    def lemma_2(self) -> str:
        """Whether Lemma 2 (asymmetric noise) applies, or the condition that fails."""
        if not self.symmetric:
            return "does not apply: the sum over labels is not constant"
        if abs(self.values.low) > 1e-6 * max(1.0, abs(self.sums.high)):
            return f"does not apply: the least loss is {_tidy(self.values.low):.4g}, not 0"
        bound = self.sums.high / (self.num_classes - 1)
        if self.values.high > bound * (1 + 1e-4) + 1e-12:
            return (
                f"does not apply: the loss reaches {self.values.high:.4g}, "
                f"above the {bound:.4g} it assumes, the constant over K - 1"
            )
        return "applies: tolerant where every class keeps most of its labels, if classes separate"

    @property
    def lemma_3(self) -> str | None:
        """Whether every term of a sum is tolerant; None for a single loss."""
        if len(self.terms) < 2:
            return None
        failing = [term.loss for term in self.terms if not term.symmetric]
        if failing:
            return f"does not apply: {', '.join(failing)} is not symmetric"
        return "applies: every term is symmetric, so the sum is"

    def rows(self) -> list[tuple[str, str]]:
        found = [
            ("kind", str(self.kind)),
            ("values", f"{self.values}"),
            ("sum over labels", f"{self.sums}" + (", constant" if self.symmetric else "")),
        ]
        if self.symmetric:
            limit = f"symmetric noise at rates below {self.max_symmetric_rate:.4g}"
            found.append(("Lemma 1", f"applies: tolerates {limit}"))
        else:
            at = ", ".join(f"{p:.3g}" for p in self.worst[:4])
            found.append(("Lemma 1", f"does not apply: the sum is furthest off at p = ({at}, ...)"))
        found.append(("Lemma 2", self.lemma_2))
        if self.lemma_3 is not None:
            found.append(("Lemma 3", self.lemma_3))
        if self.asymmetry is not None:
            found.append(("asymmetry ratio", _about_asymmetry(self.asymmetry)))
        return found

    def __str__(self) -> str:
        lines = [f"{self.loss}, K = {self.num_classes}"]
        return "\n".join(lines + [f"  {name:16} {text}" for name, text in self.rows()])

    __repr__ = __str__


def check(loss: Loss | str, num_classes: int) -> Check:
    """Compute what a loss, or the text of one, will stand at a number of classes.

    The bounds are sought at corner predictions, drawn out until the loss settles or keeps growing,
    and from the best of them by gradient steps: random predictions miss them.
    """
    _check_num_classes(num_classes)
    if isinstance(loss, str):
        loss = parse(loss)
    parts = terms(loss)
    found = tuple(check(part, num_classes) for _, part in parts) if len(parts) > 1 else ()
    near = _at(loss, probe_logits(num_classes))
    far = [_at(loss, _corners(num_classes, scale)) for scale in SCALES]
    climbed = _climb(loss, num_classes)
    return Check(
        loss=str(loss),
        num_classes=num_classes,
        kind=loss.kind,
        values=_extent(near.values, [found.values for found in far], climbed.values),
        sums=_extent(near.sums, [found.sums for found in far], climbed.sums),
        worst=_worst(loss, num_classes),
        terms=found,
        asymmetry=asymmetry_ratio(loss, num_classes),
    )


def noisy_risk(loss: Loss, logits: Tensor, labels: Tensor, T: Tensor) -> Tensor:
    """The mean of the loss over the labels that true ``labels`` are given under T.

    ``T[i, j]`` is the probability that true class i is given as j.
    """
    transition = TransitionMatrix(T)
    expected = transition.apply_over_classes(loss.per_class(logits), transition.T.T)
    return expected.gather(1, labels.long().unsqueeze(1)).mean()


def lemma_1(loss: Loss, logits: Tensor, labels: Tensor, rate: float) -> tuple[Tensor, Tensor]:
    """The two sides of Lemma 1's identity for symmetric noise; equal if the loss is symmetric.

    The noisy risk, and (1 - rate K / (K - 1)) R + rate C / (K - 1), with R the clean risk and C the
    sum over labels of the first prediction.
    """
    matrix = loss.per_class(logits)
    num_classes = matrix.shape[1]
    T = symmetric_transition(num_classes, rate).to(matrix)
    clean = matrix.gather(1, labels.long().unsqueeze(1)).mean()
    constant = matrix[0].sum()  # of the first prediction: of all, if the loss is symmetric
    share = rate / (num_classes - 1)
    return noisy_risk(loss, logits, labels, T), (1 - num_classes * share) * clean + share * constant


def symmetric_transition(num_classes: int, rate: float) -> Tensor:
    """The transition matrix of symmetric noise of this rate."""
    off = torch.full((num_classes, num_classes), rate / (num_classes - 1), dtype=torch.float64)
    return off.fill_diagonal_(1 - rate)


def asymmetry_ratio(loss: Loss, num_classes: int = 10) -> float | None:
    """The asymmetry ratio of Zhou et al. (ICML 2021) for a loss l of p_y alone that falls with it.

    It is the infimum of (l(u) - l(u + v)) / (l(0) - l(v)) over u, v >= 0 with u + v <= 1: moving v
    from a wrong class to the right one gains at least that share of what it costs. Such a loss
    tolerates noise where the right label is at least 1 / ratio times as probable as any other. None
    for a loss of more than p_y, or one that does not fall.
    """
    ell = functools.partial(_at_label_probability, loss, num_classes=num_classes)
    u = torch.cat([torch.zeros(1), torch.logspace(-9, 0, 400)]).double()
    values = ell(u)
    if not torch.allclose(values, ell(u, even=False), rtol=1e-9, atol=1e-9):
        return None
    if bool((values.diff() >= 0).any()):
        return None
    small = torch.tensor([0.0, 1e-12, 1e-6], dtype=torch.float64)
    at_zero, near, far = ell(small).tolist()
    if (at_zero - near) / 1e-12 > 1.2 * (at_zero - far) / 1e-6:
        return 0.0  # its slope at 0 is infinite
    v = torch.logspace(-5, 0, 120, dtype=torch.float64)
    start = torch.linspace(0, 1, 120, dtype=torch.float64)[:, None] * (1 - v)
    gain = ell(start) - ell((start + v).clamp(max=1))
    cost = values[0] - ell(v)
    ratio = float((gain / cost)[:, cost > 1e-12].min())
    return 0.0 if ratio < 1e-3 else min(ratio, 1.0)


def _at_label_probability(loss: Loss, u: Tensor, num_classes: int, *, even: bool = True) -> Tensor:
    """L(f, 0) where class 0 has probability u, and the rest is even or at one class."""
    blocks = _blocks(u.flatten(), num_classes)
    values = [_of_first_class(loss, block, num_classes, even) for block in blocks]
    return torch.cat(values).reshape(u.shape)


def _of_first_class(loss: Loss, u: Tensor, num_classes: int, even: bool) -> Tensor:
    p = torch.zeros(len(u), num_classes, dtype=torch.float64)
    p[:, 0] = u
    if even:
        p[:, 1:] = ((1 - u) / (num_classes - 1)).unsqueeze(-1)
    else:
        p[:, 1] = 1 - u
    label = torch.zeros(len(u), 1, dtype=torch.long)
    return loss.expression.at_label(Prediction(p.clamp(min=1e-300).log(), label)).detach()


def _about_asymmetry(ratio: float) -> str:
    if ratio == 0:
        return "0: not asymmetric"
    return f"{ratio:.4g}: the right label {1 / ratio:.4g} times as probable as any other suffices"


def _check_num_classes(num_classes: int) -> None:
    if num_classes < 2:
        raise UsageError(f"num_classes must be at least 2; it was {num_classes}")
    if num_classes > MOST_CLASSES:
        raise UsageError(
            f"num_classes must be at most {MOST_CLASSES}, which takes a gigabyte; it was "
            f"{num_classes}; check the loss at fewer classes"
        )


@dataclass(frozen=True)
class _Found:
    """The extremes of L(f, j) and of its sum over labels over some predictions."""

    values: Range
    sums: Range


def _blocks(rows: Tensor, num_classes: int) -> tuple[Tensor, ...]:
    """Rows in blocks of so many that memory stays small."""
    return torch.split(rows, max(1, _BLOCK // num_classes))


def _at(loss: Loss, logits: Tensor) -> _Found:
    """What a loss comes to at rows of logits, in blocks of them."""
    values, sums = [], []
    for block in _blocks(logits, logits.shape[1]):
        matrix = loss.per_class(block.double()).detach()
        values += [matrix.min(), matrix.max()]
        sums.append(matrix.sum(1))
    return _Found(_range_of(torch.stack(values)), _range_of(torch.cat(sums)))


def _range_of(values: Tensor) -> Range:
    return Range(values.min().item(), values.max().item())


def _extent(near: Range, far: list[Range], climbed: Range) -> Range:
    """The range of all that was found: at ordinary predictions, further and further, climbing."""
    lows = [min(found.low, near.low) for found in far]
    highs = [max(found.high, near.high) for found in far]
    low = -math.inf if _grows([-x for x in lows]) else min(lows[-1], climbed.low)
    high = math.inf if _grows(highs) else max(highs[-1], climbed.high)
    return Range(low, high)


def _grows(values: list[float]) -> bool:
    """Whether drawing logits a hundred times further apart keeps making it larger."""
    return values[-1] > 10 * max(values[-2], 1.0) and values[-2] > 10 * max(values[-3], 1.0)


def _corners(num_classes: int, scale: float) -> Tensor:
    """One class apart from the rest, which are even, tied in part, or one alone."""
    one = torch.eye(num_classes, dtype=torch.float64)[:1]
    rows = [0 * one]
    for tied in {1, 2, num_classes // 2, num_classes - 1}:
        others = torch.zeros(1, num_classes, dtype=torch.float64)
        others[0, 1 : 1 + tied] = 1
        for label in (-1.0, 0.0, 0.5, 1.0, 2.0):
            rows += [scale * (label * one + others), scale * (label * one - others)]
            rows += [label * scale * one + others, label * one + scale * others]
    return torch.cat(rows)


def _climb(loss: Loss, num_classes: int, starts: int = 32) -> _Found:
    """The extremes that gradient steps come to: four climbs in one, each from the same starts."""
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(starts, num_classes, dtype=torch.float64, generator=generator)
    logits = start.repeat(4, 1)
    best = [-math.inf] * 4
    mean, square = torch.zeros_like(logits), torch.zeros_like(logits)
    for step in range(1, 101):
        logits.requires_grad_()
        high, low, sum_high, sum_low = loss.per_class(logits).chunk(4)
        heights = torch.stack([high.amax(1), (-low).amax(1), sum_high.sum(1), -sum_low.sum(1)])
        best = [max(b, h) for b, h in zip(best, heights.amax(1).tolist(), strict=True)]
        (slope,) = torch.autograd.grad(heights.sum(), logits)
        # Adam's step. torch.optim would import its compiler, which takes seconds.
        mean = mean.lerp(slope, 0.1)
        square = square.lerp(slope.square(), 0.001)
        scale = (square / (1 - 0.999**step)).sqrt() + 1e-8
        logits = logits.detach() + 0.3 * mean / (1 - 0.9**step) / scale
    return _Found(Range(-best[1], best[0]), Range(-best[3], best[2]))


def _worst(loss: Loss, num_classes: int) -> tuple[float, ...]:
    """The probabilities, sorted, at which the sum over labels is furthest from its median."""
    logits = torch.cat([probe_logits(num_classes).double(), _corners(num_classes, 1e2)])
    blocks = _blocks(logits, num_classes)
    sums = torch.cat([loss.per_class(block).sum(1).detach() for block in blocks])
    furthest = (sums - sums.median()).abs().argmax()
    return tuple(logits[furthest].softmax(0).sort(descending=True).values.tolist())


def _tidy(value: float) -> float:
    """Without the rounding that a sum over classes leaves behind."""
    return 0.0 if abs(value) < 1e-6 else float(f"{value:.9g}")
