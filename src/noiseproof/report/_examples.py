"""Training images with a wrong label, and what the network of each loss says of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from .._errors import UsageError
from ..catalogue import CLEAN
from ..results import Example, Record, read_examples
from ._entries import Condition, Entry
from ._study import Study

MAX_ROWS = 6
_MAX_CONDITIONS = 12  # that are searched for runs with examples
_MAX_WIDTH = 14  # letters
Belief = Literal["truth", "label", "neither"]


@dataclass(frozen=True)
class Answer:
    """What a network says of an image."""

    text: str
    """the class"""
    probability: float
    belief: Belief
    """whether it is the true class, or the one of the wrong label"""


@dataclass(frozen=True)
class ExampleRow:
    """The answers of one loss."""

    label: str
    answers: list[Answer]
    truth: float | None
    """in percent, of all images with a wrong label those that it predicts as what they are"""
    believed: float | None
    """likewise, as what their label says"""


@dataclass(frozen=True)
class Examples:
    """Losses by images. Without rows there is nothing to show."""

    images: list[Example] = field(default_factory=list)
    rows: list[ExampleRow] = field(default_factory=list)
    condition: str = ""
    seed: int = 0
    num_losses: int = 0
    """how many there are, of which the rows are some"""
    problems: list[str] = field(default_factory=list)
    """files that are damaged"""

    @property
    def width(self) -> int:
        """Of a column, in letters: longer names of classes are broken."""
        names = [name for image in self.images for name in (image.given, image.true)]
        return min(max(map(len, names), default=0), _MAX_WIDTH)


def find_examples(study: Study) -> Examples:
    """The examples of the noise under which cross entropy loses most, or losses differ most.

    The rows are cross entropy and some of the others, from the worst to the best.
    """
    problems: list[str] = []
    for condition in sorted(_noisy(study), key=lambda c: -_gap(study.at(c)))[:_MAX_CONDITIONS]:
        entries = study.at(condition)
        seed = entries[0].cell.seeds[0]
        answered = _answered(entries, seed, problems)
        if len(answered) > 1:
            return _make(study.name(condition), seed, answered, problems)
    return Examples(problems=problems)


def _noisy(study: Study) -> Iterator[Condition]:
    return (c for c in study.conditions if c.noise != CLEAN and len(study.at(c)) > 1)


def _gap(entries: list[Entry]) -> float:
    means = [e.cell.mean for e in entries]
    worst = next((e.cell.mean for e in entries if e.cell.method == "CE"), min(means))
    return max(means) - worst


Answered = list[tuple[Entry, Record, list[Example]]]


def _answered(entries: list[Entry], seed: int, problems: list[str]) -> Answered:
    """The losses whose runs of a seed have the same images as the first of them."""
    found: Answered = []
    for entry in entries:
        record = next((r for r in entry.cell.records if r.run.seed == seed), None)
        if record is None:
            continue
        try:
            examples = read_examples(record.source)
        except (UsageError, OSError) as error:
            problems.append(str(error).split("\n")[0])
            continue
        if examples and (not found or _images(examples) == _images(found[0][2])):
            found.append((entry, record, examples))
    return found


def _images(examples: list[Example]) -> list[tuple[int, str, str, str]]:
    return [(e.index, e.given, e.true, e.picture) for e in examples]


def _make(condition: str, seed: int, answered: Answered, problems: list[str]) -> Examples:
    ce = [one for one in answered if one[0].cell.method == "CE"][:1]
    others = sorted((one for one in answered if one not in ce), key=_mean)
    shown = sorted([*ce, *_spread(others, MAX_ROWS - len(ce))], key=_mean)
    rows = [
        ExampleRow(
            entry.label,
            [Answer(e.predicted, e.probability, _belief(e)) for e in examples],
            _percent(record, "wrong_accuracy"),
            _percent(record, "memorised"),
        )
        for entry, record, examples in shown
    ]
    images = answered[0][2]
    return Examples(images, rows, condition, seed, len(answered), problems)


def _mean(one: tuple[Entry, Record, list[Example]]) -> float:
    return one[0].cell.mean


def _spread(answered: Answered, most: int) -> Answered:
    """So many of them, evenly from the first to the last."""
    last = len(answered) - 1
    if last < most:
        return answered
    return [answered[i * last // (most - 1)] for i in range(most)]


def _belief(example: Example) -> Belief:
    if example.predicted == example.true:
        return "truth"
    return "label" if example.predicted == example.given else "neither"


def _percent(record: Record, column: str) -> float | None:
    value = record.column(column)[-1] if record.history else math.nan
    return 100 * value if math.isfinite(value) else None
