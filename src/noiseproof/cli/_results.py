"""``noiseproof results``: what was run, listed, filtered and exported."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from noiseproof._errors import UsageError
from noiseproof._hints import nearest
from noiseproof._imports import without_digest
from noiseproof.results import HELD_OUT_ACCURACY

from ._tables import say
from ._words import count, unended

if TYPE_CHECKING:
    from noiseproof.results import Record


def results(
    places: Annotated[
        tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[DIR|FILE ...]")
    ] = (Path("runs"),),
    /,
    *,
    dataset: tuple[str, ...] = (),
    noise: tuple[str, ...] = (),
    rate: tuple[float, ...] = (),
    loss: tuple[str, ...] = (),
    seed: tuple[int, ...] = (),
    model: tuple[str, ...] = (),
    epochs: tuple[int, ...] = (),
    protocol: Annotated[str | None, tyro.conf.arg(metavar="{paper,authors}")] = None,
    cells: tyro.conf.FlagCreatePairsOff[bool] = False,
    csv: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    parquet: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    bundle: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    upgrade: tyro.conf.FlagCreatePairsOff[bool] = False,
    clear_failed: tyro.conf.FlagCreatePairsOff[bool] = False,
) -> None:
    """List the results of runs, those of several machines together, and export them.

    What is damaged is reported and skipped.

    Args:
        places: folders of results, and files that --bundle wrote.
        dataset: only these data sets.
        noise: only these kinds of noise; none is the clean labels.
        rate: only these noise rates.
        loss: only these losses, such as ce NCE+RCE.
        seed: only these seeds.
        model: only these networks.
        epochs: only runs of so many epochs.
        protocol: only runs with the settings of the paper, or of its authors' code.
        cells: mean and deviation over the seeds in place of the single runs.
        csv: write a table with a row a run: settings, the last epoch, versions, machine; accuracies
            are fractions from 0 to 1, while noiseproof report --format csv has percents.
        parquet: the same as a Parquet file.
        bundle: write the runs with their whole history into one file, to keep or to send.
        upgrade: rewrite and rename the folders of runs that an older version wrote.
        clear_failed: forget the runs that could not be trained.
    """
    from noiseproof import results as store

    for place in places:
        if not place.exists():
            raise UsageError(f"{place} is not there; give a folder of results or a bundle of them")
    if upgrade:
        _upgrade(places)
        return
    if clear_failed:
        cleared = sum(map(store.clear_failed, places))
        print(f"{count(cleared, 'run')} that could not be trained forgotten")
        return
    exported = (csv, parquet, bundle) != (None, None, None)
    reading = store.read(*places, last_only=not exported)
    for problem in reading.problems:
        say(problem, sys.stderr)
    if reading.unended:
        say(unended(reading.unended), sys.stderr)
    records = _select(
        reading.records, dataset=dataset, noise=noise, rate=rate, loss=loss, seed=seed, model=model,
        epochs=epochs, protocol=() if protocol is None else (protocol,),
    )  # fmt: skip
    writers = ((csv, store.write_csv), (parquet, store.write_parquet), (bundle, store.write_bundle))
    chosen = [(path, write) for path, write in writers if path is not None]
    if chosen and not records:
        where = ", ".join(map(str, places))
        raise UsageError(f"there are no runs to write: none in {where} can be read and has ended")
    for path, write in chosen:
        write(path, records)
        say(f"{count(len(records), 'run')} written to {path}")
    if chosen:
        return
    if cells:
        from ._tables import cell_table

        cell_table(store.cells(records))
    else:
        _list(records)
    found = len(reading.records)
    beside = "" if len(records) == found else f"{len(records)} of "
    print(f"{beside}{count(found, 'run')}")
    _say_notes(records)


def _say_notes(records: list[Record]) -> None:
    """What was remarked on while they were trained: of the first that has a note."""
    noted = [(r, r.about["notes"][0]) for r in records if r.about.get("notes")]
    if noted:
        record, note = noted[0]
        more = f" (and {count(len(noted) - 1, 'other run')})" if len(noted) > 1 else ""
        say(f"note of run {record.run.name or record.hash}{more}: {note}")


def _upgrade(places: tuple[Path, ...]) -> None:
    from noiseproof import results as store

    for place in places:
        problems: list[str] = []
        if place.is_file():
            reading = store.read(place)
            if reading.problems or not reading.records:
                why = reading.problems[0] if reading.problems else f"{place} holds no run"
                raise UsageError(f"{place} is left as it is: {why}")
            store.write_bundle(place, reading.records)
            done = f"{count(len(reading.records), 'run')} in {place}"
        else:
            folders, problems = store.upgrade(place)
            done = f"{count(len(folders), 'folder')} in {place}"
        for problem in problems:
            say(f"noiseproof: {problem}", sys.stderr)
        say(f"{done} brought to the format of this version")


def _select(records: list[Record], **wanted: Collection[Any]) -> list[Record]:
    """Those that were asked for; to ask for what no run has is a mistake, and is told."""
    from noiseproof.results import has_setting, select

    kept = select(records, **wanted)
    for name, values in wanted.items():
        for value in values:
            if records and not any(has_setting(r, name, value) for r in records):
                shown = "method" if name == "loss" else name
                has = {getattr(r.run, shown) for r in records}
                there = sorted(has, key=lambda v: (type(v).__name__, v))
                known = ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in there)
                hint = nearest(value, there) if isinstance(value, str) else ""
                raise UsageError(f"no run has {name} {value}{hint}; they have {known}")
    if records and not kept:
        raise UsageError("no run has all that was asked for at once; ask for less")
    return kept


def _in_order(records: list[Record]) -> list[Record]:
    """As tables have them: data sets as they come, then noise, rate, loss and seed."""
    from noiseproof.catalogue import NOISES, rank_of

    datasets = list(dict.fromkeys(r.run.dataset for r in records))
    noises = list(NOISES)

    def place(record: Record) -> tuple[object, ...]:
        run = record.run
        noise = noises.index(run.noise) if run.noise in noises else len(noises)
        return (
            datasets.index(run.dataset), noise, run.rate, rank_of(run.method),
            run.protocol != "paper", run.protocol, run.seed,
        )  # fmt: skip

    return sorted(records, key=place)


def _list(records: list[Record]) -> None:
    from ._tables import show, told_apart, width, width_of

    records = _in_order(records)
    rows = [_row(record) for record in records]
    lines = [" ".join(v for k, v in row.items() if k not in ("run", "accuracy")) for row in rows]
    settings = [_told(record) for record in records]
    for row, apart in zip(rows, told_apart(lines, settings), strict=True):
        row["settings"] = apart
    # What is the same in all of them says nothing, and the lines are long.
    hidden = {
        name for name in ("protocol", "model", "epochs", "tested on")
        if len({row[name] for row in rows} - {""}) < 2
    }  # fmt: skip
    hidden |= set() if any(row["settings"] for row in rows) else {"settings"}
    columns = [(name, [row[name] for row in rows]) for name in _COLUMNS if name not in hidden]
    if width_of(columns) > width():
        columns[0] = ("run", [row["run"][:_ENOUGH] for row in rows])
    show(columns, right=("epochs", "seed", "accuracy"), folds=["loss", "settings"])


_ENOUGH = 8  # characters of a hash, to tell a run from all others
_COLUMNS = (
    "run", "data set", "noise", "loss", "protocol", "model", "epochs", "seed", "tested on",
    "accuracy", "settings",
)  # fmt: skip
_SAID = ("noise", "rate", "protocol", "model", "epochs", "seed", "name")
"""Settings that have columns of their own, to the last digit."""


def _told(record: Record) -> dict[str, Any]:
    """The settings of a run that may tell it from another whose line is the same."""
    from noiseproof.results import following_settings

    settings = record.run.settings()
    follows = following_settings(record.run.method, settings)
    return {
        name: value for name, value in settings.items()
        if name not in _SAID and (name not in follows or value != follows[name])
    }  # fmt: skip


def _row(record: Record) -> dict[str, str]:
    from noiseproof.catalogue import noise_title

    run, accuracy = record.run, record.accuracy
    number = f"{accuracy:.2%}" if math.isfinite(accuracy) else "-"
    tested = {None: "", HELD_OUT_ACCURACY: "held-out labels"}
    return {
        "run": run.name or record.hash,
        "data set": without_digest(run.dataset),
        "noise": noise_title(run.noise, run.rate),
        "loss": run.method,
        "protocol": run.protocol,
        "model": without_digest(run.model),
        "epochs": str(run.epochs),
        "seed": str(run.seed),
        "tested on": tested.get(record.accuracy_column, "test set"),
        "accuracy": "failed" if record.error is not None else number,
    }
