"""The flat weights and their update, against torch's own optimizer and clipping."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from noiseproof.train._state import TrainState
from noiseproof.train.optimizers._sgd import SGD

from .subjects import TiedNet, conv_net, flat_net
from .twins import CPU, PLAIN, batches, take_steps, take_torch_steps


@pytest.mark.parametrize("adopted", [True, False])
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"momentum": 0.0},
        {"nesterov": True},
        {"weight_decay": 0.05},
        {"nesterov": True, "weight_decay": 0.05, "clip": 0.5},
        {"clip": 0.5},
        {"clip": 1e3},
        {"l1": 0.01},
        {"l1": 0.01, "clip": 0.5, "weight_decay": 0.05},
        {"decay_on": "matrices"},
        {"decay_on": "matrices", "weight_decay": 0.05},
        {"decay_on": "matrices", "weight_decay": 0.05, "nesterov": True, "clip": 0.5},
    ],
    ids=str,
)
def test_the_update_is_torch_s(changed, adopted):
    sgd = SGD(**{**PLAIN, **changed})
    ours, theirs = conv_net(), conv_net()
    state = TrainState(ours, CPU, None, sgd)
    if adopted:
        state.adopt(ours)
    norms = take_steps(state, ours, 0.05)
    expected = take_torch_steps(theirs, sgd, 0.05)
    assert norms == pytest.approx(expected, rel=1e-4)
    if sgd.clip:  # active in all steps or in none
        assert {n > sgd.clip for n in expected} == {sgd.clip < 1}
    state.write_back(ours)
    expected = theirs.state_dict()
    for name, value in ours.state_dict().items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=1e-6, msg=name)


def test_the_network_is_not_changed_until_it_is_written_back():
    network = conv_net()
    before = copy.deepcopy(network.state_dict())
    state = TrainState(network, CPU, None, SGD(**PLAIN))
    take_steps(state, network, 0.05)
    assert all(torch.equal(before[k], v) for k, v in network.state_dict().items())
    state.write_back(network)
    unchanged = [k for k, v in network.state_dict().items() if torch.equal(before[k], v)]
    # Of a bias before a batch norm the gradient is zero up to rounding: it may stay as it was.
    assert set(unchanged) <= {"0.bias"}


def test_flat_buffers_hold_matrices_first_and_every_parameter_once():
    network = conv_net()
    state = TrainState(network, CPU, None, SGD(**PLAIN))
    dims = [len(shape) for shape in state.shapes.values()]
    assert dims == sorted(dims, key=lambda d: d < 2)
    numbers = torch.arange(state.weights.numel(), dtype=torch.float32)
    seen = torch.cat([view.flatten() for _, view in state.views(numbers)])
    assert torch.equal(seen, numbers)
    for name, view in state.views(state.weights):
        assert torch.equal(view, network.get_parameter(name))
        assert view.data_ptr() >= state.weights.data_ptr()


def test_an_adopted_network_computes_with_the_flat_buffer():
    network = conv_net()
    state = TrainState(network, CPU, None, SGD(**PLAIN))
    state.adopt(network)
    state.weights.fill_(0.5)
    assert all(bool((p == 0.5).all()) for p in network.parameters())
    assert state.tensors() is None


def test_loading_a_state_dict_is_in_place_and_exact():
    network = conv_net()
    state = TrainState(network, CPU, torch.bfloat16, SGD(**PLAIN), ema=0.9)
    take_steps(state, network, 0.05)
    saved = {k: v.clone() for k, v in state.state_dict().items()}
    assert {"weights", "momentum_buffer", "ema", "ema.1.running_mean"} <= saved.keys()
    compute_weights = state.compute_weights.clone()
    take_steps(state, network, 0.05)
    pointers = {k: v.data_ptr() for k, v in state.state_dict().items()}
    state.load_state_dict(saved)
    assert all(torch.equal(v, saved[k]) for k, v in state.state_dict().items())
    assert {k: v.data_ptr() for k, v in state.state_dict().items()} == pointers
    assert torch.equal(state.compute_weights, compute_weights)
    with pytest.raises(ValueError, match="what was saved belongs to another network"):
        state.load_state_dict(TrainState(flat_net(), CPU, None, SGD(**PLAIN)).state_dict())


def test_frozen_parameters_are_left_alone():
    ours, theirs = conv_net(), conv_net()
    for network in (ours, theirs):
        network[0].weight.requires_grad_(False)
        network[4].bias.requires_grad_(False)
    sgd = SGD(**{**PLAIN, "weight_decay": 0.05, "l1": 0.01})
    state = TrainState(ours, CPU, None, sgd)
    assert "0.weight" not in state.shapes
    take_steps(state, ours, 0.05)
    take_torch_steps(theirs, sgd, 0.05)
    state.write_back(ours)
    assert torch.equal(ours[0].weight, conv_net()[0].weight)
    for one, two in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="the network has no parameter that can be trained"):
        TrainState(ours.requires_grad_(False), CPU, None, sgd)


@pytest.mark.parametrize("adopted", [True, False])
def test_tied_parameters_stay_tied(adopted):
    torch.manual_seed(0)
    ours = TiedNet()
    theirs = copy.deepcopy(ours)
    state = TrainState(ours, CPU, None, SGD(**PLAIN))
    if adopted:
        state.adopt(ours)
    take_steps(state, ours, 0.05)
    take_torch_steps(theirs, SGD(**PLAIN), 0.05)
    state.write_back(ours)
    assert ours.second.weight is ours.first.weight
    for one, two in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-6)


def test_a_parameter_that_the_loss_does_not_reach_only_decays():
    network = flat_net()
    network.spare = nn.Parameter(torch.ones(3, 3))
    network.forward = lambda x: nn.Sequential(*list(network.children()))(x)
    sgd = SGD(**{**PLAIN, "momentum": 0.0, "weight_decay": 0.1})
    state = TrainState(network, CPU, None, sgd)
    state.adopt(network)
    state.grad.fill_(7.0)  # what was there before does not count
    take_steps(state, network, 0.5)
    expected = torch.full((3, 3), (1 - 0.5 * 0.1) ** len(batches()))
    torch.testing.assert_close(network.spare.detach(), expected)
