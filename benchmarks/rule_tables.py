"""auto on tables, whose networks AdamW trains: how its penalty is limited, and how it then does.

    python benchmarks/rule_tables.py data --data DIR --packages R  # writes the tables to DIR
    python benchmarks/rule_tables.py choose --data DIR --save  # limits of the penalty, on four
    python benchmarks/rule_tables.py proof --data DIR --save   # on four others

The tables are those of UCI's repository that R's packages mlbench and kernlab bring along, and one
that scikit-learn makes. R is the folder in which these two packages are (R's library), and reading
them takes pyreadr. A third of each table is what it is tested on, 10,000 rows at most, drawn once.
What ``choose`` came to is the ``shrink_limit`` of auto (`noiseproof.catalogue.AUTO_BRINGS`), which
was set before the first run of ``proof``. ``--save`` writes benchmarks/rule_tables.csv. On two
cores each of the two takes about twenty minutes.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from tables import save

from noiseproof import bench as benches
from noiseproof.bench import Bench
from noiseproof.results import Record
from noiseproof.runs import Run

R_TABLES = {  # package, name there and column of the classes
    "vowel": ("mlbench", "Vowel", "Class"),
    "vehicle": ("mlbench", "Vehicle", "Class"),
    "satellite": ("mlbench", "Satellite", "classes"),
    "letter": ("mlbench", "LetterRecognition", "lettr"),
    "dna": ("mlbench", "DNA", "Class"),
    "pima": ("mlbench", "PimaIndiansDiabetes", "diabetes"),
    "spam": ("kernlab", "spam", "type"),
}
TABLES = {"choose": ("vowel", "vehicle", "satellite", "made20"),
          "proof": ("letter", "dna", "spam", "pima")}  # fmt: skip
TWO_CLASSES = ("spam", "pima")
SEEDS = (0, 1)
CELLS = [("none", 0.0), ("symmetric", 0.2), ("symmetric", 0.4), ("symmetric", 0.6),
         ("pairflip", 0.3)]  # fmt: skip
OF_TWO = {0.2: 0.1, 0.4: 0.2, 0.6: 0.3}  # symmetric rates, where one half is no knowledge at all
LIMITS = (0.0, 0.05, 0.1, 0.2)
RIVALS = ("ce", "gce", "1*nce + 1*rce")


def write_tables(folder: Path, packages: Path) -> None:
    """Every table as an npz file with a part to test on."""
    import pandas as pd
    import pyreadr
    from sklearn.datasets import make_classification

    folder.mkdir(parents=True, exist_ok=True)
    for name, (package, of, column) in R_TABLES.items():
        (frame,) = pyreadr.read_r(str(packages / package / "data" / f"{of}.rda")).values()
        classes = pd.Categorical(frame.pop(column).astype(str))
        numbers = frame.astype(str).astype(float).to_numpy("float32")
        order = np.random.default_rng(0).permutation(len(numbers))
        _write(folder, name, numbers, classes.codes.astype("int64"), order)
    numbers, made = make_classification(
        6000, 32, n_informative=16, n_redundant=0, n_classes=20, n_clusters_per_class=1,
        class_sep=1.5, flip_y=0, random_state=1,
    )  # fmt: skip
    _write(folder, "made20", numbers.astype("float32"), made, np.arange(len(made)))


def _write(folder: Path, name: str, x: Any, y: Any, order: Any) -> None:
    tested = min(len(x) // 3, 10_000)
    test, train = order[:tested], order[tested:]
    np.savez(
        folder / f"{name}.npz", x_train=x[train], y_train=y[train], x_test=x[test], y_test=y[test]
    )
    print(f"{name}: {len(train):,} rows of {x.shape[1]} numbers, {len(np.unique(y))} classes")


def settings(part: str) -> dict[str, dict[str, Any]]:
    """What is compared, by name."""
    rivals = {loss: {"loss": loss} for loss in RIVALS}
    limits = LIMITS if part == "choose" else (0.0,)
    found: dict[str, dict[str, Any]] = {} if part == "choose" else {"auto": {"loss": "auto"}}
    for limit in limits:
        found[f"auto, limit {limit:g}" if limit else "auto, no limit"] = {
            "loss": "auto", "shrink_limit": limit,
        }  # fmt: skip
    return rivals | found


def runs(part: str, folder: Path) -> dict[tuple[str, str, float, str], list[Run]]:
    """By table, kind of noise, its nominal rate and setting: a run of each seed."""
    found = {}
    for name, (noise, nominal) in product(TABLES[part], CELLS):
        if name in TWO_CLASSES and noise == "pairflip":
            continue  # which is symmetric noise there
        rate = OF_TWO[nominal] if name in TWO_CLASSES and noise == "symmetric" else nominal
        for called, setting in settings(part).items():
            found[name, noise, nominal, called] = [
                Run(dataset=f"npz:{folder / name}.npz", noise=noise, rate=rate, seed=seed,
                    device="cpu", **setting)
                for seed in SEEDS
            ]  # fmt: skip
    return found


def rows_of(part: str, folder: Path, out: Path) -> list[dict[str, Any]]:
    """Train what is not there yet; a row for each run."""
    groups = runs(part, folder)
    every = tuple(dict.fromkeys(run for group in groups.values() for run in group))
    plan = benches.plan(Bench("tables", "auto on tables", "", every), out)
    print(f"{len(every)} runs, {len(every) - len(plan.waiting)} done", flush=True)
    outcome = benches.run(plan, out)
    for run, why in outcome.failed:
        print(f"  {run}: {why}")
    records = {record.hash: record for record in outcome.records}
    rows = []
    for (name, noise, _, called), group in groups.items():
        for run in group:
            hashes = [r.hash for r in plan.resolutions(run)]
            record = next((records[h] for h in hashes if h in records), None)
            if record is None or record.error is not None:
                continue  # said above
            rows.append({
                "part": part, "table": name, "noise": noise, "rate": run.rate, "setting": called,
                "seed": run.seed, **accuracies(record), "torch": torch_version(),
            })  # fmt: skip
    return rows


def accuracies(record: Record) -> dict[str, str]:
    """In percent: of the weights that it ends with, of the last epoch and of the best one."""
    end = "_ema" if record.run.ema_horizon else ""
    tested = record.column(f"test_accuracy{end}")
    found = {"ends_with": record.accuracy, "last": tested[-1], "best": max(tested)}
    return {name: f"{100 * value:.2f}" for name, value in found.items()}


def torch_version() -> str:
    from importlib.metadata import version

    return version("torch")


def show(rows: list[dict[str, Any]]) -> None:
    """The mean over cells and seeds of what runs end with, and of the last epoch."""
    for name, called in dict.fromkeys((row["table"], row["setting"]) for row in rows):
        mine = [row for row in rows if (row["table"], row["setting"]) == (name, called)]
        ends, last = (fmean(float(row[key]) for row in mine) for key in ("ends_with", "last"))
        print(f"{name:10} {called:18} {ends:6.2f}  last epoch {last:6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["data", "choose", "proof"])
    parser.add_argument("--data", type=Path, default=Path("rule-tables"), help="where they are")
    parser.add_argument("--packages", type=Path, default=Path("/usr/lib/R/site-library"))
    parser.add_argument("--out", type=Path, default=Path("runs-tables"))
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    if given.what == "data":
        write_tables(given.data, given.packages)
        return
    rows = rows_of(given.what, given.data, given.out / given.what)
    show(rows)
    if given.save:
        save(__file__, rows, beside="part")


if __name__ == "__main__":
    main()
