"""What is measured by epoch, of every loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..catalogue import GIVEN
from ._curves import Measure, agreement, column, held_out_accuracy, mean_curve
from ._figure import (
    MAX_PANELS,
    MEMORISED,
    Figure,
    Panel,
    drawn_labels,
    figure_by_noise,
    in_tables_alone,
    sample,
    with_clean,
    without_none,
)
from ._study import Study
from ._words import ACCURACY_WORDS


class EpochMeasure(NamedTuple):
    """A measure that a report plots by epoch for all runs."""

    name: str
    heading: str
    title: str
    measure: Measure
    description: str
    """``{tested}`` stands for what networks are tested on, and ``{clean}`` for whether it is known
    to be clean"""

    def describe(self, study: Study) -> str:
        """The description for these results."""
        tested = {
            "test": "the test set", "held-out": "held-out labels",
            "both": "the test set or, where there is none, on held-out labels",
        }  # fmt: skip
        own = any(condition.noise == GIVEN for condition in study.conditions)
        return self.description.format(
            tested=tested[study.judged_on()], clean="" if own else "clean "
        )


EPOCH_MEASURES = (
    EpochMeasure(
        "accuracy", "Test accuracy", "test accuracy", column("test_accuracy"),
        "On the {clean}test set, %.",
    ),
    EpochMeasure(
        "averaged-accuracy", "Test accuracy of the averaged weights",
        "test accuracy of the averaged weights", column("test_accuracy_ema"),
        "On the {clean}test set, %, of an average of the weights over the last steps.",
    ),
    EpochMeasure(
        "held-out-accuracy", "Accuracy on held-out labels", ACCURACY_WORDS["held-out"],
        held_out_accuracy,
        "On labels as noisy as those trained on, %: the level is not the true accuracy.",
    ),
    EpochMeasure(
        "agreement", "Agreement with the labels", "given labels agreed with", agreement,
        "Of the labels as given, how many the network predicts while it trains, %. Where a part "
        "is wrong, a loss that comes to 100 % has learnt that part by heart.",
    ),
    EpochMeasure(
        "memorised", "Memorisation", "wrong labels memorised", MEMORISED,
        "Of the samples whose label is wrong, how many the network predicts as labelled, %.",
    ),
    EpochMeasure(
        "calibration", "Calibration", "calibration error", column("calibration_error"),
        "How far confidence is from accuracy on {tested}: the expected error in 15 bins, %.",
    ),
)  # fmt: skip


def epoch_figures(study: Study, measure: EpochMeasure) -> Iterator[Figure]:
    """A measure by epoch for every condition, with a figure for each data set and noise."""
    for conditions in with_clean(study).values():
        drawn = drawn_labels(study, conditions)
        note = in_tables_alone(study, conditions, drawn)
        panels = []
        for condition in sample(conditions, MAX_PANELS):
            entries = [e for e in study.at(condition) if e.label in drawn]
            curves = without_none(mean_curve(e.cell, e.label, measure.measure) for e in entries)
            if curves:
                panels.append(Panel(study.noise_words(condition), "epochs", curves, note=note))
        if panels:
            description = measure.describe(study)
            yield figure_by_noise(
                study, measure.name, conditions, description, panels, f": {measure.title}"
            )
