"""How many wrong labels an audit finds, on labels whose truth is known.

    python benchmarks/audit.py probabilities --data-root DIR --out FILE.npz
    python benchmarks/audit.py table FILE.npz --data-root DIR
    python benchmarks/audit.py small [--news FILE.csv.gz] [--embedded FILE.parquet] [--kept DIR]

``probabilities`` trains the 8-layer network on CIFAR-10N worst (labels of people, 40.2 % wrong) on
a GPU: five folds for each loss, side by side, and for the votes of one ordinary run each loss once
on everything. It saves the out-of-sample probabilities as float16. ``table`` and ``small`` write
benchmarks/audit.csv; they need cleanlab for its rows. ``small`` trains on the digits with noise of
four kinds and, where the files are given, on NoisyAG-News (texts, labels of people) as words and
as the vectors that embed_texts.py makes of them, on one core in about a quarter of an hour.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tables import save

from noiseproof._files import write_atomically
from noiseproof.data import human
from noiseproof.noise import transition_matrix
from noiseproof.tools import Votes, audit, out_of_sample
from noiseproof.tools._folds import fold_runs
from noiseproof.train import Progress, Run, fit, fit_many

FOLDS = 5
CIFAR = Run(dataset="cifar10", noise="cifar10n-worst")
OUT_OF_SAMPLE = (("ce", 10), ("ce", 50), ("nce+rce", 50), ("gce", 50))
VOTES = (("nce+rce", 50), ("ce", 50))
NEWS = "NoisyAG-News"


def probabilities(data_root: Path | None, out: Path, epochs: int | None, device: str) -> None:
    """Train on a GPU and save what ``table`` reads."""
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {line}", flush=True)

    def run_of(loss: str, number: int) -> Run:
        return dataclasses.replace(CIFAR, loss=loss, epochs=epochs or number, device=device)

    arrays: dict[str, NDArray[Any]] = {}
    votes: dict[str, Votes] = {}

    def watch(progress: Progress) -> None:
        if not progress.run.fold:
            votes.setdefault(progress.run.hash, Votes())(progress)
        if progress.epoch == progress.epochs:
            say(f"{progress.run.method}, fold {progress.run.fold} of {FOLDS}, ended")

    with tempfile.TemporaryDirectory() as kept:
        folds = [run for one in OUT_OF_SAMPLE for run in fold_runs(run_of(*one), FOLDS)]
        # All together, so that as many are trained side by side as a GPU has room for.
        fit_many(folds, out=kept, data_root=data_root, on_epoch=watch)
        for loss, number in OUT_OF_SAMPLE:
            found = out_of_sample(
                run=run_of(loss, number), folds=FOLDS, out=kept, data_root=data_root
            )
            arrays[f"{loss} {number}"] = found.probabilities.astype(np.float16)
            arrays["fold"] = found.fold.astype(np.uint8)
            say(f"{loss}, {number} epochs: {found}")
        _save(out, arrays)
    whole = [run_of(*one) for one in VOTES]
    for one, result in zip(
        VOTES, fit_many(whole, data_root=data_root, on_epoch=watch), strict=True
    ):
        arrays[f"votes {one[0]} {one[1]}"] = votes[result.run.hash].counts.astype(np.uint8)
    _save(out, arrays)
    arrays["device"] = np.array(torch.cuda.get_device_name() if device != "cpu" else "cpu")
    arrays["torch"] = np.array(torch.__version__)
    _save(out, arrays)
    say(f"written to {out}, {out.stat().st_size / 2**20:.1f} MiB")


def _save(out: Path, arrays: dict[str, NDArray[Any]]) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    write_atomically(out, content.getvalue())


class Case(NamedTuple):
    """Probabilities, and the labels that they are held against."""

    data: str
    noise: str
    how: str
    loss: str
    epochs: int
    probabilities: NDArray[Any]
    given: NDArray[np.int64]
    truth: NDArray[np.int64]


def scores_of(case: Case) -> dict[str, NDArray[Any]]:
    """The rankings that are compared: how suspect each label is."""
    found = audit(case.probabilities, case.given)
    p, every = found.probabilities, np.arange(len(case.given))
    given = p[every, case.given]
    others = p.copy()
    others[every, case.given] = -1
    return {
        "posterior": found.scores, "p(given)": 1 - given, "margin": others.max(1) - given,
        "cleanlab": -_cleanlab_quality(p, case.given),
    }  # fmt: skip


def _cleanlab_quality(p: NDArray[Any], given: NDArray[np.int64]) -> NDArray[Any]:
    from cleanlab.rank import get_label_quality_scores

    quality: NDArray[Any] = get_label_quality_scores(given, p, method="self_confidence")
    return quality


def _cleanlab_rate(p: NDArray[Any], given: NDArray[np.int64]) -> float:
    from cleanlab.count import num_label_issues

    return float(num_label_issues(given, p)) / len(given)


def rows_of(case: Case, firsts: Sequence[int]) -> list[dict[str, Any]]:
    """A row for each ranking and each number of suspects."""
    wrong = case.given != case.truth
    found = audit(case.probabilities, case.given)
    real = transition_matrix(case.truth, case.given, len(found.classes))
    off = float(np.abs(found.transition - real).sum(1).mean())
    rows = []
    for ranking, score in scores_of(case).items():
        order = np.argsort(-score, kind="stable")
        rate = found.rate
        if ranking == "cleanlab":
            rate = _cleanlab_rate(found.probabilities, case.given)
        for first in firsts or [int(wrong.sum())]:
            chosen = order[:first]
            right = float((found.suggested == case.truth)[chosen].mean())
            rows.append({
                "data": case.data, "noise": case.noise, "how": case.how, "loss": case.loss,
                "epochs": case.epochs, "ranking": ranking, "samples": len(wrong),
                "wrong_percent": f"{100 * wrong.mean():.2f}",
                "estimated_percent": f"{100 * rate:.2f}", "first": first,
                "precision_percent": f"{100 * wrong[chosen].mean():.2f}",
                "recall_percent": f"{100 * wrong[chosen].sum() / wrong.sum():.2f}",
                "suggestion_right_percent": f"{100 * right:.2f}",
                "transition_error": f"{off:.3f}", "torch": torch.__version__,
            })  # fmt: skip
    best = rows[0]
    print(
        f"{case.data}, {case.noise}, {case.how}, {case.loss}, {case.epochs} epochs: "
        f"{best['wrong_percent']} % wrong, estimated {best['estimated_percent']}"
    )
    for row in rows:
        print(
            f"    {row['ranking']:10} first {row['first']:6}: precision {row['precision_percent']}"
            f", recall {row['recall_percent']}, estimated {row['estimated_percent']}",
            flush=True,
        )
    return rows


def table(file: Path, data_root: Path | None) -> None:
    """CIFAR-10N worst, from what ``probabilities`` saved."""
    labels = human("cifar10n-worst", data_root)
    given, truth = (np.asarray(part).astype(np.int64) for part in (labels.labels, labels.clean))
    rows = []
    with np.load(file, allow_pickle=False) as arrays:
        machine, version = str(arrays["device"]), str(arrays["torch"])
        for name in arrays.files:
            how, loss, number = ("folds", *name.split(" ")) if name.count(" ") == 1 else (
                *name.split(" "), "", "", "")[:3]  # fmt: skip
            if not number.isdigit():
                continue
            p = arrays[name].astype(np.float64)
            if how == "votes":
                p = (p + 1 / p.shape[1]) / (p.sum(1, keepdims=True) + 1)
            p /= p.sum(1, keepdims=True)
            case = Case("CIFAR-10N worst", "human", how, loss, int(number), p, given, truth)
            rows += rows_of(case, (10_000, 20_000))
    for row in rows:
        row["torch"] = f"{version}, {machine}"
    save(__file__, rows, beside="data")


def _votes(run: Run, kept: Path | None) -> NDArray[Any]:
    file = None if kept is None else kept / f"votes-{run.resolve().hash}.npy"
    if file is None or not file.exists():
        votes = Votes()
        fit(run, on_epoch=votes)
        found: NDArray[Any] = votes.probabilities
        if file is not None:
            np.save(file, found)
        return found
    kept_before: NDArray[Any] = np.load(file, allow_pickle=False)
    return kept_before


def small(news: Path | None, embedded: Path | None, kept: Path | None, only: str | None) -> None:
    """The digits, and texts, on one core."""
    torch.set_num_threads(1)
    noises = (("symmetric", 0.2), ("symmetric", 0.4), ("asymmetric", 0.4), ("symmetric", 0.6))
    sets = {"digits": [Run(dataset="digits", noise=n, rate=r, device="cpu") for n, r in noises]}
    if news is not None:
        sets[NEWS] = [Run(dataset=f"csv:{news}", text="text", truth="gt", device="cpu")]
    if embedded is not None:
        beside = ("text", "group")
        run = Run(dataset=f"parquet:{embedded}", truth="gt", ignore=beside, device="cpu")
        sets[f"{NEWS}, embedded"] = [run]
    for name, runs in sets.items():
        if only not in (None, name):
            continue
        rows = []
        for run in runs:
            kind = "human" if name != "digits" else f"{run.noise} {run.rate:g}"
            for loss in ("ce", "nce+rce"):
                one = dataclasses.replace(run, loss=loss)
                found = out_of_sample(run=one, folds=FOLDS, out=kept)
                assert found.truth is not None
                epochs = one.resolve().epochs
                voted = _votes(dataclasses.replace(one, holdout=0.0), kept)
                for how, p in (("folds", found.probabilities), ("votes", voted)):
                    case = Case(name, kind, how, loss, epochs, p, found.labels, found.truth)
                    rows += rows_of(case, ())
        save(__file__, rows, beside="data")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("probabilities")
    first.add_argument("--data-root", type=Path)
    first.add_argument("--out", type=Path, required=True)
    first.add_argument("--epochs", type=int, help="of every run, for a trial")
    first.add_argument("--device", default="cuda")
    second = commands.add_parser("table")
    second.add_argument("file", type=Path)
    second.add_argument("--data-root", type=Path)
    third = commands.add_parser("small")
    third.add_argument("--news", type=Path, help="train.csv.gz of NoisyAG-News")
    third.add_argument("--embedded", type=Path, help="what embed_texts.py makes of it")
    third.add_argument("--kept", type=Path, help="a folder for the runs, to go on from")
    third.add_argument("--data", help=f"only this set: digits, {NEWS} or '{NEWS}, embedded'")
    given = parser.parse_args()
    if given.command == "probabilities":
        probabilities(given.data_root, given.out, given.epochs, given.device)
    elif given.command == "table":
        table(given.file, given.data_root)
    else:
        small(given.news, given.embedded, given.kept, given.data)


if __name__ == "__main__":
    main()
