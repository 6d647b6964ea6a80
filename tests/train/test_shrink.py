"""Weights that are shrunk after every update: units, exact zeros, resumption, packs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from noiseproof import UsageError
from noiseproof.runs import l1_of_shrink
from noiseproof.train import fit, fit_many
from noiseproof.train._state import TrainState
from noiseproof.train.optimizers._adamw import AdamW
from noiseproof.train.optimizers._sgd import SGD

from .subjects import (
    STEPS,
    StopError,
    but_seconds,
    conv_net,
    flat_net,
    same,
    stop_after,
    tiny,
    weights,
)
from .twins import CPU, PLAIN, batches, torch_optimizer

ADAM = {"beta1": 0.9, "beta2": 0.999, "eps": 0.1, "weight_decay": 0.01, "clip": 0.0, "l1": 0.0}
SHRINKING = {
    "sgd": {},
    "linear": {"shrink_schedule": "linear", "nesterov": True},
    "by step": {"warmup": 1.5, "schedule_by": "step"},
    "adamw": {"optimizer": "adamw", "ema": 0.9},
    "bf16": {"precision": "bf16"},
}


def nothing(logits, labels):
    """A loss that moves no weight."""
    return logits.sum() * 0


@pytest.mark.parametrize("settings", SHRINKING.values(), ids=SHRINKING)
@pytest.mark.parametrize("shrink", [0.25, 1.0])
def test_a_weight_that_nothing_else_moves_is_shrunk_as_many_times_over(shrink, settings):
    network = conv_net()
    before = [p.detach().clone() for p in network.parameters()]
    matrices = torch.cat([p.flatten() for p in before if p.dim() >= 2])
    fit(tiny(epochs=4, shrink=shrink, **settings), loss=nothing, network=network)
    away = shrink * float(matrices.abs().mean())
    for then, now in zip(before, network.parameters(), strict=True):
        expected = then.sign() * (then.abs() - away).clamp(min=0)
        torch.testing.assert_close(now.detach(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"warmup": 1.5, "schedule_by": "step"}], ids=str)
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_no_step_shrinks_by_more_than_the_limit(optimizer, settings):
    """Which is a share of its learning rate: over the run that of the sum of all."""
    network = conv_net()
    before = [p.detach().clone() for p in network.parameters()]
    run = tiny(epochs=4, shrink=1e3, shrink_limit=0.02, optimizer=optimizer, **settings)
    fit(run, loss=nothing, network=network)
    away = 0.02 * run.resolve().lr_sum(steps=STEPS)
    assert 0 < away < max(float(p.abs().max()) for p in before)
    for then, now in zip(before, network.parameters(), strict=True):
        expected = then.sign() * (then.abs() - away).clamp(min=0)
        torch.testing.assert_close(now.detach(), expected, rtol=1e-4, atol=1e-6)


def test_a_strong_penalty_does_not_undo_what_adamw_has_learnt():
    """A step of it moves a weight by about the learning rate, however much the loss pulls."""
    run = tiny(
        epochs=8, batch_size=32, optimizer="adamw", noise="none", loss="ce", shrink=40.0,
        shrink_schedule="linear",
    )  # fmt: skip
    assert fit(run).accuracy < 0.5
    assert fit(replace(run, shrink_limit=0.1)).accuracy > 0.9


def test_a_short_run_of_auto_learns():
    """Over few steps a penalty in units of the schedule is strong beside what the loss can do."""
    run = tiny(epochs=3, batch_size=32, loss="auto", rate=0.2)
    assert fit(run).accuracy > 0.7
    assert fit(replace(run, shrink=8.0)).accuracy > 0.7
    assert fit(replace(run, shrink=8.0, shrink_limit=0.0)).accuracy < 0.5


@pytest.mark.parametrize("ours", [SGD(**PLAIN), AdamW(**ADAM)], ids=["sgd", "adamw"])
def test_the_update_is_torch_s_and_then_a_soft_threshold(ours):
    network, theirs = conv_net(), conv_net()
    state = TrainState(network, CPU, None, ours, shrinks=True)
    state.adopt(network)
    optimizer, shrink = torch_optimizer(theirs, ours, 0.05), 2e-3
    for x, y in batches():
        state.gather(
            torch.autograd.grad(F.cross_entropy(network(x), y), list(state.leaves.values()))
        )
        state.step(torch.tensor(0.05), fused=False, shrink=torch.tensor([shrink]))
        optimizer.zero_grad()
        F.cross_entropy(theirs(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for p in theirs.parameters():
                p.copy_(F.softshrink(p, shrink))
    for mine, other in zip(network.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-6)
    assert int((state.weights == 0).sum()) > 10


@pytest.mark.slow
def test_weights_become_exactly_zero_and_what_is_learnt_stays():
    """Of the weights of digits' edges, which are always black, nothing is left."""
    plain, shrunk = (
        fit(tiny(epochs=20, batch_size=32, lr=0.1, loss="ce", noise="none", weight_decay=0.0, **s))
        for s in ({}, {"shrink": 4.0})
    )
    zeros = [
        float(torch.cat([(p == 0).flatten() for p in r.network.parameters()]).float().mean())
        for r in (plain, shrunk)
    ]
    assert zeros[0] < 0.05
    assert zeros[1] > 0.3
    assert shrunk.accuracy > 0.9


@pytest.mark.parametrize("settings", SHRINKING.values(), ids=SHRINKING)
def test_a_stopped_run_ends_as_an_uninterrupted_one(settings, tmp_path):
    run = tiny(epochs=4, shrink=2.0, **settings)
    whole = fit(run)
    for epoch in (1, 3):
        with pytest.raises(StopError):
            fit(run, out=tmp_path, on_epoch=stop_after(epoch))
    resumed = fit(run, out=tmp_path)
    assert but_seconds(resumed.history) == but_seconds(whole.history)
    assert same(weights(resumed.network), weights(whole.network))


def test_the_unit_is_that_of_the_start_also_when_it_goes_on(tmp_path):
    """A network of the user's own may come with other weights; the checkpoint's are taken."""
    run = tiny(epochs=2, shrink=1.0)
    network = conv_net()
    with pytest.raises(StopError):
        fit(run, network=network, out=tmp_path, name="mine", on_epoch=stop_after(1))
    kept = torch.load(tmp_path / "mine" / "checkpoint.pt", weights_only=True)["tensors"]
    matrices = torch.cat([p.detach().flatten() for p in conv_net().parameters() if p.dim() >= 2])
    assert float(kept["start_scale"]) == pytest.approx(float(matrices.abs().mean()))
    whole, other = fit(run, network=conv_net()), conv_net()
    with torch.no_grad():
        for p in other.parameters():
            p.mul_(5)
    resumed = fit(run, network=other, out=tmp_path, name="mine")
    assert same(weights(resumed.network), weights(whole.network))


def test_runs_of_a_pack_are_shrunk_each_by_its_own():
    runs = [tiny(shrink=shrink) for shrink in (0.0, 1.0, 3.0)]
    packed = fit_many(runs, pack=3)
    for run, together in zip(runs, packed, strict=True):
        assert same(weights(fit(run).network), weights(together.network))
    sizes = [sum(float(p.detach().abs().sum()) for p in r.network.parameters()) for r in packed]
    assert sizes[0] > sizes[1] > sizes[2]


def test_it_is_measured_by_the_steps_that_there_are():
    """Half of the epochs, and each step shrinks twice as much."""
    found = [sum(tiny(shrink=1.0, epochs=e).resolve().shrink_at(0, steps=STEPS)) for e in (2, 4)]
    assert found[0] > 1.5 * found[1]


@pytest.mark.parametrize("schedule", ["cosine", "constant"])
def test_in_the_gradient_the_converted_weight_shrinks_as_much(schedule):
    """But for momentum's lag, and around zero, which it passes to and fro."""
    before, ended = flat_net(), {}
    matrices = torch.cat([p.detach().flatten() for p in before.parameters() if p.dim() >= 2])
    size, run = float(matrices.abs().mean()), tiny(epochs=10, batch_size=24, schedule=schedule)
    run = replace(run, weight_decay=0.0, clip=0.0, momentum=0.9)
    lr_sum = run.resolve().lr_sum(steps=60)
    l1 = l1_of_shrink(0.5, lr_sum=lr_sum, mean_size=size, momentum=0.9)
    for changed in ({"shrink": 0.5}, {"l1": l1}):
        network = flat_net()
        fit(replace(run, **changed), loss=nothing, network=network)
        ended[*changed] = torch.cat([p.detach().flatten() for p in network.parameters()])
    start = torch.cat([p.detach().flatten() for p in before.parameters()])
    far = start.abs() > 0.6 * size
    moved = {name: (start.abs() - now.abs())[far] for name, now in ended.items()}
    torch.testing.assert_close(moved["shrink",], torch.full_like(moved["shrink",], 0.5 * size))
    torch.testing.assert_close(moved["l1",], moved["shrink",], rtol=0.05, atol=0)


def test_another_number_of_epochs_is_another_schedule(tmp_path):
    """What was shrunk so far was a share of the first: it cannot go on as the second."""
    with pytest.raises(StopError):
        fit(tiny(epochs=3, shrink=1.0), out=tmp_path, name="mine", on_epoch=stop_after(1))
    with pytest.raises(UsageError, match="epochs is 3 there and 4 here"):
        fit(tiny(epochs=4, shrink=1.0), out=tmp_path, name="mine")
