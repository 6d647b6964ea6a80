"""Whether held-out noisy labels choose the loss that clean labels would.

    python benchmarks/choose.py [digits] [features] [--save]
    python benchmarks/choose.py mnist cifar10 --data-root DIR --save      (on a GPU)

On each data set and each kind of noise the handful of ``noiseproof choose`` is trained, a part of
the noisy labels held out. What is kept is the accuracy of every run on the held-out labels, as they
are given, and on the clean test set; from it docs/choose.md tells how the two rank the losses, and
what was lost by the choice. ``annotator`` are mistakes that the inputs explain: all labels are
given by a linear classifier that has seen a few true ones. ``--save`` writes benchmarks/choose.csv.

The two small sets take a quarter of an hour on one core. MNIST is 30 runs of 50 epochs and CIFAR-10
up to 24 runs of 20, as much as 4 runs of the paper's 120: about 90 s and 120 s on one H200.
"""

from __future__ import annotations

import argparse
import functools
import platform
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tables import save
from torch import Tensor

from noiseproof import bench, catalogue, data, noise
from noiseproof.bench import Bench
from noiseproof.results import HELD_OUT_ACCURACY, TEST_ACCURACY, Record, read
from noiseproof.runs import Run
from noiseproof.tools import HANDFUL, Choice
from noiseproof.tools._choose import rank
from noiseproof.train import UnpredictedClassWarning, fit_many

SEEDS = (0, 1, 2)
SMALL = (
    ("symmetric", 0.2), ("symmetric", 0.4), ("symmetric", 0.6), ("asymmetric", 0.2),
    ("asymmetric", 0.4), ("instance", 0.4), ("annotator", 0.0),
)  # fmt: skip
LARGE = {
    "mnist": (
        ("none", 0.0), ("symmetric", 0.2), ("symmetric", 0.4), ("symmetric", 0.6),
        ("asymmetric", 0.4),
    ),
    "cifar10": (
        ("symmetric", 0.4), ("symmetric", 0.6), ("asymmetric", 0.4), ("cifar10n-worst", 0.0),
    ),
}  # fmt: skip
EPOCHS = {"digits": 40, "features": 30, "mnist": 50, "cifar10": 20}
SEEN = {"digits": 30, "features": 200}  # true labels that the annotator has seen
Found = list[tuple[Run, Record | None, str | None]]


def annotated(x: Tensor, y: Tensor, classes: int, seen: int) -> Tensor:
    """The labels that a ridge regression gives which has seen so many true ones."""
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))[:seen]
    flat = torch.cat([x.flatten(1).float(), torch.ones(len(x), 1)], 1)
    flat = flat / flat.std()
    known, target = flat[order], torch.nn.functional.one_hot(y[order], classes).float()
    ridge = known.T @ known + 0.1 * len(order) * torch.eye(known.shape[1])
    scores: Tensor = flat @ torch.linalg.solve(ridge, known.T @ target)
    return scores.argmax(1)


def digits() -> data.Dataset:
    return data.load("digits")


def features() -> data.Dataset:
    from which_loss import TRAIN
    from which_loss import features as drawn

    x, y = drawn()
    return data.from_arrays(x[:TRAIN], y[:TRAIN], x[TRAIN:], y[TRAIN:], name="features")


def small(name: str, of: data.Dataset, kind: str, rate: float, out: Path) -> Found:
    """The runs of one condition, in this process."""
    labels: Any = None
    drawn: dict[str, Any] = {"noise": kind, "rate": rate}
    if kind == "annotator":
        clean = of.train.labels
        given = annotated(of.train.inputs[:], clean, of.num_classes, SEEN[name])
        labels, drawn = noise.from_labels(clean, given, of.num_classes), {}
        print(f"{name}: {noise_rate(given, clean):.1%} of the annotator's labels are wrong")
    elif kind == "asymmetric" and name == "features":  # no class is known to look like another
        drawn = {"noise": "pairflip", "rate": rate}
    runs = [
        Run(loss=c.loss, seed=s, epochs=EPOCHS[name], holdout=0.2, device="cpu", **drawn)
        for s in SEEDS for c in HANDFUL
    ]  # fmt: skip
    if name == "features":
        runs = [replace(run, batch_size=128, lr=3e-3) for run in runs]
    overrides = {"data": of, "labels": labels}
    results = fit_many(
        runs, out=out, keep_models=False, overrides=overrides, name=f"{kind}-{rate:g}"
    )
    records = [read(result.folder).records[0] for result in results if result.folder is not None]
    return [(run, record, record.error) for run, record in zip(runs, records, strict=True)]


def noise_rate(given: Tensor, clean: Tensor) -> float:
    return float((given != clean).float().mean())


def large(name: str, root: Path | None, out: Path) -> dict[tuple[str, float], Found]:
    """The runs of all conditions, side by side on the GPU."""
    conditions = [c for c in LARGE[name] if is_here(c[0], root)]
    runs = {
        (kind, rate): [
            Run(dataset=name, noise=kind, rate=rate, loss=c.loss, epochs=EPOCHS[name], holdout=0.1)
            for c in HANDFUL
        ]
        for kind, rate in conditions
    }
    every = tuple(run for group in runs.values() for run in group)
    print(f"{name}: {len(every)} runs of {EPOCHS[name]} epochs", flush=True)
    plan = bench.plan(Bench(name, name, "", every), out)
    outcome = bench.run(plan, out, data_root=root, watch=told)
    by_hash = {record.hash: record for record in outcome.records}
    failed = dict(outcome.failed)

    def record_of(run: Run) -> Record | None:
        return next((by_hash[r.hash] for r in plan.resolutions(run) if r.hash in by_hash), None)

    return {c: [(run, record_of(run), failed.get(run)) for run in runs[c]] for c in runs}


def is_here(kind: str, root: Path | None) -> bool:
    """Whether labels that people gave are on this machine; others are drawn."""
    file = catalogue.NOISES[kind].file
    if not file:
        return True
    here = catalogue.is_here(catalogue.HUMAN_FILES[file].files, catalogue.find_root(root))
    if not here:
        print(f"{kind} is not here and is left out", file=sys.stderr)
    return bool(here)


def told(event: bench.RunEvent) -> None:
    if event.what == "ended":
        print(f"{event.hash} ended{': ' + event.error if event.error else ''}", flush=True)


def rows_of(
    name: str, kind: str, rate: float, found: Found, choice: Choice
) -> list[dict[str, Any]]:
    rows = []
    for run, record, error in found:
        if record is None or error is not None:
            print(f"{run}: {error}", file=sys.stderr)
            continue
        rows.append(
            {
                "data": name, "noise": kind, "rate": f"{rate:g}", "loss": run.loss,
                "seed": run.seed, "epochs": EPOCHS[name],
                "wrong_percent": f"{100 * record.about['noise_rate']:.2f}",
                "held_out": choice.num_held_out,
                "held_out_percent": f"{100 * record.column(HELD_OUT_ACCURACY)[-1]:.2f}",
                "test_percent": f"{100 * record.column(TEST_ACCURACY)[-1]:.2f}",
                "level": "yes" if run.loss in choice.level else "no",
                "seconds": f"{sum(record.column('seconds')):.2f}",
                "device": record.about["machine"]["device"], "torch": torch.__version__,
                "python": platform.python_version(),
            }
        )  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="*", default=["digits", "features"], choices=list(EPOCHS))
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore", UnpredictedClassWarning)
    sets: dict[str, Callable[[], data.Dataset]] = {"digits": digits, "features": features}
    for name in given.data:
        rows: list[dict[str, Any]] = []
        with tempfile.TemporaryDirectory() as folder:
            found: dict[tuple[str, float], Callable[[], Found]] = {}
            if name in sets:
                torch.set_num_threads(1)
                of = sets[name]()
                for kind, rate in SMALL:
                    found[kind, rate] = functools.partial(small, name, of, kind, rate, Path(folder))
            else:
                for condition, runs in large(name, given.data_root, Path(folder)).items():
                    found[condition] = functools.partial(list, runs)
            for (kind, rate), make in found.items():
                runs = make()
                choice = rank(runs)
                print(f"\n{name}, {kind} {rate:g}\n{choice}", flush=True)
                rows += rows_of(name, kind, rate, runs, choice)
        if given.save:
            save(__file__, rows, beside="data")


if __name__ == "__main__":
    main()
