"""The penalty in units of the schedule: what each step has of it, and what papers' weights are."""

from __future__ import annotations

import math

import pytest

from noiseproof import UsageError, models
from noiseproof.runs import Run, l1_of_shrink, shrink_of_l1

SCHEDULES = [
    {}, {"warmup": 2.5}, {"schedule_by": "step"}, {"schedule": "exponential", "warmup": 1},
    {"schedule": "constant", "shrink_schedule": "linear"}, {"shrink_schedule": "linear"},
    {"schedule_by": "step", "warmup": 0.5, "shrink_schedule": "linear"}, {"lr_floor": 0.005},
]  # fmt: skip


@pytest.mark.parametrize("settings", SCHEDULES, ids=str)
def test_the_steps_of_a_run_add_up_to_the_penalty(settings):
    run, steps = Run(shrink=3.0, epochs=7, **settings).resolve(), 11
    shares = [run.shrink_at(epoch, steps=steps) for epoch in range(run.epochs)]
    assert {len(row) for row in shares} == {steps}
    assert math.fsum(x for row in shares for x in row) == pytest.approx(3.0, rel=1e-12)
    for epoch, row in enumerate(shares):
        for i, share in enumerate(row):
            lr = run.lr_at(epoch, i, steps=steps)
            over = epoch * steps + i + 1 if run.shrink_schedule == "linear" else 1
            assert share / (lr * over) == pytest.approx(shares[0][0] / run.lr_at(0, steps=steps))


def test_without_a_learning_rate_nothing_is_shrunk():
    assert Run(shrink=3.0, lr=0.0).resolve().shrink_at(0, steps=2) == [0.0, 0.0]


def test_it_takes_the_place_of_weight_decay_and_of_the_method_s_l1():
    plain = Run(dataset="cifar10", loss="jal-ce").resolve()
    assert (plain.l1, plain.shrink) == (5e-5, 0.0)
    for loss in ("jal-ce", "nce+rce"):
        run = Run(dataset="cifar10", loss=loss, shrink=4.0).resolve()
        assert (run.shrink, run.l1, run.weight_decay) == (4.0, 0.0, 0.0)
    both = Run(dataset="cifar10", loss="jal-ce", shrink=4.0, l1=1e-6, weight_decay=1e-4).resolve()
    assert (both.shrink, both.l1, both.weight_decay) == (4.0, 1e-6, 1e-4)


def test_how_it_grows_needs_it():
    with pytest.raises(UsageError, match="give shrink too"):
        Run(shrink_schedule="linear")


def test_a_limit_needs_it():
    assert Run(shrink=8.0, shrink_limit=0.5).resolve().shrink_limit == 0.5
    assert Run(shrink=8.0).resolve().shrink_limit == 0.0
    assert Run(shrink_limit=0.0).resolve().hash == Run().resolve().hash
    with pytest.raises(UsageError, match="and loss='ce' shrinks none: give shrink too"):
        Run(loss="ce", shrink_limit=0.1)
    with pytest.raises(UsageError, match="and shrink=0 shrinks none: give shrink too"):
        Run(loss="auto", shrink=0, shrink_limit=0.1)


PUBLISHED = [  # data set, method, training samples, shape, classes, in units of the schedule
    ("cifar10", "jal-ce", 50_000, (3, 32, 32), 10, 4.1),
    ("cifar10", "anl-ce", 50_000, (3, 32, 32), 10, 4.1),
    ("cifar100", "jal-ce", 50_000, (3, 32, 32), 100, 8.6),
    ("cifar100", "anl-ce", 50_000, (3, 32, 32), 100, 0.86),
    ("mnist", "anl-ce", 60_000, (1, 28, 28), 10, 0.05),
    ("webvision", "anl-ce", 65_944, (3, 224, 224), 50, 2.4),
]


@pytest.mark.slow
@pytest.mark.parametrize(("dataset", "loss", "n", "shape", "classes", "expected"), PUBLISHED)
def test_published_weights_in_these_units(dataset, loss, n, shape, classes, expected):
    run = Run(dataset=dataset, loss=loss).resolve()
    network = models.build(run.model, classes, shape=shape, seed=0)
    matrices = [p.detach() for p in network.parameters() if p.dim() >= 2]
    size = sum(float(m.abs().sum()) for m in matrices) / sum(m.numel() for m in matrices)
    units = {
        "lr_sum": run.lr_sum(steps=math.ceil(n / run.batch_size)),
        "mean_size": size,
        "momentum": run.momentum,
    }
    found = shrink_of_l1(run.l1, **units)
    assert float(f"{found:.1g}" if dataset == "mnist" else f"{found:.2g}") == expected
    assert l1_of_shrink(found, **units) == pytest.approx(run.l1)
