"""A loss or a gradient that is no number ends a run, and what was before is kept."""

from __future__ import annotations

import math
import os

import pytest
import torch
from torch import nn

from noiseproof.train import DivergedError, Progress, fit, fit_many

from .subjects import STEPS, StopError, flat_net, run_folders, same, tiny, weights


class Turning:
    """A loss that turns into something else at one call."""

    def __init__(self, call: int, value: float, *, gradient: bool = False) -> None:
        self.calls, self.call, self.value, self.gradient = 0, call, value, gradient

    def __call__(self, logits, labels):
        loss = torch.nn.functional.cross_entropy(logits, labels)
        self.calls += 1
        if self.calls != self.call:
            return loss
        return loss + (logits * 0).sum().square().sqrt() if self.gradient else loss * self.value


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number_stops_the_run_and_keeps_what_was(value, tmp_path):
    run = tiny(epochs=4)
    message = (
        rf"the loss became nan in epoch 3, step 2 of {STEPS} \(.*digits.*\); lower lr=0\.01 or"
    )
    kept = []
    with pytest.raises(DivergedError, match=message):
        fit(run, out=tmp_path, name="x", loss=Turning(2 * STEPS + 2, value), on_epoch=kept.append)
    (folder,) = run_folders(tmp_path)
    assert sorted(os.listdir(folder)) == ["checkpoint.pt", "history.csv", "result.json", "run.json"]
    saved = torch.load(folder / "checkpoint.pt", weights_only=True)
    assert saved["epoch"] == len(kept) == 2
    assert bool(saved["tensors"]["weights"].isfinite().all())
    assert len((folder / "history.csv").read_text().splitlines()) == 3
    with pytest.raises(DivergedError, match=message):  # it has ended: it is not tried again
        fit(run, out=tmp_path, name="x", loss=Turning(2 * STEPS + 2, value), on_epoch=kept.append)
    assert len(kept) == 2


def test_a_network_that_diverged_can_be_trained_again():
    network = flat_net()
    before = weights(network)
    with pytest.raises(DivergedError):
        fit(tiny(), network=network, loss=Turning(STEPS + 2, math.nan))
    assert same(weights(network), before)
    assert fit(tiny(), network=network).history


def test_many_runs_leave_it_as_it_came_too():
    network = flat_net()
    before = weights(network)
    own = {"network": network, "loss": Turning(STEPS + 2, math.nan)}
    (result,) = fit_many([tiny()], overrides=own)
    assert "the loss became nan in epoch 2" in result.error
    assert same(weights(network), before)


def test_what_it_came_with_is_kept_once():
    """A large network is kept beside the trained one on the GPU that it came on."""
    copied = []

    class Kept:
        def __deepcopy__(self, memo: object) -> Kept:
            copied.append(True)
            return self

    class Network(nn.Sequential):
        def get_extra_state(self) -> Kept:
            return Kept()

        def set_extra_state(self, state: Kept) -> None:
            pass

    def stop(_: Progress) -> None:
        assert len(copied) == 1
        raise StopError

    with pytest.raises(StopError):
        fit(tiny(), network=Network(flat_net()), on_epoch=stop)


def test_a_gradient_that_is_no_number_stops_the_run_before_it_is_kept(tmp_path):
    """Of the last step of an epoch: the loss is a number, and the weights are none."""
    turning = Turning(2 * STEPS, 0, gradient=True)
    with pytest.raises(
        DivergedError, match=rf"gradient's norm became nan in epoch 2, step {STEPS}"
    ):
        fit(tiny(epochs=2), loss=turning, out=tmp_path)
    (folder,) = run_folders(tmp_path)
    saved = torch.load(folder / "checkpoint.pt", weights_only=True)
    assert saved["epoch"] == 1
