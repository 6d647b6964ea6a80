"""Which loss to begin with, at once: from what was measured on the data most like yours."""

from __future__ import annotations

import csv
import functools
import math
from collections import Counter
from dataclasses import dataclass
from importlib import resources
from numbers import Integral
from statistics import fmean
from typing import Any, Literal

from .._errors import UsageError

_NEAR = 0.35  # decades: sets within this of the nearest are asked too
_FAR_RATE = 0.25  # of a known noise rate, from which on the reason says that none was near it
_FAR = 1.0  # decades from which on the reason says that nothing measured is like it
_GAIN = 2.0  # points of the worst class's recall that class weights must gain to be advised


@dataclass(frozen=True)
class Recommendation:
    """A loss to begin with.

    Attributes:
        loss: its text, for `noiseproof.parse` and `Run`.
        class_weight: ``"balanced"`` if classes are of very different size, as scikit-learn has it:
            ``noiseproof.class_weights(labels)``; else None.
        reason: the measurements that it follows from, in sentences.
        alternatives: the next best, from the better to the worse.
    """

    loss: str
    class_weight: Literal["balanced"] | None
    reason: str
    alternatives: tuple[str, ...]

    def __str__(self) -> str:
        weight = ", with balanced class weights" if self.class_weight else ""
        others = f"\nNext: {', '.join(self.alternatives)}." if self.alternatives else ""
        return f"{self.loss}{weight}\n{self.reason}{others}"


def recommend(
    labels: Any, *, samples: int | None = None, noise_rate: float | None = None
) -> Recommendation:
    """A loss for data that nothing was trained on yet.

    Of the data sets that losses were compared on, those nearest in classes and size are asked which
    loss loses least to the best of each kind and rate of noise, on average: nobody knows which of
    them is yours. `noiseproof.tools.choose` compares losses on the data itself.

    Args:
        labels: the labels, as numbers or names, in an array, tensor, list or pandas Series; or the
            number of classes.
        samples: how many there are to train on, where ``labels`` is the number of classes.
        noise_rate: the part of the labels that is wrong, if you know it.

    >>> found = recommend(["cat"] * 700 + ["dog"] * 700)
    >>> found.loss, found.class_weight
    ('nce + 0.1*rce', None)
    """
    classes, counted, ratio = _describe(labels)
    if samples is None:
        samples = counted
    elif not isinstance(samples, Integral) or isinstance(samples, bool) or samples < 1:
        raise UsageError(f"samples is a whole number from 1; it was {samples!r}")
    if noise_rate is not None and not 0 <= noise_rate < 1:
        raise UsageError(f"noise_rate goes from 0 to below 1; it was {noise_rate!r}")
    nearest, distance = _nearest(classes, samples)
    near = _comparable(nearest, noise_rate)
    behind = _mean_regrets(near, noise_rate)
    ranked = _ranked(behind)
    weigh = ratio is not None and ratio >= _least_ratio()
    reason = _reason(classes, samples, near, distance, noise_rate, behind)
    others = {}
    for found in (found for found in nearest if found not in near):
        other = _ranked(_mean_regrets([found], noise_rate))[0]
        if other != ranked[0]:
            others[found.name] = other
    if others:
        listed = ", ".join(f"{other} on {name}" for name, other in others.items())
        reason += (
            " Others are about as near, but were measured with other losses: best there is "
            f"{listed}. Compare them (noiseproof choose)."
        )
    if weigh:
        assert ratio is not None
        reason += f" {_weight_reason(ratio)}"
    following = [
        loss for loss in dict.fromkeys((*others.values(), *ranked[1:])) if loss != ranked[0]
    ]
    return Recommendation(ranked[0], "balanced" if weigh else None, reason, tuple(following[:2]))


@dataclass(frozen=True)
class _Set:
    """A data set that losses were compared on: accuracy in percent by condition and loss."""

    name: str
    classes: int
    samples: int
    accuracy: dict[tuple[str, float], dict[str, float]]

    @property
    def losses(self) -> set[str]:
        """Those that were measured under all of its conditions."""
        return set.intersection(*(set(by_loss) for by_loss in self.accuracy.values()))


@functools.cache
def _evidence() -> tuple[tuple[_Set, ...], dict[float, tuple[float, float]]]:
    """The sets, and by ratio of class sizes the worst recall without and with class weights."""
    sets: dict[str, _Set] = {}
    recalls: dict[float, dict[str, float]] = {}
    text = resources.files(__package__).joinpath("evidence.csv").read_text()
    for row in csv.DictReader(text.splitlines()):
        value = float(row["percent"])
        if row["ratio"]:
            recalls.setdefault(float(row["ratio"]), {})[row["class_weight"]] = value
            continue
        about = (row["data"], int(row["classes"]), int(row["samples"]))
        found = sets.setdefault(row["data"], _Set(*about, {}))
        found.accuracy.setdefault((row["noise"], float(row["rate"])), {})[row["loss"]] = value
    weights = {ratio: (by["none"], by["balanced"]) for ratio, by in sorted(recalls.items())}
    return tuple(sets.values()), weights


def _describe(labels: Any) -> tuple[int, int | None, float | None]:
    """Classes, samples, and how many times the rarest class the most frequent one is."""
    if isinstance(labels, Integral) and not isinstance(labels, bool):  # NumPy's too
        if labels < 2:
            raise UsageError(f"there must be 2 classes or more; there were {labels}")
        return int(labels), None, None
    if isinstance(labels, str):
        raise UsageError(f"labels is a list of them, or the number of classes; it was {labels!r}")
    if hasattr(labels, "detach"):  # a tensor, maybe on a GPU
        labels = labels.detach().cpu()
    try:
        values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
        counts = Counter(values)
    except TypeError:
        raise UsageError(
            "labels must be one number or name for each sample, or the number of classes; "
            f"they were {type(labels).__name__}"
        ) from None
    if any(value is None or value != value for value in counts):
        raise UsageError("some labels are missing: leave those samples out")
    if any(isinstance(value, float) and not value.is_integer() for value in counts):
        raise UsageError("labels must name classes, and some are fractions")
    if len(counts) < 2:
        raise UsageError(f"there must be 2 classes or more; there were {len(counts)}")
    return len(counts), len(values), max(counts.values()) / min(counts.values())


def _nearest(classes: int, samples: int | None) -> tuple[list[_Set], float]:
    """The sets that are like it, the nearest first, and how far that is in powers of ten."""

    def distance(of: _Set) -> float:
        size = 0.0 if samples is None else abs(math.log10(of.samples / samples))
        return abs(math.log10(of.classes / classes)) + size

    ordered = sorted(_evidence()[0], key=distance)
    least = distance(ordered[0])
    return [found for found in ordered if distance(found) <= least + _NEAR], least


def _comparable(near: list[_Set], noise_rate: float | None) -> list[_Set]:
    """Those of the sets that were measured with the same losses, as many as there are.

    They share at least half of the losses of each, or a set with few would leave nothing to
    choose among. Of several such groups the one that most was measured on, and then the one whose
    best loss loses least.
    """
    groups = []
    for first in near:
        group, common = [first], first.losses
        for other in (found for found in near if found is not first):
            shared, most = common & other.losses, max(len(of.losses) for of in (*group, other))
            if 2 * len(shared) >= most:
                group, common = [*group, other], shared
        groups.append([found for found in near if found in group])

    def preference(group: list[_Set]) -> tuple[int, int, float]:
        measured = sum(len(of.accuracy) * len(of.losses) for of in group)
        return -len(group), -measured, min(_mean_regrets(group, noise_rate).values())

    return min(groups, key=preference)


def _ranked(behind: dict[str, float]) -> list[str]:
    return sorted(behind, key=lambda loss: (behind[loss], loss))


def _conditions(of: _Set, noise_rate: float | None) -> list[tuple[str, float]]:
    """Those that count: all, or of a known rate the symmetric noise nearest to it."""
    if noise_rate is None:
        return list(of.accuracy)
    off = {
        c: round(abs(c[1] - noise_rate), 9) for c in of.accuracy if c[0] in ("none", "symmetric")
    }
    return [c for c in off if off[c] == min(off.values())]


def _mean_regrets(near: list[_Set], noise_rate: float | None) -> dict[str, float]:
    """By how many points each loss is behind the best, on average over sets and conditions.

    Of losses that were measured in all of these sets; the best is that of all measured ones.
    """
    common = set.intersection(*(found.losses for found in near))
    regrets = {}
    for loss in common:
        by_set = [
            fmean(max(by.values()) - by[loss] for by in map(s.accuracy.get, chosen) if by)
            for s in near
            for chosen in [_conditions(s, noise_rate)]
        ]
        regrets[loss] = fmean(by_set)
    return regrets


def _reason(
    classes: int,
    samples: int | None,
    near: list[_Set],
    distance: float,
    noise_rate: float | None,
    behind: dict[str, float],
) -> str:
    yours = f"{classes} classes" + ("" if samples is None else f" and {samples:,} samples")
    sets = ", ".join(f"{s.name} ({s.classes} classes, {s.samples:,} samples)" for s in near)
    conditions = list(dict.fromkeys(c for s in near for c in _conditions(s, noise_rate)))
    listed, of_each = ", ".join(_words(*c) for c in conditions), ""
    under = f"With {listed}"
    if len(conditions) > 1:
        of_each = " of each"
        listed = listed if noise_rate is not None else f"{len(conditions)} kinds and rates of noise"
        under = f"On average over {listed}"
    elif all(len(found.accuracy) == 1 for found in near):
        under += ", which is all that was measured there"
    first, ce = _ranked(behind)[0], behind.get("ce")
    measured = f"{first} is {behind[first]:.1f} points behind the best{of_each}"
    if ce is not None and first != "ce":
        measured += f", cross entropy {ce:.1f}"
    where = f"Nearest to {yours} of what was measured: {sets}."
    if distance >= _FAR:
        where += " That is far from yours: take it as a start, and compare (noiseproof choose)."
    far = noise_rate is not None and all(
        abs(rate - noise_rate) > _FAR_RATE for _, rate in conditions
    )
    other = " No rate near yours was measured there: compare (noiseproof choose)." if far else ""
    return f"{where} {under}, {measured}.{other}"


def _words(noise: str, rate: float) -> str:
    if not rate:
        return "clean labels" if noise == "none" else noise
    return f"{rate:.0%} {noise}".replace("%", " %")


def _least_ratio() -> float:
    """The ratio of class sizes from which on class weights were needed, as measured."""
    weights = _evidence()[1]
    needed = [r for r, (without, with_) in weights.items() if with_ - without > _GAIN]
    level = [r for r in weights if r not in needed]
    # Where the gain comes and goes with the ratio, the first from which on it is always there.
    return min((r for r in needed if all(r > other for other in level)), default=math.inf)


def _weight_reason(ratio: float) -> str:
    weights = _evidence()[1]
    measured = max((r for r in weights if r <= ratio), default=min(weights))
    without, with_ = weights[measured]
    return (
        f"The largest class is {ratio:.0f} times the smallest: where it was {measured:g} times, "
        f"the worst class was recalled to {without:.0f} % without class weights and to "
        f"{with_:.0f} % with them."
    )
