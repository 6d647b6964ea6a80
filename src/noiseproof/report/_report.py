"""A report: everything that it shows, computed once, whatever it is written as."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from ..catalogue import GIVEN
from ..results import Reading
from ._by_epoch import EPOCH_MEASURES, epoch_figures
from ._conclude import make_conclusions
from ._disbelief import DisbeliefTable, find_disbelief
from ._examples import Examples, find_examples
from ._figure import Figure
from ._overview import overview_figures
from ._story import (
    active_passive_figures,
    parameter_figures,
    robustness_figures,
    scaling_figures,
    underfitting_figures,
)
from ._study import Study, make_study
from ._tables import Table, make_tables

MAX_FIGURES = 12  # of a section
# Anchor, title and figures of each section, and the command that trains what it needs.
STORY = (
    ("robust", "Robust", robustness_figures, "noiseproof bench figure-2"),
    ("underfitting", "Underfitting", underfitting_figures, "noiseproof bench figure-1"),
    ("scaling", "Scaling", scaling_figures, "noiseproof bench figure-3"),
    ("active-passive", "Active + passive", active_passive_figures, "noiseproof bench figure-4"),
    ("parameters", "Parameters", parameter_figures, "noiseproof bench figure-5"),
)
LEARNT = ("learnt", "Right and wrong labels learnt")  # of labels as given


@dataclass(frozen=True)
class Section:
    """Figures under one heading."""

    anchor: str
    title: str
    figures: list[Figure]
    text: str = ""
    """shown under the heading"""
    command: str = ""
    """trains what is needed where there are no figures"""


@dataclass(frozen=True, eq=False)
class Report:
    """The tables, figures and conclusions of a study. Each is computed once, when first read."""

    study: Study

    @cached_property
    def conclusions(self) -> list[str]:
        """The main conclusion, and then the sentences that support it."""
        return make_conclusions(self.study)

    @cached_property
    def examples(self) -> Examples:
        """Images with a wrong label, and what each loss makes of them."""
        return find_examples(self.study)

    @cached_property
    def disbelief(self) -> list[DisbeliefTable]:
        """What each loss did with the labels as given that it did not believe."""
        return find_disbelief(self.study)

    @cached_property
    def is_of_given_labels(self) -> bool:
        """Whether it is about labels as given alone: the paper's argument has no place in it."""
        return bool(self.study.conditions) and all(c.noise == GIVEN for c in self.study.conditions)

    @cached_property
    def tables(self) -> list[Table]:
        """A table for each data set and type of noise."""
        return make_tables(self.study)

    @cached_property
    def overview(self) -> list[Figure]:
        """Accuracy against the noise rate."""
        return list(overview_figures(self.study))

    @cached_property
    def story(self) -> list[Section]:
        """The paper's argument in figures. Sections without results have no figures.

        Of labels as given alone, only how much was learnt of right and of wrong labels.
        """
        if self.is_of_given_labels:
            learnt = _make_section(*LEARNT, underfitting_figures(self.study))
            return [learnt] if learnt.figures else []
        return [
            _make_section(anchor, title, make_figures(self.study), command=command)
            for anchor, title, make_figures, command in STORY
        ]

    @cached_property
    def curves(self) -> list[Section]:
        """Every measure by epoch; a measure that no run has is left out."""
        sections = [
            _make_section(
                f"curves-{m.name}", m.heading, epoch_figures(self.study, m), m.describe(self.study)
            )
            for m in EPOCH_MEASURES
        ]
        return [section for section in sections if section.figures]

    @property
    def figures(self) -> list[Figure]:
        """Every figure, in the order of the page."""
        sections = [*self.story, *self.curves]
        return [*self.overview, *(figure for section in sections for figure in section.figures)]


def _make_section(
    anchor: str, title: str, figures: Iterator[Figure], text: str = "", command: str = ""
) -> Section:
    """The first figures under a heading; where there are more, the text says so."""
    shown = list(islice(figures, MAX_FIGURES + 1))
    if len(shown) > MAX_FIGURES:
        text = f"{text} The first {MAX_FIGURES} figures are drawn; the tables have all.".strip()
    return Section(anchor, title, shown[:MAX_FIGURES], text, command)


def make_report(reading: Reading) -> Report:
    """Prepare a report of results.

    >>> from noiseproof.results import Reading
    >>> make_report(Reading([], [])).conclusions
    ['No run has ended well, so there is nothing to conclude.']
    """
    return Report(make_study(reading))
