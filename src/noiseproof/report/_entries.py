"""The cells that are compared, each with a label that tells it from the others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from .. import syntax
from .._errors import UsageError
from .._imports import setting_text
from ..catalogue import NOISES, dataset_title, method_named, setting_of
from ..results import HELD_OUT_ACCURACY, OWN, Cell, following_settings, protocol_settings
from ._words import JudgedOn, noise_words, protocol_title

# Settings that say which cell it is. They are never overrides of a protocol.
_CELL_SETTINGS = ("dataset", "noise", "rate", "loss", "protocol", "variant")


class Condition(NamedTuple):
    """What losses are compared under: a data set with label noise of one rate."""

    dataset: str
    noise: str
    rate: float


@dataclass(frozen=True, eq=False)
class Entry:
    """A cell of the comparison, with its label in this report."""

    cell: Cell
    label: str
    """the method, followed in brackets by the protocol, unless it is the paper's, and overrides"""
    overrides: str
    """settings that differ from the protocol in this cell, but not in all cells of its data set
    and protocol; ``""`` where there are none"""
    shared_overrides: str = ""
    """settings that differ from the protocol in all cells of its data set and protocol"""

    @property
    def condition(self) -> Condition:
        return condition_of(self.cell)

    @property
    def judged_on(self) -> JudgedOn:
        """What its accuracies are of; the test set also where no run has one."""
        columns = {record.accuracy_column for record in self.cell.records}
        return "held-out" if HELD_OUT_ACCURACY in columns else "test"

    @property
    def has_overrides(self) -> bool:
        """Whether something was the user's own, whatever its name: no paper has a number of it."""
        return bool(self.cell.settings["overrides"])

    @property
    def protocol_note(self) -> str:
        """The protocol with its shared overrides, such as ``"paper, but with epochs 20"``."""
        note = f", but with {self.shared_overrides}" if self.shared_overrides else ""
        return protocol_title(self.cell.protocol, self.cell.dataset) + note


def condition_of(cell: Cell) -> Condition:
    return Condition(cell.dataset, cell.noise, cell.rate)


def condition_name(condition: Condition) -> str:
    return f"{dataset_title(condition.dataset)}, {noise_words(condition.noise, condition.rate)}"


def judged_on(entries: Iterable[Entry]) -> JudgedOn:
    """What the accuracies of some losses are of."""
    found = {e.judged_on for e in entries}
    return "both" if len(found) > 1 else found.pop() if found else "test"


def make_entries(compared: list[Cell]) -> list[Entry]:
    """The cells, each called by its method and what else tells it apart, if anything does."""
    all_overrides = _find_overrides(compared)
    shared: dict[tuple[str, str], list[str]] = {}  # left out of the labels, which stay short
    for cell, overrides in zip(compared, all_overrides, strict=True):
        key = cell.dataset, cell.protocol
        shared[key] = [o for o in shared.get(key, overrides) if o in overrides]
    common = [shared[cell.dataset, cell.protocol] for cell in compared]
    own = [
        [o for o in overrides if o not in left_out]
        for overrides, left_out in zip(all_overrides, common, strict=True)
    ]
    seen = Counter(map(_identity, compared, own))
    entries = []
    for cell, overrides, left_out in zip(compared, own, common, strict=True):
        if seen[_identity(cell, overrides)] > 1:  # other data or another loss of the same name
            overrides = [*overrides, [*cell.records, *cell.failed][0].run.folder]
        notes = [*([cell.protocol] if cell.protocol != "paper" else []), *overrides]
        said = any(note in overrides for note in _user_overrides(cell))
        method = cell.method.removesuffix(OWN) if said else cell.method
        label = method + (f" ({', '.join(notes)})" if notes else "")
        entries.append(Entry(cell, label, ", ".join(overrides), ", ".join(left_out)))
    return entries


def _identity(cell: Cell, overrides: list[str]) -> Hashable:
    """What tells a cell from others in a table."""
    return condition_of(cell), cell.method, cell.protocol, tuple(overrides)


def _find_overrides(compared: list[Cell]) -> list[list[str]]:
    """For each cell, the settings that differ from its protocol, such as ``["epochs 20"]``.

    Where the protocol does not set a value, the most frequent one of the data set and protocol
    counts as the protocol's.
    """
    by_protocol: dict[Hashable, dict[str, Any]] = {}
    expected = []
    for cell in compared:
        key = _protocol_key(cell)
        if key not in by_protocol:
            by_protocol[key] = protocol_settings(cell)
        expected.append(by_protocol[key])
    most_frequent = _most_frequent(compared, expected)
    return [
        [*_overrides(cell, known, most_frequent), *_user_overrides(cell)]
        for cell, known in zip(compared, expected, strict=True)
    ]


def _overrides(
    cell: Cell, expected: dict[str, Any], most_frequent: dict[tuple[str, str, str], str]
) -> Iterator[str]:
    for name, value in _other_settings(cell):
        if name in expected:
            differs = value != expected[name]
        else:
            differs = repr(value) != most_frequent[cell.dataset, cell.protocol, name]
        if differs:
            yield setting_text(name, value)
    variant = cell.settings["variant"]
    if cell.noise in NOISES and len(NOISES[cell.noise].variants) > 1 and variant != cell.protocol:
        yield f"noise as {variant}"


def _other_settings(cell: Cell) -> Iterable[tuple[str, Any]]:
    left_out = (*_CELL_SETTINGS, "overrides", "imports")
    return ((n, v) for n, v in cell.settings.items() if n not in left_out)


def _most_frequent(
    compared: list[Cell], expected: list[dict[str, Any]]
) -> dict[tuple[str, str, str], str]:
    """The most frequent value of each setting that is not expected, by data set and protocol."""
    counts: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for cell, known in zip(compared, expected, strict=True):
        for name, value in _other_settings(cell):
            if name not in known:
                counts[cell.dataset, cell.protocol, name][repr(value)] += 1
    return {key: counter.most_common(1)[0][0] for key, counter in counts.items()}


def _user_overrides(cell: Cell) -> list[str]:
    """What of its runs was the user's own."""
    own = cell.settings["overrides"]
    return [f"own {' and '.join(own)}"] if own else []


def _protocol_key(cell: Cell) -> Hashable:
    """Cells of one key have the same settings by their protocol.

    Of the loss they depend on the published method alone, which may bring its own weight decay.
    """
    loss: Hashable
    method = method_named(cell.method)
    if method is None:
        loss = read_loss(cell.settings["loss"]) is None
    else:
        try:
            loss = (
                method,
                setting_of(
                    method, cell.dataset, noise=cell.noise, rate=cell.rate, protocol=cell.protocol
                ),
            )
        except UsageError:
            loss = method, None
    follows = tuple(following_settings(cell.method, cell.settings).items())
    return cell.dataset, cell.protocol, cell.noise, loss, follows


@lru_cache(maxsize=1 << 15)
def read_loss(loss: str) -> syntax.Tree | None:
    try:
        return syntax.read(loss)
    except UsageError:
        return None
