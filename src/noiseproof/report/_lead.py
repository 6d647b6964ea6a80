"""How sure it is that one loss is better than another: differences that are paired by seed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ._entries import Entry
from ._styles import PERCENT

Verdict = Literal["clear", "level", "unclear", "one seed"]
# A clear lead is beyond its 95 % interval: Student's t at 97.5 % by degrees of freedom.
_T = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23,
      15: 2.13, 20: 2.09, 30: 2.04, 60: 2.00}  # fmt: skip
RULE = (
    "The number after ± is the standard error over the seeds, and losses are compared seed by "
    f"seed. A loss is best if it leads all others by more than the 95{PERCENT} interval of the "
    "difference (Student's t). It is level with one from which it differs by no more than one "
    "standard deviation of that difference over the seeds. Otherwise the two cannot be told apart, "
    "and more seeds may help. Other test samples would add to the uncertainty."
)
_WORDS: dict[Verdict, str] = {
    "clear": "", "level": "level", "unclear": "not told apart", "one seed": "",
}  # fmt: skip


@dataclass(frozen=True)
class Lead:
    """How many points of accuracy a loss is before another."""

    points: float
    standard_error: float | None
    """of the differences seed by seed; None where fewer than two seeds are shared"""
    num_seeds: int
    """that both have"""
    verdict: Verdict

    def __str__(self) -> str:
        error = "" if self.standard_error is None else f" ± {self.standard_error:.2f}"
        return f"{self.points:.2f}{error}"

    @property
    def note(self) -> str:
        """What a table says of it behind the number."""
        return _WORDS[self.verdict]


def lead_of(best: Entry, other: Entry) -> Lead:
    """Compare two losses over the seeds that both have."""
    ours, theirs = (dict(zip(e.cell.seeds, e.cell.accuracies, strict=True)) for e in (best, other))
    differences = [ours[seed] - theirs[seed] for seed in ours if seed in theirs]
    if len(differences) < 2:
        return Lead(best.cell.mean - other.cell.mean, None, len(differences), "one seed")
    count, points = len(differences), statistics.fmean(differences)
    deviation = statistics.stdev(differences)
    error = deviation / math.sqrt(count)
    verdict: Verdict = "level" if points <= deviation else "unclear"
    if points > _quantile(count - 1) * error:
        verdict = "clear"
    return Lead(points, error, count, verdict)


def rank(entries: Iterable[Entry]) -> list[tuple[Entry, Lead | None]]:
    """Losses from the best to the worst, each with the lead of the best over it."""
    best, *others = sorted(entries, key=lambda e: -e.cell.mean)
    return [(best, None), *((e, lead_of(best, e)) for e in others)]


def within_deviation(a: Entry, b: Entry) -> bool:
    """Whether two means differ by no more than their deviations; False where one is unknown.

    This is "level" for runs that are not paired.
    """
    deviation = math.hypot(a.cell.deviation, b.cell.deviation)
    return not math.isnan(deviation) and abs(a.cell.mean - b.cell.mean) <= deviation


def _quantile(degrees: int) -> float:
    """Student's t, of degrees that are not listed that of fewer, which is on the safe side."""
    return _T[max(known for known in _T if known <= degrees)]
