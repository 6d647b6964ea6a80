"""One setting for any noise: how it is chosen without test images, and how it is then tried.

    python benchmarks/rule.py trial                     # the machinery on digits, on a CPU
    python benchmarks/rule.py data DIR                  # writes the two sets to choose on
    python benchmarks/rule.py choose 1 --data DIR       # 2 and 3 with --shrink and --loss
    python benchmarks/rule.py agree pairs --data DIR    # two networks, each on half of the samples
    python benchmarks/rule.py proof cifar10 --seeds 0   # once RULE below is set
    python benchmarks/rule.py table choose              # what came out; or of a bundle, FILE.jsonl

``--dry-run`` lists the runs and what they are expected to take on one H200. Runs are packed, go on
from where they stopped, and are kept under --out. Every run averages its weights and, unless it is
a baseline on all data, holds a tenth out and chooses an epoch by it.

The choice is made on two sets, by the clean labels of 5,000 training images set aside: CIFAR-10 at
rates 0.5 and 0.7, and 100 classes of two MNIST digits side by side at 0.5 and 0.8, with seeds 10 to
12. No test image is read. Network, epochs and learning rate are those of the paper's protocol.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from noiseproof.runs import Run

RULE: dict[str, Any] | None = None
"""What the proof is run with: loss (a text, or one for each number of classes), shrink,
shrink_schedule, lr_floor as a share of lr, ema_horizon. Set from the table of the choice, and
committed before the first run of the proof."""

LOSSES = {"few": "nce + amse(a=30)", "many": "5*nce + amse(a=20)"}  # JAL-CE's, by classes
SHRINK = (1.0, 2.0, 4.0, 8.0, 16.0)
HORIZON = 0.02  # of the average, as a share of all steps
VARIANTS: dict[str, dict[str, Any]] = {  # of stage 2, each beside the setting as it is
    "grows": {"shrink_schedule": "linear"},
    "floor": {"lr_floor": 0.1},  # of lr
    "short": {"ema_horizon": 0.01},
    "long": {"ema_horizon": 0.05},
}
SETS: dict[str, dict[str, Any]] = {  # what the paper's protocol has for them
    "cifar10": {
        "rates": (0.5, 0.7), "model": "cnn8", "epochs": 120, "lr": 0.01, "batch_size": 128,
        "crop": 4, "flip": True,
    },
    "pairs": {
        "rates": (0.5, 0.8), "model": "cnn4", "epochs": 50, "lr": 0.01, "batch_size": 128,
        "crop": 0, "flip": False,
    },
}  # fmt: skip
SECONDS = {"cifar10": 25, "pairs": 12, "cifar100": 250}  # of a packed run on one H200
ASIDE = 5_000
CELLS: dict[str, list[dict[str, Any]]] = {
    "cifar10": [
        *({"noise": "symmetric", "rate": rate} for rate in (0.8, 0.6, 0.4, 0.2)),
        {"noise": "none", "rate": 0.0}, {"noise": "asymmetric", "rate": 0.4},
        {"noise": "cifar10n-worst", "rate": 0.0},
    ],
    "cifar100": [
        {"noise": "symmetric", "rate": 0.8}, {"noise": "symmetric", "rate": 0.6},
        {"noise": "asymmetric", "rate": 0.4}, {"noise": "cifar100n", "rate": 0.0},
    ],
}  # fmt: skip


def write_sets(folder: Path, root: str | None) -> None:
    """Two npz files whose test part is training images that are set aside."""
    from noiseproof import data

    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(2024)
    train = data.load("cifar10", root=root).train
    order = generator.permutation(len(train))
    images, labels = (np.asarray(t) for t in (train.images, train.labels))
    _write(folder / "cifar10.npz", images, labels, order[ASIDE:], order[:ASIDE])
    digits = data.load("mnist", root=root).train
    pixels, names = np.asarray(digits.images), np.asarray(digits.labels)
    half = pixels.reshape(*pixels.shape[:-1], 14, 2).mean(-1)  # half as wide: the pair is square
    halves = np.rint(half).astype(np.uint8)
    order = generator.permutation(len(digits))
    kept = {"test": order[:ASIDE], "train": order[ASIDE : ASIDE + 50_000]}
    made: dict[str, Any] = {}
    for part, left in kept.items():
        right = generator.permutation(left)
        made[f"x_{part}"] = np.concatenate([halves[left], halves[right]], axis=-1)
        made[f"y_{part}"] = 10 * names[left] + names[right]
    np.savez(folder / "pairs.npz", **made)
    print(f"written: {folder / 'cifar10.npz'}, {folder / 'pairs.npz'}")


def _write(path: Path, images: Any, labels: Any, train: Any, test: Any) -> None:
    np.savez(
        path, x_train=images[train], y_train=labels[train], x_test=images[test], y_test=labels[test]
    )


def setting(name: str, folder: Path, **changed: Any) -> list[Run]:
    """A run for each rate of a set to choose on; a floor is a share of the learning rate."""
    fixed = {k: v for k, v in SETS[name].items() if k != "rates"}
    values = {"ema_horizon": HORIZON, "choose_epoch": True, **fixed, **changed}
    values["lr_floor"] = values["lr"] * values.get("lr_floor", 0.0)
    source = f"npz:{folder / name}.npz"
    return [
        Run(dataset=source, noise="symmetric", rate=rate, **values) for rate in SETS[name]["rates"]
    ]


def choice(
    stage: int, folder: Path, shrinks: Sequence[float], losses: Sequence[str], variant: str
) -> list[Run]:
    """The runs of a stage: loss by penalty; then the variants; then the other seeds."""
    runs: list[Run] = []
    for name in SETS:
        for loss in losses:
            for shrink in shrinks:
                base = {"loss": LOSSES[loss], "shrink": shrink}
                if stage == 1:
                    runs += setting(name, folder, **base, seed=10)
                elif stage == 2:
                    for changed in VARIANTS.values():
                        runs += setting(name, folder, **base, **changed, seed=10)
                else:
                    for seed in (11, 12):
                        changed = VARIANTS.get(variant, {})
                        runs += setting(name, folder, **base, **changed, seed=seed)
    return runs


def proof(dataset: str, seeds: Iterable[int]) -> list[Run]:
    """The rule and what it is held against, cell by cell."""
    if RULE is None:
        raise SystemExit("RULE is not set: choose first, and commit the setting")
    rule = dict(RULE)
    loss, floor = rule.pop("loss"), rule.pop("lr_floor", 0.0)
    lr, classes = {"cifar10": (0.01, 10), "cifar100": (0.1, 100)}[dataset]
    ours = {"loss": loss if isinstance(loss, str) else loss[classes], "lr_floor": floor * lr}
    average = {"ema_horizon": rule["ema_horizon"]}
    runs = []
    for seed in seeds:
        for cell in CELLS[dataset]:
            at = {"dataset": dataset, "seed": seed, **cell}
            runs.append(Run(**at, **ours, **rule, choose_epoch=True))
            for published in ("jal-ce", "anl-ce"):
                runs.append(Run(**at, loss=published, **average))
                if dataset == "cifar10":
                    runs.append(Run(**at, loss=published, **average, choose_epoch=True))
    return runs


def trial() -> list[Run]:
    """The same machinery on digits, which come with the package."""
    penalties: list[dict[str, Any]] = [{"shrink": c} for c in (0.0, 0.5, *SHRINK)]
    penalties += [{"shrink": 4.0, "shrink_schedule": "linear"}]
    fixed: dict[str, Any] = {"loss": "nce+mae", "device": "cpu", "seed": 10}
    fixed |= {"noise": "symmetric", "ema_horizon": HORIZON, "choose_epoch": True}
    return [Run(rate=rate, **penalty, **fixed) for rate in (0.5, 0.7) for penalty in penalties]


def train(runs: Sequence[Run], kind: str, out: Path, root: str | None, dry: bool) -> None:
    seconds = sum(SECONDS.get(_set(run), 2) for run in runs)
    print(f"{len(runs)} runs, about {seconds:,} s packed on one H200", flush=True)
    if dry:
        for run in runs:
            print(f"  {_line(run)}")
        return
    from noiseproof.train import Progress, fit_many

    def told(at: Progress) -> None:
        if at.epoch == at.epochs:
            print(f"  {at.run}: {at.row.get('test_accuracy_ema', math.nan):.2%}", flush=True)

    results = fit_many(runs, out=out / kind, data_root=root, keep_models=False, on_epoch=told)
    print(f"{sum(r.error is None for r in results)} of {len(runs)} ended well")


def _set(run: Any) -> str:
    """Which set it is trained on, of those that are timed."""
    return next((name for name in (*SECONDS, "digits") if name in run.dataset), run.dataset)


def _line(run: Any, chosen: str = "") -> str:
    grows = " growing" if run.shrink_schedule == "linear" else ""
    floor = f", floor {run.lr_floor:g}" if run.lr_floor else ""
    penalty = f"shrink {run.shrink:g}{grows}" if run.shrink else "as published"
    chosen = chosen or ("a tenth held out" if run.choose_epoch else "all data")
    return (
        f"{_set(run)} {run.noise} {run.rate:g}, {run.loss}, {penalty}{floor}, "
        f"horizon {run.ema_horizon:g}, {chosen}, seed {run.seed}"
    )


def agreement(run: Run, root: str | None) -> list[dict[str, float]]:
    """How far two networks agree that are each trained on half of the samples, epoch by epoch.

    They start differently, and are compared by their averaged weights on all training images, of
    whose labels each has seen half: a wrong label that one has learnt by heart the other does not
    know. It is Cohen's kappa, since two that predict one class alone always agree.
    """
    import contextlib

    import torch

    from noiseproof import models
    from noiseproof.train._pack import GraphPack, Pack
    from noiseproof.train._setup import Setup, device_of

    device, setup = device_of(run.device), Setup(root)
    on_gpu, rows = device.type == "cuda", []
    halves = [
        replace(run, holdout=0.5, fold=fold, choose_epoch=False).resolve(on_gpu=on_gpu)
        for fold in (1, 2)
    ]
    with torch.cuda.device(device) if on_gpu else contextlib.nullcontext():
        first = setup.trainer(halves[0])
        classes, shape = len(first.inputs.classes), first.inputs.shape
        other = models.build(halves[1].model, classes, shape=shape, seed=run.seed + 1)
        trainers = [first, setup.trainer(halves[1], network=other)]
        packs = [GraphPack([t], compiled=False) if on_gpu else Pack([t]) for t in trainers]
        images = [t.validation.inputs for t in trainers if t.validation is not None]
        for epoch in range(halves[0].epochs):
            clean = [pack.train_epoch(epoch)[0].values["test_accuracy_ema"] for pack in packs]
            with torch.no_grad(), packs[0].backend_flags():
                one, two = (
                    torch.cat([t._eval_logits(averaged, part).argmax(1) for part in images])
                    for t, averaged in ((t, t.state.ema_tensors()) for t in trainers)
                )
            shares = [torch.bincount(x, minlength=classes) / len(x) for x in (one, two)]
            chance, same = float((shares[0] * shares[1]).sum()), float((one == two).float().mean())
            kappa = (same - chance) / (1 - chance) if chance < 1 else 0.0
            rows.append({"epoch": epoch + 1, "kappa": kappa, "clean": sum(clean) / 2})
            print(f"  epoch {epoch + 1}: kappa {kappa:.4f}, clean {sum(clean) / 2:.4f}", flush=True)
    best, chosen = max(row["clean"] for row in rows), max(rows, key=lambda row: row["kappa"])
    print(
        f"{_line(run, 'two halves')}: best {best:.2%}, last {rows[-1]['clean']:.2%}, "
        f"where they agree most {chosen['clean']:.2%} (epoch {chosen['epoch']:.0f})"
    )
    return rows


def label_wave(changed: Sequence[float], span: int = 3) -> int:
    """The first epoch at which fewer predictions change, over a span, than before and after."""
    means = [math.fsum(changed[i - span : i]) / span for i in range(1 + span, len(changed) + 1)]
    for i in range(1, len(means) - 1):
        if means[i] < means[i - 1] and means[i] <= means[i + 1]:
            return i + 1 + span
    return len(changed)


def table(place: Path) -> None:
    """Of every run: the last weights, the averaged ones, the chosen epoch, and its regret."""
    from noiseproof import results

    rows = []
    for record in results.read(place).records:
        ema, last = (record.column(f"test_accuracy{end}") for end in ("_ema", ""))
        best = max(ema)
        row = [f"{100 * last[-1]:.2f}", f"{100 * ema[-1]:.2f}", f"{100 * best:.2f}"]
        if record.run.choose_epoch:
            chosen = int(record.column("chosen_epoch")[-1])
            wave = label_wave(record.column("changed_predictions"))
            there, by_wave = ema[chosen - 1], ema[wave - 1]
            row += [f"{100 * there:.2f}", str(chosen), f"{100 * (best - there):.2f}"]
            row += [f"{100 * (best - by_wave):.2f}"]
        else:
            row += ["", "", "", ""]
        rows.append([*row, _line(record.run)])
    print("| last | averaged | best | chosen | epoch | regret | of Label Wave | run |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in sorted(rows, key=lambda row: row[-1]):
        print(f"| {' | '.join(row)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["trial", "data", "choose", "agree", "proof", "table"])
    parser.add_argument("which", nargs="?", default="", help="a folder, stage, set or kind of runs")
    parser.add_argument("--data", type=Path, default=Path("rule-data"), help="the sets' folder")
    parser.add_argument("--data-root", help="where CIFAR and MNIST lie")
    parser.add_argument("--out", type=Path, default=Path("runs-rule"))
    parser.add_argument("--shrink", type=float, nargs="+", default=list(SHRINK))
    parser.add_argument("--loss", choices=list(LOSSES), nargs="+", default=list(LOSSES))
    parser.add_argument("--variant", choices=list(VARIANTS), default="", help="of stage 3")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--dry-run", action="store_true")
    given = parser.parse_args()
    root = given.data_root or os.environ.get("NOISEPROOF_DATA")
    if given.what == "data":
        write_sets(Path(given.which or given.data), root)
    elif given.what == "table":
        kind = given.which or "choose"
        table(Path(kind) if Path(kind).exists() else given.out / kind)
    elif given.what == "trial":
        train(trial(), "trial", given.out, root, given.dry_run)
    elif given.what == "choose":
        runs = choice(int(given.which), given.data, given.shrink, given.loss, given.variant)
        train(runs, "choose", given.out, root, given.dry_run)
    elif given.what == "agree":
        for loss in given.loss:
            for shrink in given.shrink:
                for run in setting(
                    given.which, given.data, loss=LOSSES[loss], shrink=shrink, seed=10
                ):
                    agreement(run, root)
    else:
        train(proof(given.which, given.seeds), "proof", given.out, root, given.dry_run)


if __name__ == "__main__":
    main()
