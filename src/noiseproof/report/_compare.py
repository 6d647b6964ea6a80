"""Every cell beside what was published of it, and whether the two agree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ..results import Published, published, rank_of
from ._names import CLEAN
from ._study import Entry, Study, Where

POINTS, DEVIATIONS = 1.0, 2.0  # what counts as agreement: so many points, or so many deviations
Verdict = Literal["agrees", "above", "below", "not run", "not published"]


@dataclass(frozen=True)
class Comparison:
    """One cell: ours, the paper's, and what later papers measured when they ran it again."""

    where: Where
    method: str
    ours: Entry | None
    paper: Published | None
    later: tuple[Published, ...] = ()

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, in points."""
        if self.ours is None or self.paper is None:
            return None
        return round(round(self.ours.cell.mean, 2) - self.paper.mean, 2)

    @property
    def deviations(self) -> float | None:
        """The difference in deviations of a difference between one run of theirs and one of ours.

        A single run of ours is taken to scatter as theirs did.
        """
        if self.difference is None or self.ours is None or self.paper is None:
            return None
        theirs, own = self.paper.std, self.ours.cell.deviation
        if theirs is None:
            return None
        both = math.hypot(theirs, theirs if math.isnan(own) else own)
        return self.difference / both if both else None

    @property
    def verdict(self) -> Verdict:
        if self.ours is None:
            return "not run"
        if self.difference is None:
            return "not published"
        near = abs(self.difference) <= POINTS
        if near or (self.deviations is not None and abs(self.deviations) <= DEVIATIONS):
            return "agrees"
        return "above" if self.difference > 0 else "below"


def comparisons(study: Study) -> list[Comparison]:
    """Every cell of these results, and every one that the paper has of their data sets and noise.

    A loss that was run in several ways (protocols, or any other setting) has a line for each.
    """
    kinds = {e.where[:2] for e in study.entries}
    figures: dict[tuple[Where, str], list[Published]] = {}
    for p in published():
        if (p.dataset, p.noise) in kinds:
            figures.setdefault(((p.dataset, p.noise, p.rate), p.method), []).append(p)
    ours: dict[tuple[Where, str], list[Entry]] = {}
    for entry in study.entries:
        if entry.cell.records:
            ours.setdefault((entry.where, entry.cell.method), []).append(entry)
    found = []
    for key in dict.fromkeys([*ours, *figures]):
        where, method = key
        known = figures.get(key, [])
        paper = next((p for p in known if p.table.startswith("table-")), None)
        later = tuple(p for p in known if not p.table.startswith("table-"))
        if key in ours:
            found += [Comparison(where, method, e, paper, later) for e in ours[key]]
        elif paper is not None:
            found.append(Comparison(where, method, None, paper, later))
    order = list(dict.fromkeys(e.cell.dataset for e in study.entries))
    return sorted(found, key=lambda c: (
        order.index(c.where[0]), _NOISES.get(c.where[1], len(_NOISES)), c.where[1],
        rank_of(c.method), _way(c), c.where[2],
    ))  # fmt: skip


_NOISES = {CLEAN: 0, "symmetric": 1, "asymmetric": 2}


def _way(c: Comparison) -> tuple[bool, str]:
    """The paper's protocol first, then other ways to run the same loss."""
    return (False, "") if c.ours is None else (c.ours.cell.protocol != "paper", c.ours.variation)
