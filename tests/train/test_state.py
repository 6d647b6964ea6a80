"""The flat weights and their update, against torch's own optimizer and clipping."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from noiseproof.train._state import Settings, State

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
    ],
    ids=str,
)
def test_the_update_is_torch_s(changed, adopted):
    settings = Settings(**{**PLAIN, **changed})
    ours, theirs = conv_net(), conv_net()
    state = State(ours, CPU, None, average=False)
    if adopted:
        state.adopt(ours)
    norms = take_steps(state, ours, settings, 0.05)
    expected = take_torch_steps(theirs, settings, 0.05)
    assert norms == pytest.approx(expected, rel=1e-4)
    if settings.clip:  # active in all steps or in none
        assert {n > settings.clip for n in expected} == {settings.clip < 1}
    state.write_back(ours)
    expected = theirs.state_dict()
    for name, value in ours.state_dict().items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=1e-6, msg=name)


def test_the_network_is_not_changed_until_it_is_written_back():
    network = conv_net()
    before = copy.deepcopy(network.state_dict())
    state = State(network, CPU, None, average=False)
    take_steps(state, network, Settings(**PLAIN), 0.05)
    assert all(torch.equal(before[k], v) for k, v in network.state_dict().items())
    state.write_back(network)
    assert not any(torch.equal(before[k], v) for k, v in network.state_dict().items())


def test_flat_buffers_hold_matrices_first_and_every_parameter_once():
    network = conv_net()
    state = State(network, CPU, None, average=False)
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
    state = State(network, CPU, None, average=False)
    state.adopt(network)
    state.weights.fill_(0.5)
    assert all(bool((p == 0.5).all()) for p in network.parameters())
    assert state.tensors() is None


def test_restoring_is_in_place_and_exact():
    network, settings = conv_net(), Settings(**{**PLAIN, "ema": 0.9})
    state = State(network, CPU, torch.bfloat16, average=True)
    take_steps(state, network, settings, 0.05)
    kept = {k: v.clone() for k, v in state.saved().items()}
    low = state.low.clone()
    take_steps(state, network, settings, 0.05)
    places = {k: v.data_ptr() for k, v in state.saved().items()}
    state.restore(kept)
    assert all(torch.equal(v, kept[k]) for k, v in state.saved().items())
    assert {k: v.data_ptr() for k, v in state.saved().items()} == places
    assert torch.equal(state.low, low)
    with pytest.raises(ValueError, match="what was saved belongs to another network"):
        state.restore(State(flat_net(), CPU, None, average=False).saved())


def test_frozen_parameters_are_left_alone():
    ours, theirs = conv_net(), conv_net()
    for network in (ours, theirs):
        network[0].weight.requires_grad_(False)
        network[4].bias.requires_grad_(False)
    settings = Settings(**{**PLAIN, "weight_decay": 0.05, "l1": 0.01})
    state = State(ours, CPU, None, average=False)
    assert "0.weight" not in state.shapes
    take_steps(state, ours, settings, 0.05)
    take_torch_steps(theirs, settings, 0.05)
    state.write_back(ours)
    assert torch.equal(ours[0].weight, conv_net()[0].weight)
    for one, two in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="the network has no parameter that can be trained"):
        State(ours.requires_grad_(False), CPU, None, average=False)


@pytest.mark.parametrize("adopted", [True, False])
def test_tied_parameters_stay_tied(adopted):
    torch.manual_seed(0)
    ours = TiedNet()
    theirs = copy.deepcopy(ours)
    state = State(ours, CPU, None, average=False)
    if adopted:
        state.adopt(ours)
    take_steps(state, ours, Settings(**PLAIN), 0.05)
    take_torch_steps(theirs, Settings(**PLAIN), 0.05)
    state.write_back(ours)
    assert ours.second.weight is ours.first.weight
    for one, two in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-6)


def test_a_parameter_that_the_loss_does_not_reach_only_decays():
    network = flat_net()
    network.spare = nn.Parameter(torch.ones(3, 3))
    network.forward = lambda x: nn.Sequential(*list(network.children()))(x)
    state = State(network, CPU, None, average=False)
    state.adopt(network)
    state.gradient.fill_(7.0)  # what was there before does not count
    settings = Settings(**{**PLAIN, "momentum": 0.0, "weight_decay": 0.1})
    take_steps(state, network, settings, 0.5)
    expected = torch.full((3, 3), (1 - 0.5 * 0.1) ** len(batches()))
    torch.testing.assert_close(network.spare.detach(), expected)
