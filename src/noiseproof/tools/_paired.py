"""How sure it is that one loss is better than another: compared sample by held-out sample."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ..results import HeldOut

LEVEL = 0.95


@dataclass(frozen=True)
class Difference:
    """By how much one loss is before another, on the same held-out samples.

    Attributes:
        points: the difference of the accuracies, in points of a hundred.
        margin: half of its interval.
        told_apart: whether the difference is beyond the interval.
    """

    points: float
    margin: float
    told_apart: bool

    def __str__(self) -> str:
        return f"{self.points:.1f} ± {self.margin:.1f}"


def scores(held_out: HeldOut, balanced: bool = False) -> dict[int, float]:
    """Of each sample 1 if the network says what its label says, else 0.

    Balanced, a sample counts the more the rarer its class is: the mean is the mean recall.
    """
    correct = held_out.correct
    if not balanced:
        return {index: float(right) for index, right in correct.items()}
    counts = Counter(held_out.given)
    share = {k: len(held_out.given) / (len(counts) * n) for k, n in counts.items()}
    given = zip(held_out.index, held_out.given, strict=True)
    return {index: share[label] * correct[index] for index, label in given}


def paired_difference(
    ours: Mapping[int, HeldOut],
    theirs: Mapping[int, HeldOut],
    comparisons: int = 1,
    balanced: bool = False,
) -> Difference | None:
    """Compare two losses on the samples that were held out of both, seed by seed.

    Most samples are answered alike by both and say nothing; only the others count, as in McNemar's
    test. The standard error is the larger of two: that between samples, where one that several
    seeds held out counts as one, and that between seeds. The interval is widened by one sample (a
    continuity correction) and for the number of comparisons (Bonferroni's).

    Args:
        ours: of each seed what its network says.
        theirs: of another loss.
        comparisons: how many such differences are looked at together.
        balanced: whether it is the mean recall that is compared, in place of the accuracy.

    Returns:
        None where no held-out sample is shared.
    """
    seeds = [seed for seed in ours if seed in theirs]
    sums: dict[int, float] = {}  # of each sample: right with ours less right with theirs
    counts: Counter[int] = Counter()  # in how many seeds it was held out
    means = []
    for seed in seeds:
        here, there = scores(ours[seed], balanced), scores(theirs[seed], balanced)
        differences = {i: here[i] - there[i] for i in here if i in there}
        if differences:
            means.append(statistics.fmean(differences.values()))
        sums |= {i: sums.get(i, 0.0) + difference for i, difference in differences.items()}
        counts.update(differences.keys())
    total = counts.total()
    if len(counts) < 2:
        return None
    mean = sum(sums.values()) / total
    spread = sum((sums[i] - counts[i] * mean) ** 2 for i in counts)
    error = math.sqrt(spread * len(counts) / (len(counts) - 1)) / total
    if len(means) > 1:
        error = max(error, statistics.stdev(means) / math.sqrt(len(means)))
    tail = (1 - LEVEL) / 2 / max(1, comparisons)
    margin = statistics.NormalDist().inv_cdf(1 - tail) * error + 1 / total
    return Difference(100 * mean, 100 * margin, mean > margin)
