"""Noise for 1.28 million labels of 1,000 classes, against the loop of the papers' repositories.

    python benchmarks/noise.py [--save]

The peer goes sample by sample: for symmetric noise ``numpy.random.choice`` of a list of the other
classes for every label to be flipped, by a matrix ``numpy.random.multinomial`` of the label's row
for every label. It runs over all the labels, nothing is extrapolated. Times are those of the
whole call, checks and the object returned included: the median of ``--repeats`` calls of ours, and
one run of the peer's. ``--save`` writes the table to benchmarks/noise.csv.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from tables import save

from noiseproof import noise

RATE = 0.4
GOAL = 100  # times as fast as the loop


def choice_loop(labels: NDArray[np.int64], rate: float, num_classes: int) -> NDArray[np.int64]:
    """Symmetric noise, one label after another."""
    random = np.random.RandomState(0)
    noisy = labels.copy()
    for i in random.choice(len(labels), int(rate * len(labels)), replace=False):
        others = list(range(num_classes))
        others.remove(int(labels[i]))
        noisy[i] = random.choice(others)
    return noisy


def multinomial_loop(labels: NDArray[np.int64], T: NDArray[np.float64]) -> NDArray[np.int64]:
    """Noise by a matrix, one label after another."""
    random = np.random.RandomState(0)
    noisy = labels.copy()
    for i, label in enumerate(labels):
        noisy[i] = np.flatnonzero(random.multinomial(1, T[label]))[0]
    return noisy


def seconds(function: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--labels", type=int, default=1_280_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--save", action="store_true", help="write benchmarks/noise.csv")
    options = parser.parse_args()
    K = options.classes
    labels = np.random.RandomState(0).randint(0, K, options.labels).astype(np.int64)
    T = noise.matrix("symmetric", RATE, num_classes=K)

    def symmetric(exact: bool) -> object:
        return noise.symmetric(labels, RATE, num_classes=K, exact=exact)

    def by_matrix(exact: bool) -> object:
        return noise.from_matrix(labels, T, exact=exact)

    print(f"{options.labels:,} labels of {K:,} classes, rate {RATE}")
    print(f"{'noise':12} {'draws':12} {'s':>9} {'times as fast':>14} {'goal':>5}")
    rows: list[dict[str, object]] = []
    for name, ours, loop in (
        ("symmetric", symmetric, lambda: choice_loop(labels, RATE, K)),
        ("by matrix", by_matrix, lambda: multinomial_loop(labels, T)),
    ):
        peer = seconds(loop, 1)
        measured = {"loop": peer}
        for draws, exact in (("exact", True), ("independent", False)):
            ours(exact)  # the first call touches new memory
            measured[draws] = seconds(lambda f=ours, e=exact: f(e), options.repeats)  # type: ignore[misc]
        for draws, taken in measured.items():
            row = {
                "labels": options.labels,
                "classes": K,
                "noise": name,
                "draws": draws,
                "s": f"{taken:.4f}",
                "times_as_fast": f"{peer / taken:.0f}",
                "goal": GOAL if draws != "loop" else "",
            }
            print("{noise:12} {draws:12} {s:>9} {times_as_fast:>14} {goal:>5}".format(**row))
            rows.append({"machine": platform.machine(), "numpy": np.__version__, **row})
    if options.save:
        save(__file__, rows)


if __name__ == "__main__":
    main()
