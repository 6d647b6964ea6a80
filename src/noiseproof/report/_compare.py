"""Every cell beside the published number, and whether the two agree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ..catalogue import CLEAN, rank_of
from ..results import Published, published
from ._entries import Condition, Entry
from ._study import Study

# Two numbers agree within so many points of accuracy, or within so many standard deviations.
MAX_POINTS, MAX_Z_SCORE = 1.0, 2.0
Verdict = Literal["agrees", "above", "below", "not run", "not published"]
_NOISE_ORDER = {CLEAN: 0, "symmetric": 1, "asymmetric": 2}


@dataclass(frozen=True)
class Comparison:
    """A method under a condition: our number, the paper's, and those of later papers."""

    condition: Condition
    method: str
    ours: Entry | None
    paper: Published | None
    later: tuple[Published, ...] = ()
    """what later papers report of the same method and condition"""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, in points."""
        if self.ours is None or self.paper is None:
            return None
        return round(round(self.ours.cell.mean, 2) - self.paper.mean, 2)

    @property
    def z_score(self) -> float | None:
        """The difference divided by its standard deviation, for one run of theirs and one of ours.

        A single run of ours is assumed to have the deviation of theirs.
        """
        if self.difference is None or self.ours is None or self.paper is None:
            return None
        theirs, own = self.paper.std, self.ours.cell.deviation
        if theirs is None:
            return None
        deviation = math.hypot(theirs, theirs if math.isnan(own) else own)
        return self.difference / deviation if deviation else None

    @property
    def verdict(self) -> Verdict:
        if self.ours is None:
            return "not run"
        if self.difference is None:
            return "not published"
        within_points = abs(self.difference) <= MAX_POINTS
        if within_points or (self.z_score is not None and abs(self.z_score) <= MAX_Z_SCORE):
            return "agrees"
        return "above" if self.difference > 0 else "below"


def comparisons(study: Study) -> list[Comparison]:
    """Compare every cell of these results, and list what the paper has of their noise and we not.

    A loss that was run with several protocols or settings has a comparison for each.
    """
    noises = {(e.cell.dataset, e.cell.noise) for e in study.entries}
    numbers: dict[tuple[Condition, str], list[Published]] = {}
    for p in published():
        if (p.dataset, p.noise) in noises:
            key = Condition(p.dataset, p.noise, p.rate), p.method
            numbers.setdefault(key, []).append(p)
    ours: dict[tuple[Condition, str], list[Entry]] = {}
    for entry in study.entries:
        if entry.cell.records:
            ours.setdefault((entry.condition, entry.cell.method), []).append(entry)
    found = []
    for key in dict.fromkeys([*ours, *numbers]):
        condition, method = key
        candidates = numbers.get(key, [])
        paper = next((p for p in candidates if p.table.startswith("table-")), None)
        later = tuple(p for p in candidates if not p.table.startswith("table-"))
        own = [e for e in ours.get(key, []) if e.has_overrides]
        same = [e for e in ours.get(key, []) if not e.has_overrides]
        found += [Comparison(condition, method, e, None) for e in own]
        if same:
            found += [Comparison(condition, method, e, paper, later) for e in same]
        elif paper is not None:
            found.append(Comparison(condition, method, None, paper, later))
    datasets = list(dict.fromkeys(e.cell.dataset for e in study.entries))
    return sorted(found, key=lambda c: (
        datasets.index(c.condition.dataset),
        _NOISE_ORDER.get(c.condition.noise, len(_NOISE_ORDER)), c.condition.noise,
        rank_of(c.method), _protocol_order(c.ours), c.condition.rate,
    ))  # fmt: skip


def _protocol_order(entry: Entry | None) -> tuple[bool, str]:
    """Sorts the paper's protocol before others."""
    return (False, "") if entry is None else (entry.cell.protocol != "paper", entry.overrides)
