"""One setting for any noise: how it is chosen without test images, and how it is then tried.

    python benchmarks/rule.py parts digits --seeds 0 1 2   # what each part adds, on a CPU
    python benchmarks/rule.py data DIR                 # writes the two sets to choose on
    python benchmarks/rule.py choose --data DIR        # weights of the loss by penalty, seed 10
    python benchmarks/rule.py choose --data DIR --weights even --shrink 4 --variant grows+floor
    python benchmarks/rule.py choose --data DIR --weights even --shrink 4 --seeds 11 12
    python benchmarks/rule.py choose --data DIR --set small --weights even --shrink 4 \\
        --variant grows grows+fast --precision bf16    # what the learning rate asks, on a CPU
    python benchmarks/rule.py proof cifar10 --seeds 0  # of auto, once it is what was chosen
    python benchmarks/rule.py proof cifar100 --loss auto   # of its runs those with this loss
    python benchmarks/rule.py proof fashion-mnist --precision bf16   # on a CPU, some 20 min a run
    python benchmarks/rule.py table choose             # what came out; or of a bundle, FILE.jsonl
    python benchmarks/rule.py keep choose              # into rule/choose.jsonl, beside this file

``--dry-run`` lists the runs and what they are expected to take on one H200. Runs that are done are
not trained again, those that were stopped go on, and any number of processes may share --out. Every
run averages its weights and, unless it is a baseline on all data, holds a tenth out and chooses an
epoch by it.

The choice is made on two sets, by the clean labels of 5,000 training images set aside: CIFAR-10 at
rates 0.5 and 0.7, and 100 classes of two MNIST digits side by side at 0.5 and 0.8, with seeds 10 to
12. No test image is read. Network, epochs and learning rate are those of the paper's protocol. What
it comes to is written into ``noiseproof/catalogue/_auto.py``, which is what ``auto`` trains with.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from noiseproof import bench as benches
from noiseproof import results
from noiseproof.bench import Bench, RunEvent
from noiseproof.catalogue import AUTO_BRINGS
from noiseproof.runs import Run

COMMITTED = Path(__file__).parent / "rule"
"""Where the runs are that are kept: choose.jsonl, parts.jsonl and proof.jsonl."""
CHOSEN = True
"""Whether auto is what the choice came to: set and committed before the first run of the proof."""

WEIGHTS: dict[str, Callable[[int], str]] = {  # of the loss, by the number of classes
    "jal": lambda k: f"{max(1.0, k / 20):g}*nce + amse(a={30 if k <= 20 else 20})",  # as published
    "even": lambda k: f"{k / 2:g}*nce + amse(a={2 * k})",  # the passive part's is the same for all
}
SHRINK = (1.0, 4.0, 16.0)
HORIZON = 0.02  # of the average, as a share of all steps
VARIANTS: dict[str, dict[str, Any]] = {  # each beside the setting as it is; joined by "+"
    "": {},
    "grows": {"shrink_schedule": "linear"},
    "floor": {"lr_floor": 0.1},  # of lr
    "short": {"ema_horizon": 0.01},
    "long": {"ema_horizon": 0.05},
    "fast": {"lr": 0.1},  # CIFAR-100's, ten times that of the two sets
}
SETS: dict[str, dict[str, Any]] = {  # what the paper's protocol has for them
    "cifar10": {
        "rates": (0.7, 0.5), "model": "cnn8", "epochs": 120, "lr": 0.01, "batch_size": 128,
        "crop": 4, "flip": True,
    },
    "pairs": {
        "rates": (0.8, 0.5), "model": "cnn4", "epochs": 50, "lr": 0.01, "batch_size": 128,
        "crop": 0, "flip": False,
    },
    "small": {  # CIFAR-10 as a CPU has time for it: what a learning rate asks of the weights
        "file": "cifar10", "rates": (0.7, 0.5), "model": "cnn4", "epochs": 50, "lr": 0.01,
        "batch_size": 128, "crop": 4, "flip": True,
    },
}  # fmt: skip
CLASSES = {"cifar10": 10, "pairs": 100, "small": 10}
SECONDS = {"cifar100": 250, "cifar10": 25, "pairs": 12}  # of a packed run on one H200
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
    "fashion-mnist": [
        {"noise": "symmetric", "rate": 0.6}, {"noise": "pairflip", "rate": 0.4},
        {"noise": "symmetric", "rate": 0.8},
    ],
    "news": [{}],  # the labels as people gave them
}  # fmt: skip
_CE = {"CE": {"loss": "ce"}}
_PUBLISHED = {"JAL-CE": {"loss": "jal-ce"}, "ANL-CE": {"loss": "anl-ce"}}
RIVALS: dict[str, dict[str, dict[str, Any]]] = {
    "cifar10": _PUBLISHED,
    "cifar100": _PUBLISHED,
    "fashion-mnist": {  # nothing was published: equal weights, and what was for MNIST
        "NCE+RCE": {"loss": "nce+rce"}, "NCE+100*RCE": {"loss": "nce + 100*rce"},
        "NCE+nnce": {"loss": "nce + nnce", "l1": 1e-6, "weight_decay": 0.0}, **_CE,
    },
    "news": {**_PUBLISHED, **_CE},
}  # fmt: skip
"""What auto is held against, by what tables call it."""
HELD_OUT_TOO = ("cifar10", "news")
"""Where the others are also trained with a tenth held out and an epoch chosen."""
PARTS: dict[str, dict[str, Any]] = {
    "auto": {},
    "without the penalty": {"shrink": 0.0},  # the protocol's weight decay
    "without the average": {"ema_horizon": 0.0},
    "without the choice": {"choose_epoch": False},  # all samples, to the last epoch
    "without the loss": {"loss": "ce", **AUTO_BRINGS},
    "cross entropy": {"loss": "ce"},
}
PARTS_ON: dict[str, list[dict[str, Any]]] = {
    "digits": [
        {"noise": "none"}, *({"noise": "symmetric", "rate": rate} for rate in (0.2, 0.4, 0.6)),
        {"noise": "asymmetric", "rate": 0.4}, {"noise": "instance", "rate": 0.4},
    ],
    "cifar10": [
        {"noise": "none"}, *({"noise": "symmetric", "rate": rate} for rate in (0.4, 0.8)),
        {"noise": "asymmetric", "rate": 0.4}, {"noise": "cifar10n-worst"},
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


def choice(
    folder: Path,
    sets: Iterable[str],
    weights: Iterable[str],
    shrinks: Iterable[float],
    variants: Iterable[str],
    seeds: Iterable[int],
) -> list[Run]:
    """Every combination, at the rates of each set; a floor is a share of the learning rate."""
    runs = []
    for seed, shrink, weigh, variant, name in product(seeds, shrinks, weights, variants, sets):
        fixed = {k: v for k, v in SETS[name].items() if k not in ("file", "rates")}
        values = {"ema_horizon": HORIZON, "choose_epoch": True, **fixed}
        for change in variant.split("+"):
            values |= VARIANTS[change]
        values["lr_floor"] = values["lr"] * values.get("lr_floor", 0.0)
        values |= {"loss": WEIGHTS[weigh](CLASSES[name]), "shrink": shrink, "seed": seed}
        source = f"npz:{folder / SETS[name].get('file', name)}.npz"
        runs += [
            Run(dataset=source, noise="symmetric", rate=rate, **values)
            for rate in SETS[name]["rates"]
        ]
    return runs


def proof(
    name: str, seeds: Iterable[int], folder: Path = Path(), losses: Iterable[str] | None = None
) -> list[Run]:
    """The rule and what it is held against, cell by cell; all of it, or some losses."""
    if not CHOSEN:
        raise SystemExit("auto is not what was chosen yet: choose first, and commit the setting")
    known: dict[str, Any] = {"dataset": name}
    if name == "news":
        files = {part: str(folder / f"{part}.csv.gz") for part in ("train", "test")}
        known = {"dataset": f"csv:{files['train']}", "test": files["test"]}
        known |= {"text": "text", "truth": "gt"}
    runs = []
    for seed, cell in product(seeds, CELLS[name]):
        at = {**known, "seed": seed, **cell}
        runs.append(Run(**at, loss="auto"))
        for rival in RIVALS[name].values():
            runs.append(Run(**at, **rival, ema_horizon=HORIZON))
            if name in HELD_OUT_TOO:
                runs.append(Run(**at, **rival, ema_horizon=HORIZON, choose_epoch=True))
    return [run for run in runs if losses is None or run.loss in losses]


def parts(name: str, seeds: Iterable[int]) -> list[Run]:
    """What each part of auto adds: the whole, the whole without one of them, and nothing of it."""
    runs = []
    for seed, cell in product(seeds, PARTS_ON[name]):
        at = {"dataset": name, "seed": seed, **cell}
        runs += [Run(**at, **{"loss": "auto", **changed}) for changed in PARTS.values()]
    return runs


def train(runs: Sequence[Run], kind: str, given: argparse.Namespace) -> None:
    runs = precise(runs, given)
    kept = {record.hash for record in results.read(*_bundles(kind)).records}
    new = [run for run in dict.fromkeys(runs) if kept.isdisjoint(r.hash for r in run.resolutions())]
    bench = Bench(f"rule-{kind}", "one setting for any noise", "", tuple(new))
    out = given.out / kind
    plan = benches.plan(bench, out)
    seconds = sum(SECONDS.get(_set(run), 2) for run in plan.waiting)
    print(f"{len(runs)} runs, {len(runs) - len(plan.waiting)} done; the others about {seconds:,} s "
          "packed on one H200", flush=True)  # fmt: skip
    if given.dry_run:
        for run in plan.waiting:
            print(f"  {line_of(run)}")
        return
    names = {r.hash: line_of(run) for run in plan.waiting for r in plan.resolutions(run)}

    def told(event: RunEvent) -> None:
        if event.what == "ended":
            print(f"  {names[event.hash]}: {event.error or f'{event.accuracy:.2%}'}", flush=True)
        elif event.what == "epoch" and event.epoch % 10 == 0:
            print(f"  {names[event.hash]}: epoch {event.epoch}, {event.accuracy:.2%}", flush=True)

    outcome = benches.run(plan, out, data_root=root_of(given), watch=told)
    ended = sum(record.error is None for record in outcome.records)
    print(f"{ended} of {len(bench)} ended well, {outcome.seconds:,.0f} s")
    for run, why in outcome.failed:
        print(f"  {line_of(run)}: {why}")


def precise(runs: Sequence[Run], given: argparse.Namespace) -> list[Run]:
    return [replace(run, precision=given.precision or run.precision) for run in runs]


def keep(kind: str, out: Path) -> None:
    """Add what is done to the runs that are kept."""
    reading = results.read(*_bundles(kind), out / kind)
    COMMITTED.mkdir(exist_ok=True)
    results.write_bundle(COMMITTED / f"{kind}.jsonl", reading.records)
    print(f"{len(reading.records)} runs in {COMMITTED / kind}.jsonl", *reading.problems, sep="\n")


def _bundles(kind: str) -> list[Path]:
    path = COMMITTED / f"{kind}.jsonl"
    return [path] if path.exists() else []


def root_of(given: argparse.Namespace) -> str | None:
    return given.data_root or os.environ.get("NOISEPROOF_DATA")


def set_of(run: Any) -> str:
    """Which of the sets of a choice it is trained on: the data and the network tell."""
    return next(
        name for name, of in SETS.items()
        if of.get("file", name) in run.dataset and of["model"] == run.model
    )  # fmt: skip


def _set(run: Any) -> str:
    """What it is trained on, in a word."""
    return next((name for name in (*SECONDS, "digits") if name in run.dataset), run.dataset)


def line_of(run: Any, chosen: str = "") -> str:
    run = run.resolve() if isinstance(run, Run) else run
    grows = " growing" if run.shrink_schedule == "linear" else ""
    floor = f", floor {run.lr_floor:g}" if run.lr_floor else ""
    penalty = f"shrink {run.shrink:g}{grows}" if run.shrink else "as published"
    penalty += f", lr {run.lr:g}"
    chosen = chosen or ("a tenth held out" if run.choose_epoch else "all data")
    return (
        f"{_set(run)} {run.noise} {run.rate:g}, {run.loss}, {penalty}{floor}, "
        f"horizon {run.ema_horizon:g}, {chosen}, seed {run.seed}"
    )


def label_wave(changed: Sequence[float], span: int = 3) -> int:
    """The first epoch at which fewer predictions change, over a span, than before and after."""
    means = [math.fsum(changed[i - span : i]) / span for i in range(1 + span, len(changed) + 1)]
    for i in range(1, len(means) - 1):
        if means[i] < means[i - 1] and means[i] <= means[i + 1]:
            return i + 1 + span
    return len(changed)


def table(*places: Path) -> None:
    """Of every run: the last weights, the averaged ones, the chosen epoch, and its regret."""
    rows = []
    for record in results.read(*places).records:
        ema, last = (record.column(f"test_accuracy{end}") for end in ("_ema", ""))
        tested = ema if ema[-1] == ema[-1] else last  # there may be no average
        best = max(tested)
        row = [f"{100 * x:.2f}" if x == x else "" for x in (last[-1], ema[-1], best)]
        if record.run.choose_epoch:
            chosen = int(record.column("chosen_epoch")[-1])
            wave = label_wave(record.column("changed_predictions"))
            there, by_wave = tested[chosen - 1], tested[wave - 1]
            row += [f"{100 * there:.2f}", str(chosen), f"{100 * (best - there):.2f}"]
            row += [f"{100 * (best - by_wave):.2f}"]
        else:
            row += ["", "", "", ""]
        rows.append([*row, line_of(record.run)])
    print("| last | averaged | best | chosen | epoch | regret | of Label Wave | run |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in sorted(rows, key=lambda row: row[-1]):
        print(f"| {' | '.join(row)} |")


def _variant(text: str) -> str:
    if unknown := [change for change in text.split("+") if change not in VARIANTS]:
        known = ", ".join(filter(None, VARIANTS))
        raise argparse.ArgumentTypeError(f"no variant {unknown[0]!r}; there are {known}")
    return text


def add_choice(parser: argparse.ArgumentParser) -> None:
    """The flags that say what is chosen among, and where it lies."""
    parser.add_argument("--data", type=Path, default=Path("rule-data"), help="folder of the sets")
    parser.add_argument("--data-root", help="where CIFAR and MNIST lie")
    parser.add_argument("--set", choices=list(SETS), nargs="+", default=["cifar10", "pairs"])
    parser.add_argument("--weights", choices=list(WEIGHTS), nargs="+", default=list(WEIGHTS))
    parser.add_argument("--shrink", type=float, nargs="+", default=list(SHRINK))
    parser.add_argument(
        "--variant",
        type=_variant,
        nargs="+",
        default=[""],
        metavar="NAMES",
        help=f"joined by +, of {', '.join(filter(None, VARIANTS))}",
    )
    parser.add_argument("--seeds", type=int, nargs="+", help="default: 10 to choose, else 0")
    parser.add_argument("--precision", choices=["bf16", "fp32"], help="default: as runs have it")


def chosen(given: argparse.Namespace) -> list[Run]:
    """The runs that these flags ask for."""
    seeds = given.seeds or [10]
    return choice(given.data, given.set, given.weights, given.shrink, given.variant, seeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["data", "choose", "parts", "proof", "table", "keep"])
    parser.add_argument("which", nargs="?", default="", help="a folder, data set or kind of runs")
    parser.add_argument("--out", type=Path, default=Path("runs-rule"))
    parser.add_argument("--dry-run", action="store_true")
    losses = ["auto", *dict.fromkeys(r["loss"] for of in RIVALS.values() for r in of.values())]
    parser.add_argument("--loss", choices=losses, nargs="+", help="of the proof, these alone")
    add_choice(parser)
    given = parser.parse_args()
    if given.what == "data":
        write_sets(Path(given.which or given.data), root_of(given))
    elif given.what == "table":
        kind = given.which or "choose"
        table(*([Path(kind)] if Path(kind).exists() else [*_bundles(kind), given.out / kind]))
    elif given.what == "keep":
        keep(given.which or "choose", given.out)
    elif given.what == "parts":
        train(parts(given.which, given.seeds or [0]), "parts", given)
    elif given.what == "choose":
        train(chosen(given), "choose", given)
    else:
        train(proof(given.which, given.seeds or [0], given.data, given.loss), "proof", given)


if __name__ == "__main__":
    main()
