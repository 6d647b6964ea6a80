"""Forward and backward of every loss on a CPU, against torch's cross entropy in the same run.

    python benchmarks/loss_cpu.py [--save]

Prints, for each shape, the median time of a forward and backward pass, its ratio to
``torch.nn.functional.cross_entropy``, and the peak of the memory that the pass takes beyond its
inputs, in multiples of the logits. A round runs the losses in a new random order, each a few times
in a row, so that a slow moment of the machine falls on all of them; the ratio is the median of
the ratios within a round. ``--save`` writes the table to benchmarks/loss_cpu.csv.
"""

from __future__ import annotations

import argparse
import platform
import random
import statistics
import time
from collections.abc import Callable

import torch
from tables import save
from torch import Tensor

import noiseproof

SHAPES = ((4096, 10), (4096, 100), (1024, 1000))
PEER = "torch cross_entropy"
SUMS = ("nce + rce", "nce + mae", "nfl + rce", "ngce + mae")
GOALS = {(4096, 100): 1.5, (1024, 1000): 1.3}  # times the peer, for:
WITH_GOAL = ("nce", "rce", "mae", "gce", "nce + rce")

Pass = Callable[[Tensor, Tensor], Tensor]


def passes() -> dict[str, Pass]:
    names = [*noiseproof.losses.registry(), *SUMS]
    return {PEER: torch.nn.functional.cross_entropy, **{n: noiseproof.parse(n) for n in names}}


def seconds(function: Pass, logits: Tensor, target: Tensor, repeats: int) -> float:
    times = []
    for _ in range(repeats + 1):
        logits.grad = None
        start = time.perf_counter()
        torch.autograd.backward(function(logits, target))
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])  # the first pass refills caches that another loss used


def peak_bytes(function: Pass, logits: Tensor, target: Tensor) -> int:
    """The most memory allocated at once during a pass, the gradient of the logits included."""
    logits.grad = None
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        torch.autograd.backward(function(logits, target))
    results = profile.profiler.kineto_results
    changes = [e for e in results.events() if e.name() == "[memory]"]
    now = peak = 0
    for event in sorted(changes, key=lambda e: e.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return peak


def measure(shape: tuple[int, int], rounds: int, repeats: int) -> list[dict[str, object]]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(shape, generator=generator).requires_grad_()
    target = torch.randint(shape[1], shape[:1], generator=generator)
    functions = passes()
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name in random.sample(list(functions), len(functions)):
            times[name].append(seconds(functions[name], logits, target, repeats))
    rows: list[dict[str, object]] = []
    for name, function in functions.items():
        ratio = statistics.median(a / b for a, b in zip(times[name], times[PEER], strict=True))
        memory = peak_bytes(function, logits, target) / (logits.numel() * logits.element_size())
        goal = GOALS.get(shape) if name in WITH_GOAL else None
        rows.append(
            {
                "shape": f"{shape[0]}x{shape[1]}",
                "loss": name,
                "ms": f"{statistics.median(times[name]) * 1e3:.3f}",
                "ratio": f"{ratio:.2f}",
                "goal": goal or "",
                "memory": f"{memory:.1f}",
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--save", action="store_true", help="write benchmarks/loss_cpu.csv")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    rows = []
    for shape in SHAPES:
        print(f"\n{shape[0]} x {shape[1]}, float32, {options.threads} threads")
        print(f"{'loss':20} {'ms':>8} {'ratio':>6} {'goal':>5} {'memory':>7}")
        for row in measure(shape, options.rounds, options.repeats):
            print("{loss:20} {ms:>8} {ratio:>6} {goal:>5} {memory:>7}".format(**row))
            machine = f"{platform.machine()}, {options.threads} threads"
            rows.append({"machine": machine, "torch": torch.__version__, **row})
    if options.save:
        save(__file__, rows)


if __name__ == "__main__":
    main()
