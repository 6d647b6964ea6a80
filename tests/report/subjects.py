"""Made-up results for the tests, so that the numbers of a report are known."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from noiseproof import UsageError, syntax
from noiseproof.catalogue import DATASETS, PROTOCOLS, method_named
from noiseproof.results import Reading, Record, read, with_chosen, write_bundle
from noiseproof.runs import Run

SETTINGS = {"rate": 0.4, "loss": "ce", "model": "mlp", "batch_size": 32}
CLEAN_OR_UNKNOWN = ("none", "given")  # no label is known to be wrong
ABOUT = {
    "noise_rate": 0.4,
    "versions": {"noiseproof": "0.1.0", "torch": "2.11.0"},
    "machine": {"device": "Abacus 9", "system": "Linux"},
}  # fmt: skip


def record(
    accuracy: float = 0.9, *, error: str | None = None, epochs: int = 4, **settings: object
) -> Record:
    """A run whose accuracy grows linearly to this one."""
    given = {**SETTINGS, "epochs": epochs, **settings}
    # What no run can be given, a record may have: of another version, or of the user's own.
    odd = {k: given.pop(k) for k in ("name", "overrides") if k in given}
    if given.get("noise") == "given":
        odd |= {"noise": given.pop("noise"), "rate": 0.0}
    else:
        given.setdefault("noise", "symmetric")
    own = {}
    if given.get("dataset", "digits") not in DATASETS:
        own = {"data": given.pop("dataset")}
        odd.setdefault("overrides", ())
    if given.get("protocol", "paper") not in PROTOCOLS:
        odd["protocol"] = given.pop("protocol")
    try:
        syntax.read(given["loss"])
    except UsageError:
        if method_named(given["loss"]) is None:
            odd |= {"loss": given.pop("loss"), "overrides": ("loss",)}
    run = replace(Run(**given).resolve(overrides=own), **odd)
    history = [
        {
            "epoch": float(epoch),
            "train_accuracy": 0.5 * epoch / epochs,
            "memorised": math.nan if run.noise in CLEAN_OR_UNKNOWN else 0.2 * epoch / epochs,
            "test_accuracy": accuracy * epoch / epochs,
            "validation_accuracy": accuracy / 2 if run.holdout else math.nan,
            "calibration_error": 0.1,
        }
        for epoch in range(1, epochs + 1)
    ]
    if run.choose_epoch:  # the second, from there on
        rows, history = history, []
        for row in rows:
            chosen = {"chosen_epoch": min(2.0, row["epoch"])}
            history.append(with_chosen(row | chosen, history))
    about = {**ABOUT, "noise_rate": None} if run.noise == "given" else dict(ABOUT)
    return Record(run, history, about, error, Path("made-up"))


def reading(*records: Record, problems: tuple[str, ...] = ()) -> Reading:
    return Reading(list(records), list(problems))


def seeds(accuracies: tuple[float, ...], **settings: object) -> list[Record]:
    return [record(a, seed=i, **settings) for i, a in enumerate(accuracies)]


def whole() -> list[Record]:
    """Some of everything: pairs, scaled losses, a grid, two protocols, clean labels, a failure."""
    found = []
    for rate in (0.0, 0.4, 0.6):
        noise = "symmetric" if rate else "none"
        for i, loss in enumerate(("ce", "fl", "mae", "nce", "nce+rce", "nfl+mae", "mae+rce")):
            found += seeds(
                (0.7 + 0.02 * i - 0.1 * rate, 0.71 + 0.02 * i - 0.1 * rate),
                dataset="mnist", noise=noise, rate=rate, loss=loss,
            )  # fmt: skip
    at = {"dataset": "mnist", "rate": 0.6}
    found += [record(0.8, loss="nce+rce", protocol="authors", variant="authors", **at)]
    found += [record(0.5 + s / 100, loss=f"{s}*nce", **at) for s in (2, 5, 10)]
    found += [
        record(0.6 + a / 100 - b / 1000, loss=f"{a}*nce+{b}*rce", holdout=0.2, **at)
        for a in (1, 10)
        for b in (1, 100)
    ]
    return [*found, record(0.1, loss="gce", error="diverged at step 3", **at)]


def bundle(path: Path, *records: Record) -> Reading:
    """The same, written to a bundle and read again."""
    write_bundle(path, records)
    return read(path)
