"""What is kept beside the weights: their average, their copy in 16 bits, the count of batches."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from noiseproof import UsageError
from noiseproof.train import fit, load
from noiseproof.train._state import TrainState
from noiseproof.train.optimizers._sgd import SGD

from .subjects import STEPS, conv_net, tiny
from .twins import CPU, PLAIN, batches, take_steps, take_torch_steps


def test_the_average_is_a_literal_loop_s():
    ours, theirs = conv_net(), conv_net()
    state = TrainState(ours, CPU, None, SGD(**PLAIN), ema=0.8)
    average = copy.deepcopy(theirs).state_dict()
    optimizer = torch.optim.SGD(theirs.parameters(), 0.05, 0.9)
    for x, y in batches():
        optimizer.zero_grad()
        F.cross_entropy(theirs(x), y).backward()
        optimizer.step()
        for name, value in theirs.state_dict().items():
            if value.is_floating_point():
                average[name] = 0.8 * average[name] + 0.2 * value
    take_steps(state, ours, 0.05)
    state.write_back(ours, ema=True)
    for name, value in ours.state_dict().items():
        if value.is_floating_point():
            torch.testing.assert_close(value, average[name], rtol=0, atol=1e-6, msg=name)
    state.write_back(ours)
    torch.testing.assert_close(ours[1].running_mean, theirs[1].running_mean)
    torch.testing.assert_close(ours[4].weight, theirs[4].weight)


@pytest.mark.parametrize(
    ("epochs", "horizon", "decay"), [(2, 0.5, 1 - 1 / 6), (4, 0.25, 1 - 1 / 6)]
)
def test_the_horizon_is_a_share_of_all_steps(epochs, horizon, decay, tmp_path):
    run = tiny(epochs=epochs, ema_horizon=horizon, holdout=0.1, batch_size=216)  # of 1,293
    found = fit(run, out=tmp_path)
    same_as = fit(tiny(epochs=epochs, ema=decay, holdout=0.1, batch_size=216))
    columns = {"test_accuracy_ema", "validation_accuracy_ema"}
    assert columns <= found.history[-1].keys()
    assert found.history[-1]["test_accuracy_ema"] != found.history[-1]["test_accuracy"]
    ours, expected = found.ema_network.state_dict(), same_as.ema_network.state_dict()
    torch.testing.assert_close(ours, expected)
    kept = load(found.folder, ema=True).network.state_dict()
    assert all(torch.equal(ours[name], kept[name]) for name in ours)


def test_an_average_is_given_in_one_way():
    with pytest.raises(UsageError, match="give one of them"):
        tiny(ema=0.9, ema_horizon=0.1)
    assert 0 < tiny(ema_horizon=1e-6).resolve().ema_decay(steps=1) < 1


def test_without_an_average_the_weights_themselves_are_written():
    network = conv_net()
    state = TrainState(network, CPU, None, SGD(**PLAIN))
    state.weights.fill_(2.0)
    state.write_back(network, ema=True)
    assert bool((network[4].weight == 2).all())


def test_the_compute_weights_are_the_weights_rounded():
    network = conv_net()
    state = TrainState(network, CPU, torch.bfloat16, SGD(**PLAIN))
    matrices = sum(p.numel() for p in network.parameters() if p.dim() >= 2)
    assert state.compute_weights.numel() == state.compute_grad.numel() == matrices
    assert {n for n, leaf in state.leaves.items() if leaf.dtype == torch.bfloat16} == {
        "0.weight",
        "4.weight",
    }
    take_steps(state, network, 0.05)
    assert torch.equal(state.compute_weights, state.weights[:matrices].bfloat16())
    assert not torch.equal(state.compute_weights.float(), state.weights[:matrices])
    expected = conv_net()
    take_torch_steps(expected, SGD(**PLAIN), 0.05)
    state.write_back(network)
    torch.testing.assert_close(network[4].weight, expected[4].weight, rtol=0, atol=0.02)


def test_small_updates_are_not_lost_in_low_precision():
    """A step of a thousandth of a weight is nothing in bf16, and adds up in the weights."""
    state = TrainState(conv_net(), CPU, torch.bfloat16, SGD(**{**PLAIN, "momentum": 0.0}))
    state.weights.fill_(1.0)
    state.compute_grad.fill_(1.0)
    state.grad.fill_(1.0)
    for _ in range(10):
        state.step(torch.tensor(1e-3), fused=False)
    torch.testing.assert_close(state.weights, torch.full_like(state.weights, 0.99))
    assert torch.equal(
        state.compute_weights, state.weights[: state.compute_weights.numel()].bfloat16()
    )


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_batch_norms_count_on_from_where_they_were(precision):
    network = conv_net()
    network[1].num_batches_tracked.fill_(100)
    fit(tiny(precision=precision), network=network)
    assert int(network[1].num_batches_tracked) == 100 + 2 * STEPS


def test_a_batch_norm_that_is_called_twice_in_a_step_counts_twice():
    """Without momentum its statistics are the mean over all calls."""

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.head = nn.BatchNorm1d(64, momentum=None), nn.Linear(64, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.norm(self.norm(x.flatten(1))))

    network = Twice()
    fit(tiny(epochs=3), network=network)
    assert int(network.norm.num_batches_tracked) == 3 * 2 * STEPS


def test_bf16_trains_on_a_cpu():
    low, full = (fit(tiny(loss="ce", rate=0.0, precision=p)) for p in ("bf16", "fp32"))
    assert low.accuracy == pytest.approx(full.accuracy, abs=0.05)
    assert low.history[0]["train_loss"] != full.history[0]["train_loss"]
    assert all(t.dtype == torch.float32 for t in low.network.parameters())
