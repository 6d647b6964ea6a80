"""Which loss for this data: a handful trained side by side, ranked by held-out noisy labels."""

from __future__ import annotations

import hashlib
import math
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from .. import bench as benches
from .. import catalogue
from .._errors import UsageError
from ..bench import Bench, Plan, RunEvent
from ..results import (
    HELD_OUT_ACCURACY,
    TEST_ACCURACY,
    HeldOut,
    Record,
    read,
    read_held_out,
)
from ..runs import Run
from ._command import command_of
from ._handful import HANDFUL, REASONS
from ._paired import Difference, paired_difference, scores

if TYPE_CHECKING:
    from ..data import Dataset

_SMALL = 5_000  # samples up to which three seeds are cheap
Watch = Callable[[RunEvent], None]


@dataclass(frozen=True)
class Option:
    """A loss that was tried.

    Attributes:
        loss: its text.
        reason: why it was among those tried.
        held_out: the accuracy of each seed on held-out labels as they are given, from 0 to 1; the
            mean recall where the runs have balanced class weights.
        test: that on the test set, where there is one; nothing is chosen by it.
        seconds: of training, over all seeds.
        behind: how far it is behind the best; None for the best, and where it is not known.
        error: why it could not be trained, if it could not.
    """

    loss: str
    reason: str
    held_out: tuple[float, ...]
    test: tuple[float, ...]
    seconds: float
    behind: Difference | None = None
    error: str | None = None

    @property
    def mean(self) -> float:
        """Of the held-out accuracy over the seeds; NaN if it could not be trained."""
        return fmean(self.held_out) if self.held_out else math.nan

    @property
    def test_mean(self) -> float:
        return fmean(self.test) if self.test else math.nan


@dataclass(frozen=True)
class Choice:
    """What `choose` found.

    Attributes:
        options: the losses from the best to the worst.
        run: the run that trains with the chosen one.
        num_held_out: how many different samples were held out.
        num_seeds: how often each loss was trained.
        command: the command that trains with the chosen loss; empty for data in memory.
        note: what else should be known; may be empty.
    """

    options: tuple[Option, ...]
    run: Run
    num_held_out: int
    num_seeds: int
    command: str = ""
    note: str = ""

    @property
    def measure(self) -> str:
        """What the losses are ranked by."""
        return "mean recall" if self.run.class_weight == "balanced" else "accuracy"

    @property
    def loss(self) -> str:
        """The chosen one: the highest held-out accuracy."""
        return self.options[0].loss

    @property
    def level(self) -> list[str]:
        """The losses that cannot be told apart from the chosen one, with it."""
        others = self.options[1:]
        level = [o.loss for o in others if o.held_out and not (o.behind and o.behind.told_apart)]
        return [self.loss, *level]

    @property
    def sure(self) -> str:
        """The sentence that says how sure the choice is."""
        trained = [o for o in self.options if o.held_out]
        on = f"on {self.num_held_out:,} held-out sample{'' if self.num_held_out == 1 else 's'}"
        if self.num_seeds > 1:
            on += f" and {self.num_seeds} seeds"
        if len(trained) == 1:
            return f"{self.loss} is the only one that was trained."
        if len(self.level) == 1:
            second = min((o for o in trained[1:] if o.behind), key=_distance)
            return (
                f"{self.loss} is the best of {len(trained)} {on}: {second.behind} points before "
                f"{second.loss}."
            )
        *most, last = self.level
        listed = f"{', '.join(most)} and {last}"
        if len(self.level) == len(trained):
            listed = f"The {len(trained)} losses"
        what = f"{listed} cannot be told apart {on}"
        return (
            f"{what}; {self.loss} has the highest {self.measure}. More seeds or more data may tell."
        )

    def rows(self) -> list[dict[str, str]]:
        """The table, as texts by column."""
        tested = any(o.test for o in self.options)
        found = []
        for option in self.options:
            held_out = "held out" if self.measure == "accuracy" else f"held out, {self.measure}"
            row = {"loss": option.loss, held_out: _percent(option.mean)}
            row["behind"] = "" if option.behind is None else str(option.behind)
            if tested:
                row["test"] = _percent(option.test_mean)
            row["s"] = f"{option.seconds:.1f}"
            row["why it is tried"] = option.error or option.reason
            found.append(row)
        return found

    def draw(self, path: Path | str) -> None:
        """Write a picture as png, svg or html; needs ``pip install noiseproof[plot]``."""
        from ._charts import draw_choice

        draw_choice(self, Path(path))

    def __str__(self) -> str:
        rows = self.rows()
        widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in rows[0]}
        cells = [{name: name for name in rows[0]}, *rows]
        lines = ["  ".join(row[n].ljust(widths[n]) for n in widths).rstrip() for row in cells]
        return "\n".join([*lines, "", *filter(None, (self.sure, self.note, self.command))])


def choose(
    data: Dataset | Run | str,
    losses: Iterable[str] = (),
    *,
    seeds: Sequence[int] = (),
    out: Path | str | None = None,
    data_root: Path | str | None = None,
    workers: int | None = None,
    device: str = "auto",
    watch: Watch | None = None,
    **settings: Any,
) -> Choice:
    """Train a handful of losses side by side and rank them by held-out labels as they are given.

    No clean label is needed. Under symmetric noise the expected accuracy on noisy labels is an
    increasing function of that on clean ones, so the ranking is right but for chance; under other
    noise it may not be (docs/choose.md has both measured).

    Args:
        data: a data set by name, ``csv:FILE``, ``folder:DIR``, ..., a `Run` with what all have in
            common, or a `noiseproof.data.Dataset`.
        losses: to try. Default: `HANDFUL`.
        seeds: each loss is trained with each of them. Default: three up to 5,000 samples, else one.
        out: the folder of results; with it, what is there is not trained again.
        data_root: where data sets lie.
        workers: processes; by default one for each core, or for each GPU. A data set in memory is
            trained in this process.
        device: auto, cpu, cuda, ...
        watch: called with everything that happens to a run.
        settings: of every run, as in `Run`: ``epochs=10``, ``noise="symmetric"``, ``holdout=0.1``.

    >>> from noiseproof import data
    >>> found = choose(data.load("digits"), ["ce", "mae"], seeds=[0], epochs=2, device="cpu")
    >>> len(found.options), found.num_held_out
    (2, 287)
    """
    with ExitStack() as stack:
        if out is None:
            out = stack.enter_context(tempfile.TemporaryDirectory(prefix="noiseproof-"))
        if isinstance(data, Run | str):
            shared = Run(dataset=data) if isinstance(data, str) else data
            plan = plan_of(replace(shared, **settings), losses, seeds, out, device=device)
            outcome = benches.run(
                plan, out, data_root=data_root, workers=workers, device=device, watch=watch
            )
            return conclude(plan, outcome)
        return _choose_in_memory(data, losses, seeds, Path(out), device, watch, settings)


def plan_of(
    shared: Run,
    losses: Iterable[str],
    seeds: Sequence[int],
    out: Path | str,
    *,
    device: str = "auto",
    workers: int | None = None,
) -> Plan:
    """The runs of a choice, and which of them are done."""
    content = shared.content()
    if content is None:
        known = catalogue.DATASETS.get(shared.resolve().dataset)
        samples = _SMALL + 1 if known is None else known.sizes[0]
    else:
        samples = len(content.train)
    runs = runs_of(shared, losses, seeds, samples)
    number = len({run.loss for run in runs})
    title = f"choosing among {number} losses" if number > 1 else "trying one loss"
    bench = Bench("choose", title, "which loss suits the data", runs)
    return benches.plan(bench, out, workers=workers, device=device)


def runs_of(
    shared: Run, losses: Iterable[str], seeds: Sequence[int], samples: int
) -> tuple[Run, ...]:
    """What is trained, the first seed of all losses first."""
    texts = list(dict.fromkeys(losses or (c.loss for c in HANDFUL)))
    if shared.holdout is None:
        shared = replace(shared, holdout=catalogue.suited_holdout(samples))
    if not shared.holdout:
        raise UsageError("losses are ranked by what is held out: give holdout above 0, such as 0.2")
    if shared.choose_epoch is not None:
        raise UsageError(
            "losses are ranked by what is held out, and no epoch is chosen by it too: leave out "
            "choose_epoch"
        )
    shared = replace(shared, choose_epoch=False)  # which auto would do
    seeds = list(seeds) or ([0, 1, 2] if samples <= _SMALL else [0])
    return tuple(replace(shared, loss=loss, seed=seed) for seed in seeds for loss in texts)


def conclude(plan: Plan, outcome: benches.Outcome) -> Choice:
    """Rank what a bench of `plan_of` trained."""
    by_hash = {record.hash: record for record in outcome.records}
    failed = dict(outcome.failed)
    found: list[tuple[Run, Record | None, str | None]] = []
    for run in plan.bench.runs:
        record = next((by_hash[r.hash] for r in plan.resolutions(run) if r.hash in by_hash), None)
        found.append((run, record, failed.get(run)))
    run = plan.bench.runs[0]
    content = run.content()
    note = "" if content is None else _imbalance_note(content.train.labels)
    choice = rank(found, note)
    return replace(choice, command=command_of(choice.run))


def _choose_in_memory(
    data: Dataset,
    losses: Iterable[str],
    seeds: Sequence[int],
    out: Path,
    device: str,
    watch: Watch | None,
    settings: Mapping[str, Any],
) -> Choice:
    from ..train import Progress, UnpredictedClassWarning, fit_many

    shared = Run(**{"device": device, **settings})
    runs = runs_of(shared, losses, seeds, len(data.train))
    # Another list of runs is another name: runs with data in memory are told apart by it alone.
    name = "choose-" + hashlib.sha256(repr(runs).encode()).hexdigest()[:8]

    def tell(progress: Progress) -> None:
        if watch is not None:
            accuracy = progress.row.get(HELD_OUT_ACCURACY)
            watch(RunEvent("epoch", progress.run.hash, progress.epoch, progress.epochs, accuracy))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnpredictedClassWarning)  # each run keeps a note of it
        results = fit_many(
            runs, out=out, on_epoch=tell, keep_models=False, overrides={"data": data}, name=name
        )
    found: list[tuple[Run, Record | None, str | None]] = []
    for run, result in zip(runs, results, strict=True):
        assert result.folder is not None
        if watch is not None:
            accuracy = result.accuracy if result.history else None
            watch(RunEvent("ended", result.run.hash, accuracy=accuracy, error=result.error))
        records = read(result.folder).records
        found.append((run, records[0] if records else None, result.error))
    return rank(found, _imbalance_note(data.train.labels))


def rank(found: Sequence[tuple[Run, Record | None, str | None]], note: str = "") -> Choice:
    """The losses of these runs from the best to the worst, by what was held out alone.

    Args:
        found: runs, each with its record or with why there is none.
        note: for the choice.
    """
    predictions: dict[str, dict[int, HeldOut]] = {}
    options: dict[str, Option] = {}
    for run, record, error in found:
        option = options.setdefault(
            run.loss, Option(run.loss, REASONS.get(run.loss, ""), (), (), 0.0)
        )
        error = error or (record.error if record is not None else "it was not trained")
        if record is None or error is not None or not record.history:
            options[run.loss] = replace(option, error=error)
            continue
        test = record.column(TEST_ACCURACY)[-1]
        accuracy = record.column(HELD_OUT_ACCURACY)[-1]
        if (kept := read_held_out(record.source)) is not None:
            predictions.setdefault(run.loss, {})[run.seed] = kept
            if run.class_weight == "balanced":
                accuracy = fmean(scores(kept, balanced=True).values())
        options[run.loss] = replace(
            option,
            held_out=(*option.held_out, accuracy),
            test=option.test if math.isnan(test) else (*option.test, test),
            seconds=option.seconds + sum(record.column("seconds")),
        )
    # One that failed with a seed has fewer of them: it is no choice.
    options = {k: replace(o, held_out=(), test=()) if o.error else o for k, o in options.items()}
    best, *others = sorted(options.values(), key=_order)
    if best.error:
        raise UsageError(f"no loss could be trained: {best.error}")
    rivals = sum(not o.error for o in others)
    chosen = next(run for run, *_ in found if run.loss == best.loss)
    balanced = chosen.class_weight == "balanced"
    ours = predictions.get(best.loss, {})
    compared = [
        o
        if o.error
        else replace(
            o,
            behind=paired_difference(ours, predictions.get(o.loss, {}), rivals, balanced),
        )
        for o in others
    ]
    samples = {i for kept in ours.values() for i in kept.index}
    seeds = len({run.seed for run, *_ in found})
    notes = [] if balanced else [_learnt_nothing_note(ours), note]
    notes.append(_averages_note([record for _, record, _ in found if record], balanced))
    note = " ".join(filter(None, notes))
    trained = replace(chosen, holdout=None, choose_epoch=None, seed=Run.seed)
    return Choice((best, *compared), trained, len(samples), seeds, note=note)


def _learnt_nothing_note(predictions: Mapping[int, HeldOut]) -> str:
    """A line where even the best is no better than one answer for all."""
    kept = list(predictions.values())
    correct = sum(sum(held_out.correct.values()) for held_out in kept)
    one = sum(max(Counter(held_out.given).values(), default=0) for held_out in kept)
    if not kept or correct > one:
        return ""
    share = one / sum(len(held_out.given) for held_out in kept)
    return (
        f"No loss is better than always naming the most frequent class, {_percent(share)}: train "
        "longer before you choose."
    )


def _averages_note(records: Sequence[Record], balanced: bool) -> str:
    """A line where a loss is ranked by other weights than it ends with, which is so of auto."""
    ended = [r for r in records if r.run.method == catalogue.AUTO and r.error is None and r.history]
    if not ended:
        return ""
    averaged = fmean(r.column(f"{HELD_OUT_ACCURACY}_ema")[-1] for r in ended)
    known = "" if balanced or math.isnan(averaged) else f" (the last: {_percent(averaged)})"
    return (
        "auto is ranked by its last weights, not averaged; trained with, it ends with averaged "
        f"ones{known}, of the epoch that does best on what is held out."
    )


def _order(option: Option) -> tuple[bool, float, str]:
    return bool(option.error), -option.mean if option.held_out else 0.0, option.loss


def _distance(option: Option) -> float:
    assert option.behind is not None
    return option.behind.points


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{share:.2%}".replace("%", " %")


def _imbalance_note(labels: Any) -> str:
    from ._recommend import recommend

    if recommend(labels).class_weight is None:
        return ""
    return (
        "The classes are of very different size, and accuracy says little of the rare ones: add "
        "--class-weight balanced, which also ranks by the mean recall (docs/imbalance.md)."
    )
