"""Mixup and label smoothing, against steps and losses that one would write by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from noiseproof import UsageError, data, parse
from noiseproof.train import fit
from noiseproof.train._mixing import Mixed, Mixup
from noiseproof.train._objective import LossObjective
from noiseproof.train._setup import Setup

from .subjects import conv_net, flat_net, tiny

CPU = torch.device("cpu")
UNIFORM = torch.full((10,), 0.1)


def batch(n: int = 8) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(n, 10), torch.randint(10, (n,)), torch.arange(n)


def drawn(epoch: int, *, seed: int = 0, alpha: float = 0.4, n: int = 1000) -> Mixup:
    made = Mixup(alpha, n, 64, CPU, seed)
    made.begin_epoch(epoch)
    return made


def test_partners_are_the_batch_in_another_order():
    mixup, sizes = drawn(0), [64] * 15 + [40]
    moved = 0
    for step, size in enumerate(sizes):
        mixed = mixup.at(torch.tensor(step), size)
        assert torch.equal(mixed.partner.sort().values, torch.arange(size))
        assert 0.5 <= float(mixed.weight) <= 1
        moved += int((mixed.partner != torch.arange(size)).sum())
    assert moved > 900  # of 1000; one stays in its place for each batch


def test_weights_are_of_the_beta_distribution():
    mixup = drawn(0, alpha=1.0, n=64 * 2000)  # uniform, and its larger part uniform from 0.5 to 1
    weights = torch.stack([mixup.at(torch.tensor(i), 64).weight for i in range(2000)])
    assert float(weights.mean()) == pytest.approx(0.75, abs=0.02)
    assert float((weights < 0.6).float().mean()) == pytest.approx(0.2, abs=0.05)
    assert float(drawn(0, alpha=1e-6).at(torch.tensor(0), 64).weight) == 1
    assert float(drawn(0, alpha=1e6).at(torch.tensor(0), 64).weight) == pytest.approx(0.5, abs=0.01)


def test_an_epoch_is_drawn_from_its_number_and_the_seed():
    def numbers(mixup: Mixup) -> list[float]:
        steps = [mixup.at(torch.tensor(i), 40) for i in range(16)]
        return [x for s in steps for x in (float(s.weight), *s.partner.tolist())]

    later = drawn(0)
    later.begin_epoch(3)
    assert numbers(later) == numbers(drawn(3))
    assert numbers(drawn(2)) != numbers(drawn(3)) != numbers(drawn(3, seed=1))


@pytest.mark.parametrize("shape", [(3,), (1, 4, 4), (5, 7)])
def test_inputs_of_any_shape_are_mixed(shape):
    x = torch.randn(6, *shape)
    partner, weight = torch.tensor([1, 2, 3, 4, 5, 0]), torch.tensor(0.7)
    found = Mixed(partner, weight).inputs(x)
    torch.testing.assert_close(found, 0.7 * x + 0.3 * x.roll(-1, 0))
    half = Mixed(partner, weight).inputs(x.bfloat16())
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), found, rtol=1e-2, atol=2e-2)


def test_the_layout_of_images_is_kept():
    x = torch.randn(6, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    found = Mixed(torch.arange(6).flip(0), torch.tensor(0.7)).inputs(x)
    assert found.is_contiguous(memory_format=torch.channels_last)


def test_token_ids_are_refused():
    tokens = torch.randint(100, (6, 12))
    with pytest.raises(UsageError, match=r"whole numbers .*, such as token ids: leave mixup out"):
        Mixed(torch.arange(6), torch.tensor(0.7)).inputs(tokens)


@pytest.mark.parametrize("text", ["ce", "nce + rce", "gce", "10*nfl + mae", "sce"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_mixed_loss_is_the_loss_at_class_probabilities(text, smoothing):
    logits, labels, index = batch()
    partner, weight = torch.tensor([3, 0, 1, 2, 7, 6, 5, 4]), torch.tensor(0.7)
    objective = LossObjective(parse(text), 0.5, UNIFORM, smoothing)
    found = Mixed(partner, weight).loss(objective, logits, labels, index)
    one, two = (F.one_hot(y, 10).float() for y in (labels, labels[partner]))
    q = (1 - smoothing) * (0.7 * one + 0.3 * two) + smoothing / 10
    expected = LossObjective(parse(text), 0.5, UNIFORM)(logits, q, index)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("own", [False, True])
def test_a_step_is_the_one_by_hand(own):
    """Also with a loss that takes class indices alone."""

    def indices_alone(logits, labels):
        return -logits.log_softmax(1)[torch.arange(len(labels)), labels].mean()

    run = tiny(mixup=0.4, loss="ce", clip=0.0, schedule="constant", momentum=0.0, weight_decay=0.1)
    overrides = {"network": flat_net(), **({"loss": indices_alone} if own else {})}
    shown = {"network": "flat", **({"loss": "mine"} if own else {})}
    trainer = Setup().trainer(run.resolve(overrides=shown), **overrides)
    trainer.begin_epoch(1)
    trainer.fill_chunk(0)
    trainer.step(256)

    network, mixup = flat_net(), Mixup(0.4, len(trainer.loader.labels), 256, CPU, 0)
    mixup.begin_epoch(1)
    mixed = mixup.at(torch.tensor(0), 256)
    lam = float(mixed.weight)
    x, y, index = next(iter(trainer.loader.epoch(1)))
    logits = network(lam * x + (1 - lam) * x[mixed.partner])
    loss = lam * F.cross_entropy(logits, y)
    loss = loss + (1 - lam) * F.cross_entropy(logits, y[mixed.partner])
    loss.backward()
    torch.optim.SGD(network.parameters(), trainer.run.lr, weight_decay=0.1).step()
    assert float(trainer._losses[0]) == pytest.approx(loss.item(), rel=1e-5)
    for ours, theirs in zip(trainer.network.parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)
    assert torch.equal(trainer._predicted[index], logits.argmax(1))  # held against y itself


def test_mixup_learns_and_a_short_last_batch_is_mixed():
    run = tiny(mixup=0.2, noise="none", loss="ce", lr=0.05, epochs=10, batch_size=100)
    assert len(data.load("digits").train) % 100
    result = fit(run, network=conv_net())
    assert result.accuracy > 0.8
    assert result.history[-1]["train_accuracy"] > 0.5  # of mixed inputs


@pytest.mark.parametrize("loss", [None, F.cross_entropy, nn.CrossEntropyLoss()])
def test_label_smoothing_is_torch_s(loss):
    logits, labels, index = batch()
    objective = LossObjective(parse("ce") if loss is None else loss, 0.0, UNIFORM, 0.3)
    expected = nn.CrossEntropyLoss(label_smoothing=0.3)(logits, labels)
    torch.testing.assert_close(objective(logits, labels, index), expected)


@pytest.mark.parametrize("text", ["ce", "nce + rce", "gce"])
def test_class_weights_are_kept_with_label_smoothing(text):
    logits, labels, index = batch()
    weight = torch.arange(1.0, 11)
    objective = LossObjective(parse(text, weight=weight), 0.0, UNIFORM, 0.3)
    expected = parse(text, weight=weight, label_smoothing=0.3)(logits, labels)
    torch.testing.assert_close(objective(logits, labels, index), expected)


def test_a_loss_of_indices_alone_cannot_be_smoothed():
    def indices_alone(logits, labels):
        return -logits.log_softmax(1)[torch.arange(len(labels)), labels].mean()

    with pytest.raises(UsageError, match=r"class probabilities, \[N, K\], and this one does not"):
        fit(tiny(label_smoothing=0.1), loss=indices_alone)
    with pytest.raises(UsageError, match=r"label_smoothing=0\.2 and the run 0\.1: give it once"):
        fit(tiny(label_smoothing=0.1), loss=parse("ce", label_smoothing=0.2))


@pytest.mark.parametrize("name", ["mixup", "label_smoothing"])
def test_nlnl_takes_neither(name):
    with pytest.raises(UsageError, match=f"nlnl learns from .* takes no {name}: leave it out"):
        tiny(loss="nlnl", **{name: 0.1}).resolve()
