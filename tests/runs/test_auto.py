"""`--loss auto`: what it stands for, what goes before it, and by what its runs are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from noiseproof import UsageError
from noiseproof.catalogue import AUTO, DATASETS, DataSummary
from noiseproof.catalogue._auto import AUTO_BRINGS, auto_setting
from noiseproof.runs import Run
from noiseproof.train import fit

CONDITIONS = [
    {"noise": "symmetric", "rate": 0.8}, {"noise": "symmetric", "rate": 0.2},
    {"noise": "asymmetric", "rate": 0.4}, {"noise": "none"},
]  # fmt: skip


@pytest.mark.parametrize("dataset", ["digits", "mnist", "cifar10", "cifar100", "webvision"])
def test_it_is_one_setting_whatever_the_noise(dataset):
    found = set()
    for condition in CONDITIONS if dataset != "webvision" else [{}]:
        run = Run(dataset=dataset, loss="auto", **condition).resolve()
        found.add((run.loss, *(getattr(run, name) for name in AUTO_BRINGS)))
        assert (run.weight_decay, run.l1, run.holdout) == (0.0, 0.0, 0.1)
        assert run.method == AUTO
    (one,) = found
    entry = DATASETS[dataset]
    expected = auto_setting(entry.num_classes, entry.protocols["paper"].lr)
    assert one == (expected.loss, *expected.brings.values())


@pytest.mark.parametrize(
    ("given", "loss", "limit"),
    [
        ({}, "5*nce + amse(a=20)", 0.1), ({"lr": 0.1}, "0.5*nce + 0.1*amse(a=20)", 0.01),
        ({"lr": 0.04}, "1.25*nce + 0.25*amse(a=20)", 0.025),
        ({"lr": 0.001}, "5*nce + amse(a=20)", 0.1),
        ({"optimizer": "adamw", "lr": 0.1}, "5*nce + amse(a=20)", 0.1),
        ({"lr": 0.1, "shrink_limit": 0.3}, "0.5*nce + 0.1*amse(a=20)", 0.3),
    ],
    ids=str,
)  # fmt: skip
def test_a_larger_learning_rate_has_a_smaller_loss_and_limit(given, loss, limit):
    run = Run(dataset="cifar10", loss="auto", **given).resolve()
    assert (run.loss, run.method, run.shrink_limit) == (loss, AUTO, limit)
    note = Run(dataset="cifar10", loss="auto", **given).note()
    assert f"auto is {loss} with" in note
    assert f"--shrink-limit {limit:g}," in note
    other = Run(dataset="cifar10", loss=loss, **{**AUTO_BRINGS, "lr": 0.025}).resolve()
    assert other.method != AUTO


def test_the_same_rule_at_ten_times_the_learning_rate():
    """What SGD does depends on lr times the loss, as long as no gradient is clipped."""
    run = Run(loss="auto", epochs=2, clip=0.0, device="cpu")
    usual, fast, free = (fit(replace(run, **g)) for g in ({}, {"lr": 0.1}, {"shrink_limit": 0.0}))
    assert usual.run.loss != fast.run.loss
    for one, two in zip(usual.network.parameters(), fast.network.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-3)
    assert usual.accuracy > free.accuracy + 0.1  # in a run this short the limit is reached


def test_the_loss_follows_from_the_number_of_classes_and_the_learning_rate():
    def loss(classes: int) -> str:
        data = DataSummary("features", (5,), 3000, classes, tested=True)
        run = Run(loss="auto").resolve(overrides={"data": "own"}, data=data)
        assert run.method == AUTO
        return run.loss

    assert loss(10) == Run(dataset="cifar10", loss="auto").resolve().loss
    assert loss(100) == Run(dataset="cifar100", loss="auto", lr=0.01).resolve().loss
    assert loss(2) != loss(1000)
    with pytest.raises(UsageError, match="auto needs to know how many classes own has"):
        Run(loss="auto").resolve(overrides={"data": "own"})


def test_of_a_file_too(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez(path, x=np.random.default_rng(0).normal(size=(90, 4)), y=np.arange(90) % 3)
    run = Run(dataset=f"npz:{path}", loss="auto")
    resolved = run.resolve()
    assert resolved.loss == auto_setting(3).loss
    assert (resolved.holdout, resolved.choose_epoch) == (0.2, True)  # there is nothing to test on
    assert (resolved.method, resolved.means("Auto"), resolved.means("ce")) == (AUTO, True, False)
    assert "auto is" in run.note()


@pytest.mark.parametrize(
    "given",
    [
        {"shrink": 1.0}, {"shrink": 0.0}, {"ema_horizon": 0.1}, {"choose_epoch": False},
        {"holdout": 0.2}, {"shrink_schedule": "constant"}, {"weight_decay": 1e-4}, {"l1": 1e-6},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_given_goes_before_it(given):
    usual, run = (Run(loss="auto", **g).resolve().settings() for g in ({}, given))
    (name, value), *_ = given.items()
    assert run[name] == value != usual[name]
    differing = {name for name in run if run[name] != usual[name]} - {name}
    # without a penalty the protocol's decay is back; without a choice nothing is held out
    without = {"weight_decay", "shrink_schedule", "shrink_limit"}
    allowed = {"shrink": without if not value else set(), "choose_epoch": {"holdout"}}
    assert differing == allowed.get(name, set())


def test_another_average_takes_the_place_of_its_own():
    run = Run(loss="auto", ema=0.9).resolve()
    assert (run.ema, run.ema_horizon) == (0.9, 0.0)


def test_with_nothing_held_out_no_epoch_is_chosen():
    run = Run(loss="auto", holdout=0).resolve()
    assert (run.holdout, run.choose_epoch) == (0.0, False)
    with pytest.raises(UsageError, match=r"give holdout=0\.1"):
        Run(loss="auto", holdout=0, choose_epoch=True)


def test_runs_are_equal_however_they_were_written():
    auto = Run(dataset="cifar10", loss="auto").resolve()
    written = Run(dataset="cifar10", loss=auto.loss, **AUTO_BRINGS).resolve()
    assert written.hash == auto.hash
    assert written.method == AUTO


def test_what_is_taken_for_it():
    loss = Run(dataset="cifar10", loss="auto").resolve().loss
    assert Run(dataset="cifar10", loss=loss, shrink=7.0).resolve().means("auto")  # as --shrink 7
    for other in (
        Run(dataset="cifar10", loss=loss), Run(dataset="cifar100", loss=loss, **AUTO_BRINGS),
        Run(dataset="cifar10", loss="nce+rce", **AUTO_BRINGS),
    ):  # fmt: skip
        run = other.resolve()
        assert (run.method == AUTO, run.means("auto")) == (False, False)


def test_data_that_is_named_like_a_listed_set_has_its_own_classes():
    data = DataSummary("image", (1, 8, 8), 3000, 3, tested=True)
    run = Run(loss="auto").resolve(overrides={"data": "digits"}, data=data)
    assert (run.loss, run.method) == (auto_setting(3).loss, AUTO)


def test_the_note_says_what_the_run_does():
    note = Run(loss="auto").note()
    assert "--shrink 4 --shrink-schedule linear --shrink-limit 0.1, averaged weights" in note
    note = Run(loss="auto", holdout=0, shrink=2.5, shrink_limit=0, ema=0.9).note()
    assert note == "auto is 5*nce + amse(a=20) with --shrink 2.5 --shrink-schedule linear"
