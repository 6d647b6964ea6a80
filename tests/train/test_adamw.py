"""AdamW and schedules by step against the loop that one would write by hand.

Both compute in float64: Adam divides by the size of the gradient, and so shows the rounding of one
that is close to zero.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from noiseproof import data, models
from noiseproof._seeds import derive
from noiseproof.train import Run, fit
from noiseproof.train._state import TrainState
from noiseproof.train.optimizers import optimizer_of
from noiseproof.train.optimizers._adamw import AdamW

from .subjects import conv_net, flat_net
from .twins import CPU, take_steps, take_torch_steps, torch_optimizer

PLAIN = {
    "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01, "clip": 0.0, "l1": 0.0
}  # fmt: skip


@pytest.fixture
def _exact(monkeypatch: pytest.MonkeyPatch):
    """Float64 throughout, in the trainer as well."""

    def normalize(self: data.Loader, pixels: torch.Tensor) -> torch.Tensor:
        return torch.addcmul(self.shift, pixels.double(), self.scale)

    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    monkeypatch.setattr(data.Loader, "normalize", normalize)
    before, set_default_dtype = torch.get_default_dtype(), torch.set_default_dtype
    set_default_dtype(torch.float64)
    monkeypatch.setattr(torch, "set_default_dtype", lambda _: None)  # fit would make it float32
    yield
    set_default_dtype(before)


@pytest.mark.usefixtures("_exact")
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"beta1": 0.0},
        {"beta1": 0.8, "beta2": 0.95, "eps": 1e-3},
        {"weight_decay": 0.0},
        {"weight_decay": 0.5, "clip": 0.5},
        {"weight_decay": 0.5, "decay_on": "matrices"},
        {"l1": 0.01, "clip": 0.5, "decay_on": "matrices"},
    ],
    ids=str,
)
def test_the_update_is_torch_s(changed):
    adamw = AdamW(**{**PLAIN, **changed})
    ours, theirs = flat_net(), flat_net()
    state = TrainState(ours, CPU, None, adamw)
    norms = take_steps(state, ours, 1e-3)
    assert norms == pytest.approx(take_torch_steps(theirs, adamw, 1e-3), rel=1e-8)
    state.write_back(ours)
    for one, two in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-6)


def test_the_count_of_steps_is_saved_and_loaded():
    network = conv_net()
    state = TrainState(network, CPU, torch.bfloat16, AdamW(**PLAIN))
    norms = take_steps(state, network, 1e-3)
    saved = {k: v.clone() for k, v in state.state_dict().items()}
    assert {"exp_avg", "exp_avg_sq", "step"} <= saved.keys()
    assert saved["step"].shape == ()
    assert float(saved["step"]) == len(norms)
    again = TrainState(network, CPU, torch.bfloat16, AdamW(**PLAIN))
    again.load_state_dict(saved)
    take_steps(state, network, 1e-3)
    take_steps(again, network, 1e-3)
    assert torch.equal(again.weights, state.weights)


def warmup_and_cosine(step: int, warmup: int, total: int) -> float:
    """The factor of the learning rate, as one would write it for LambdaLR."""
    if step < warmup:
        return (step + 1) / warmup
    return (1 + math.cos(math.pi * (step - warmup) / (total - warmup))) / 2


@pytest.mark.usefixtures("_exact")
@pytest.mark.parametrize(
    "run",
    [
        Run(optimizer="adamw", schedule="constant"),
        Run(optimizer="adamw", lr=3e-3, weight_decay=0.3, clip=0.5, decay_on="matrices",
            schedule_by="step", warmup=1.5, l1=1e-4),
        Run(optimizer="sgd", lr=0.05, decay_on="matrices", schedule_by="step", warmup=0.5),
        Run(optimizer="adamw", beta1=0.8, beta2=0.99, eps=1e-4, batch_size=100, warmup=2.0,
            schedule_by="step", label_smoothing=0.2),
    ],
    ids=["constant", "clipped, matrices, warm-up, L1", "SGD", "betas, smoothed labels"],
)  # fmt: skip
def test_a_run_is_the_loop_by_hand(run):
    run = replace(run, loss="ce", noise="none", epochs=4, device="cpu", model="mlp")
    resolved = run.resolve()
    network = models.build("mlp", 10, 1, image_size=8, seed=derive(run.seed, "start"))
    found = fit(run)
    digits = data.load("digits")
    loader = data.Loader(
        digits.train.images, digits.train.labels, mean=digits.mean, std=digits.std, seed=run.seed,
        batch_size=resolved.batch_size,
    )  # fmt: skip
    optimizer = torch_optimizer(network, optimizer_of(resolved), resolved.lr)
    steps = len(loader)
    factor = {
        "cosine": lambda s: warmup_and_cosine(s, round(run.warmup * steps), 4 * steps),
        "constant": lambda s: 1.0,
    }[resolved.schedule]
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    for epoch in range(4):
        first, losses = schedule.get_last_lr()[0], []
        for images, labels, _ in loader.epoch(epoch):
            value = F.cross_entropy(
                network(images), labels, label_smoothing=resolved.label_smoothing
            )
            losses.append(value.detach())
            value = value + resolved.l1 * sum(p.abs().sum() for p in network.parameters())
            optimizer.zero_grad()
            value.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), resolved.clip)
            optimizer.step()
            schedule.step()
        row = found.history[epoch]
        assert row["lr"] == pytest.approx(first, rel=1e-12)
        assert row["train_loss"] == pytest.approx(float(sum(losses)) / steps, rel=1e-6)
    for one, two in zip(found.network.parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-6)


def test_settings_of_adamw():
    run = Run(optimizer="adamw", dataset="mnist", protocol="authors").resolve()
    assert (run.lr, run.weight_decay, run.lr_floor) == (1e-3, 0.01, 0.0)
    assert (run.beta1, run.beta2, run.eps, run.clip) == (0.9, 0.999, 1e-8, 5.0)
    assert (run.momentum, run.nesterov) == (0.0, False)
    torch_s = torch.optim.AdamW([torch.zeros(1)]).defaults
    assert (*torch_s["betas"], torch_s["eps"]) == (run.beta1, run.beta2, run.eps)
    assert (torch_s["lr"], torch_s["weight_decay"]) == (run.lr, run.weight_decay)
    given = Run(optimizer="adamw", lr=0.1, weight_decay=0.2, clip=1.0, beta2=0.95).resolve()
    assert (given.lr, given.weight_decay, given.clip, given.beta2) == (0.1, 0.2, 1.0, 0.95)
    method = Run(optimizer="adamw", dataset="cifar10", loss="jal-ce").resolve()
    assert (method.weight_decay, method.l1) == (0.0, 5e-5)  # the method's


def test_adamw_learns_digits():
    result = fit(Run(optimizer="adamw", noise="none", loss="ce", epochs=5, device="cpu"))
    assert result.accuracy > 0.9
