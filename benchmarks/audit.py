"""How many wrong labels an audit finds, on labels whose truth is known.

    python benchmarks/audit.py probabilities --data-root DIR --out FILE.npz
    python benchmarks/audit.py table FILE.npz --data-root DIR
    python benchmarks/audit.py small [--news FILE.csv.gz]

``probabilities`` trains the 8-layer network on CIFAR-10N worst (labels of people, 40.2 % wrong) on
a GPU: five folds for each loss, side by side, and for the votes of one ordinary run each loss once
on everything. It saves the out-of-sample probabilities as float16 and takes four minutes on one
H200. ``table`` and ``small`` write benchmarks/audit.csv; they need cleanlab for its rows. ``small``
trains on the digits with noise of four kinds and, where the file is given, on NoisyAG-News (texts,
labels of people), on one core in a quarter of an hour.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from noiseproof._files import write_atomically
from noiseproof.tools._folds import fold_runs, out_of_sample
from noiseproof.tools._votes import Votes
from noiseproof.train import Progress, Run, fit_many

FOLDS = 5
CIFAR = Run(dataset="cifar10", noise="cifar10n-worst")
OUT_OF_SAMPLE = (
    ("ce", 10), ("ce", 50), ("nce+rce", 50), ("gce", 50), ("jal-ce", 50),
)  # fmt: skip
VOTES = (("nce+rce", 50), ("ce", 50))


def probabilities(data_root: Path | None, out: Path, epochs: int | None, device: str) -> None:
    """Train on a GPU and save what ``table`` reads."""
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {line}", flush=True)

    def run_of(loss: str, number: int) -> Run:
        return dataclasses.replace(CIFAR, loss=loss, epochs=epochs or number, device=device)

    arrays: dict[str, np.ndarray] = {}
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


def _save(out: Path, arrays: dict[str, np.ndarray]) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    write_atomically(out, content.getvalue())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("probabilities")
    first.add_argument("--data-root", type=Path)
    first.add_argument("--out", type=Path, required=True)
    first.add_argument("--epochs", type=int, help="of every run, for a trial")
    first.add_argument("--device", default="cuda")
    given = parser.parse_args()
    probabilities(given.data_root, given.out, given.epochs, given.device)


if __name__ == "__main__":
    main()
