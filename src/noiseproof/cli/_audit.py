"""``noiseproof audit``: which labels are wrong."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from noiseproof._errors import UsageError, require

from ._flags import Flags
from ._tables import say, show
from ._words import count, duration

if TYPE_CHECKING:
    from noiseproof.runs import Run
    from noiseproof.tools import Audit
    from noiseproof.tools._samples import Samples

_SETTINGS = (
    "dataset", "test", "label", "text", "image", "truth", "ignore", "image_size", "skip_unreadable",
    "noise", "rate", "variant", "protocol", "seed", "stream",
)  # fmt: skip
"""The settings that say which labels are audited: part of the command that applies corrections."""

_BY_HEART = 0.97  # the share of labels, from which on votes are in doubt


def audit(
    probabilities: Annotated[
        Path | None,
        tyro.conf.Positional,
        tyro.conf.arg(metavar="[FILE.npz]", help_behavior_hint=""),
    ] = None,
    /,
    run: Annotated[Flags, tyro.conf.arg(name="")] = Flags(),  # noqa: B008  # frozen
    *,
    folds: int = 5,
    votes: tyro.conf.FlagCreatePairsOff[bool] = False,
    annotator: Annotated[
        str, tyro.conf.arg(metavar="COLUMN", help_behavior_hint="(default: none)")
    ] = "",
    top: int = 20,
    number: int | None = None,
    cleanlab: tyro.conf.FlagCreatePairsOff[bool] = False,
    apply: Annotated[
        Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: none)")
    ] = None,
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("audit"),
    data_root: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    workers: int | None = None,
) -> None:
    """Find labels that are likely wrong: noiseproof audit --dataset csv:reviews.csv --text review.

    Networks are trained on parts of the data and say what they think of the rest. Suspects go to
    suspects.csv and to a page, suspects.html, on which one goes through them with the keyboard. The
    page exports corrections.csv; --apply corrections.csv writes a corrected copy of the data. An
    audit that was stopped goes on where it was.

    Args:
        probabilities: audit these in place of training: an npz file with the arrays probabilities
            [N, K] and labels [N], and perhaps classes, names and annotators.
        run: the data and how networks are trained on it.
        folds: the parts; each is judged by a network that was trained on the others.
        votes: train one network on everything, and take what it says of each sample over the
            epochs: four times faster, and about as good on images with a robust loss; not for
            networks that learn every label by heart, as those for texts do.
        annotator: of a table, the column that says who gave each label.
        top: suspects that are printed.
        number: suspects in the files; by default as many as are likely wrong.
        cleanlab: also rank by cleanlab, for comparison.
        apply: write a copy of the data with the corrections that the page exported.
        out: the folder of the files.
        data_root: where data sets lie; by default NOISEPROOF_DATA or the user's cache folder.
        workers: processes; by default one for each core, and one for a GPU.
    """
    least = {"folds": (folds, 2), "number": (number, 1), "top": (top, 0), "workers": (workers, 1)}
    for flag, (value, bound) in least.items():
        if value is not None and value < bound:
            raise UsageError(f"{flag} is {bound} or more; it was {value}")
    if cleanlab:  # before anything is trained
        require("cleanlab", "audit", "the ranking of cleanlab")
    if apply is None:
        require("jinja2", "report", "a page of suspects")
    if probabilities is not None:
        if annotator or apply or votes:
            raise UsageError("--annotator, --apply and --votes are for data: leave the file out")
        _report(_read(probabilities, cleanlab), None, out, top, number, "")
        return
    from noiseproof.tools._samples import samples_of

    samples = samples_of(run, annotator=annotator, data_root=data_root)
    if apply is not None:
        _apply(samples, apply, out)
        return
    found = _found(samples, folds, votes, cleanlab, out, data_root, workers)
    _report(found, samples, out, top, number, _apply_command(run, annotator, out))


def _apply_command(run: Run, annotator: str, out: Path) -> str:
    """The command that applies to the same labels what the page exports."""
    from noiseproof.runs import Run
    from noiseproof.tools._command import command_of

    words = ["--annotator", annotator] if annotator else []
    words += [] if out == Path("audit") else ["--out", str(out)]
    of_labels = Run(**{name: getattr(run, name) for name in _SETTINGS})
    return f"{command_of(of_labels, 'audit')} {shlex.join([*words, '--apply', 'corrections.csv'])}"


def _read(path: Path, cleanlab: bool) -> Audit:
    """Probabilities and labels from a file."""
    from noiseproof.sources._digest import bytes_of
    from noiseproof.sources._npz import read_arrays
    from noiseproof.tools import audit as rank

    arrays = read_arrays(path, bytes_of(path))
    for name in ("probabilities", "labels"):
        if name not in arrays:
            raise UsageError(
                f"{path} has no array {name!r}; it has {', '.join(arrays) or 'none'}. An audit "
                "needs probabilities [N, K] and labels [N]"
            )
    known = {name: arrays.get(name) for name in ("classes", "names", "annotators")}
    texts = {name: None if a is None else a.astype(str).tolist() for name, a in known.items()}
    return rank(arrays["probabilities"], arrays["labels"], cleanlab=cleanlab, **texts)


def _found(
    samples: Samples, folds: int, votes: bool, cleanlab: bool, out: Path,
    data_root: Path | None, workers: int | None,
) -> Audit:  # fmt: skip
    import numpy as np

    from noiseproof.tools import audit as rank

    run, data = samples.run, samples.data
    say(f"{run}: {len(data.train):,} labels of {data.num_classes} classes")
    with ExitStack() as stack:
        if votes:
            p, labels = _votes(run, data_root, stack)
        else:
            p, labels = _out_of_sample(run, folds, out, data_root, workers, stack)
    share = float((p.argmax(1) == labels).mean())
    say(f"the networks agree with {share:.1%} of the given labels")
    if votes and share > _BY_HEART:
        say("note: if labels are wrong it has learnt them by heart; to be sure leave out --votes")
    kept = {"probabilities": p.astype(np.float32), "labels": labels,
            "classes": np.array(data.classes)}  # fmt: skip
    _write_npz(out / "probabilities.npz", kept)
    return rank(
        p, labels, classes=data.classes, names=samples.names, annotators=samples.annotators,
        cleanlab=cleanlab,
    )  # fmt: skip


def _write_npz(path: Path, arrays: dict[str, Any]) -> None:
    import io

    import numpy as np

    from noiseproof._files import write_atomically

    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_atomically(path, content.getvalue())


def _out_of_sample(
    run: Run, folds: int, out: Path, data_root: Path | None, workers: int | None, stack: ExitStack
) -> tuple[Any, Any]:
    from noiseproof.bench._machine import cores, gpus
    from noiseproof.tools import out_of_sample

    on_gpu = run.device.startswith("cuda") or (run.device == "auto" and bool(gpus()))
    processes = workers or (1 if on_gpu else min(folds, cores()))
    say(f"training {folds} networks, each on all but one of {folds} parts, into {out / 'runs'}")
    found = out_of_sample(
        run=run, folds=folds, out=out / "runs", data_root=data_root, workers=processes,
        watch=_progress(stack),
    )  # fmt: skip
    return found.probabilities, found.labels


def _votes(run: Run, data_root: Path | None, stack: ExitStack) -> tuple[Any, Any]:
    from noiseproof.tools import Votes
    from noiseproof.train import Progress, fit

    if run.choose_epoch:
        raise UsageError("votes are those of every epoch, and none is chosen: no --choose-epoch")
    say("training one network on everything")
    counted, bar = Votes(), _progress(stack)

    def on_epoch(progress: Progress) -> None:
        counted(progress)
        bar(progress.epoch, progress.epochs)

    fit(replace(run, holdout=0.0), data_root=data_root, on_epoch=on_epoch)
    return counted.probabilities, counted.labels


def _progress(stack: ExitStack, every: float = 10.0) -> Callable[[int, int], None]:
    """A bar on a terminal; else a line every so often."""
    if not sys.stdout.isatty():
        began = last = time.monotonic()
        trained = 0

        def tell(done: int, total: int) -> None:
            nonlocal last, trained
            trained += 1  # here: others may have been done before
            now = time.monotonic()
            if now - last > every:
                last = now
                left = (total - done) * (now - began) / trained
                print(f"epoch {done:,} of {total:,}, {duration(left)} left", flush=True)

        return tell
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    bar = stack.enter_context(
        Progress(TextColumn("epoch"), MofNCompleteColumn(), BarColumn(), Remaining(compact=True))
    )
    task = bar.add_task("audit", total=None)

    def watch(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)

    return watch


def _report(
    found: Audit, samples: Samples | None, out: Path, top: int, number: int | None, apply: str
) -> None:
    suspects = found.suspects(min(top, len(found)))
    say(f"{found.rate:.1%} of {len(found.labels):,} labels are likely wrong: {len(found):,}")
    if suspects:
        print()
        columns = [
            ("", [str(s.rank) for s in suspects]),
            ("sample", [s.name for s in suspects]),
            ("given", [s.given for s in suspects]),
            ("likely", [s.suggested for s in suspects]),
            ("how likely wrong", [_share(s.score) for s in suspects]),
        ]
        if found.annotators:
            columns.append(("annotator", [s.annotator for s in suspects]))
        folds = ["sample", "given", "likely", "how likely wrong", "annotator"]
        show(columns, right=["", "how likely wrong"], folds=folds)
        print()
    for title, shares in (
        ("class as given", found.by_class()),
        ("annotator", found.by_annotator()),
    ):
        some = [s for s in shares if round(s.rate * s.labels)]
        worst = sorted(some, key=lambda s: -s.rate)[:5]
        if worst:
            listed = ", ".join(f"{s.name} {s.rate:.0%} of {s.labels:,}" for s in worst)
            say(f"likely wrong by {title}: {listed}")
    if found.cleanlab is not None:
        both = len(set(found.index.tolist()) & set(found.cleanlab[: len(found)].tolist()))
        say(f"of these suspects {both:,} are among the first {len(found):,} of cleanlab")
    found.to_csv(out / "suspects.csv", number)
    say(f"suspects in {out / 'suspects.csv'}")
    page = found.to_html(
        out / "suspects.html", None if samples is None else samples.show, number=number,
        title="Labels that are likely wrong" + ("" if samples is None else f": {_short(samples)}"),
        apply=apply,
    )  # fmt: skip
    if len(found) or number:
        say(f"go through them on {page}, by keyboard")


def _share(score: float) -> str:
    return "> 99%" if score > 0.99 else f"{score:.0%}"


def _short(samples: Samples) -> str:
    from noiseproof._imports import without_digest

    return without_digest(samples.data.name)


def _apply(samples: Samples, corrections: Path, out: Path) -> None:
    import numpy as np

    from noiseproof.tools._apply import read_corrections, write_corrected
    from noiseproof.tools._command import command_of

    labels = np.asarray(samples.labels.labels).astype(np.int64)
    found = read_corrections(corrections, labels, samples.data.classes)
    path, run = write_corrected(samples, found, out)
    changed, dropped = count(found.changed, "label"), count(found.dropped, "sample")
    say(f"{changed} changed and {dropped} dropped: {path}")
    say(f"train on it with: {command_of(run)}")
