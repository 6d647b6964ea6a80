"""A whole run against the loop that one would write by hand: the same numbers.

Both compute in float64 here, in which the order of additions makes no difference that training
would enlarge: what is left of a thousandth in float32 is 1e-12.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

from noiseproof import data, models, noise, parse
from noiseproof._seeds import derive
from noiseproof.train import Run, fit


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


def by_hand(run: Run, network: nn.Module, loss, average: nn.Module | None = None):
    """Plain PyTorch: a loader, autograd, torch's SGD, clipping and cosine schedule."""
    run = run.resolve()
    digits = data.load("digits")
    noisy = noise.make("symmetric", digits.train.labels, run.rate, num_classes=10, seed=run.seed)
    loader = data.Loader(
        digits.train.images, noisy.labels, mean=digits.mean, std=digits.std, seed=run.seed,
        batch_size=run.batch_size, augment=data.Augment(run.crop, run.flip, run.rotate),
    )  # fmt: skip
    optimizer = torch.optim.SGD(
        network.parameters(), run.lr, run.momentum, nesterov=run.nesterov,
        weight_decay=run.weight_decay,
    )  # fmt: skip
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, run.epochs, run.lr_floor)
    history = []
    for epoch in range(run.epochs):
        network.train()
        losses, norms = [], []
        predicted = torch.empty_like(noisy.labels)
        for images, labels, index in loader.epoch(epoch):
            logits = network(images)
            value = loss(logits, labels)
            if run.l1:
                value = value + run.l1 * sum(p.abs().sum() for p in network.parameters())
            optimizer.zero_grad()
            value.backward()
            norms.append(torch.nn.utils.clip_grad_norm_(network.parameters(), run.clip))
            optimizer.step()
            losses.append(loss(logits.detach(), labels))
            predicted[index] = logits.argmax(1)
            if average is not None:
                now = network.state_dict()
                for name, slow in average.state_dict().items():
                    if slow.is_floating_point():
                        slow.copy_(run.ema * slow + (1 - run.ema) * now[name])
        schedule.step()
        row = {
            "train_loss": torch.stack(losses).mean(),
            "gradient_norm": torch.stack(norms).mean(),
            "train_accuracy": (predicted == noisy.labels).float().mean(),
            "train_accuracy_clean": (predicted == digits.train.labels).float().mean(),
            "test_accuracy": accuracy(network, loader, digits),
        }
        if average is not None:
            row["test_accuracy_ema"] = accuracy(average, loader, digits)
        history.append({name: float(value) for name, value in row.items()})
    return history


@torch.no_grad()
def accuracy(network: nn.Module, loader: data.Loader, digits: data.Dataset) -> torch.Tensor:
    predicted = network.eval()(loader.normalize(digits.test.images)).argmax(1)
    return (predicted == digits.test.labels).float().mean()


@pytest.mark.usefixtures("_exact")
@pytest.mark.parametrize(
    "run",
    [
        Run(loss="nce + mae", rate=0.4, epochs=3),
        Run(loss="ce", rate=0.2, epochs=3, nesterov=True, lr_floor=1e-3, lr=0.05, clip=0.5, seed=1),
        Run(loss="10*nce + 0.1*rce", epochs=2, crop=1, flip=True, rotate=20.0, model="cnn4",
            batch_size=128, weight_decay=0.0, l1=5e-5),
        Run(loss="gce", epochs=2, ema=0.9, momentum=0.5, batch_size=1437),
    ],
    ids=["digits", "nesterov, floor, clip", "augmented, L1", "average, one batch"],
)  # fmt: skip
def test_a_run_is_the_loop_by_hand(run):
    model = run.resolve().model
    start = models.build(model, 10, 1, image_size=8, seed=derive(run.seed, "start"))
    average = copy.deepcopy(start) if run.ema else None
    expected = by_hand(run, start, parse(run.resolve().loss), average)
    found = fit(replace(run, device="cpu"))
    assert next(found.network.parameters()).dtype == torch.float64
    for row, other in zip(found.history, expected, strict=True):
        assert {k: row[k] for k in other} == pytest.approx(other, rel=1e-8)
    for (name, one), two in zip(
        found.network.state_dict().items(), start.state_dict().values(), strict=True
    ):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-8, msg=name)
    assert (found.ema_network is None) == (average is None)
    if average is not None:
        averaged = found.ema_network.state_dict()
        for name, value in average.state_dict().items():
            if value.is_floating_point():
                torch.testing.assert_close(averaged[name], value, rtol=0, atol=1e-8, msg=name)
