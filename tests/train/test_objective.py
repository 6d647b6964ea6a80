"""What is minimised: a loss with the penalty on the mean prediction, and NLNL in three stages."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from noiseproof import data
from noiseproof.train import fit
from noiseproof.train._objective import LossObjective, NLNLObjective, imbalance

from .subjects import but_seconds, tiny

UNIFORM = torch.full((4,), 0.25)
UNEVEN = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)


@pytest.mark.parametrize("prior", [UNIFORM.double(), UNEVEN], ids=["even", "own"])
def test_the_penalty_is_the_divergence_from_the_prior(prior):
    logits = torch.randn(7, 4, dtype=torch.float64)
    mean = logits.softmax(1).mean(0)
    expected = sum(
        float(q) * math.log(float(q) / float(m)) for q, m in zip(prior, mean, strict=True)
    )
    assert float(imbalance(logits, prior)) == pytest.approx(expected, rel=1e-9)
    even = mean.log().expand(3, 4)  # predictions whose mean is the prior
    assert float(imbalance(even, mean)) == pytest.approx(0, abs=1e-12)


def test_the_penalty_is_finite_where_a_class_is_never_predicted():
    logits = torch.tensor([[1e4, 0.0, 0.0, 0.0]], requires_grad=True)
    value = imbalance(logits, UNIFORM)
    (gradient,) = torch.autograd.grad(value, logits)
    assert 10 < value.item() < 20
    assert bool(gradient.isfinite().all())


def test_the_penalty_is_added_to_the_loss():
    logits, labels = torch.randn(7, 4), torch.randint(4, (7,))
    found = LossObjective(F.cross_entropy, 0.3, UNIFORM)(logits, labels, torch.arange(7))
    expected = F.cross_entropy(logits, labels) + 0.3 * imbalance(logits, UNIFORM)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    "prior", [[0.1] * 3, [1.0], [144] * 10, [-1, 2] + [0] * 8, [math.nan] * 10]
)
def test_a_prior_that_is_no_share_of_each_class_is_refused(prior):
    with pytest.raises(ValueError, match="prior is the share of each of 10 classes"):
        fit(tiny(balance=0.1), prior=torch.tensor(prior))


@pytest.mark.parametrize("prior", [[0.1] * 10, np.full(10, 0.1), torch.full((10,), 0.1)])
def test_a_prior_in_any_form(prior):
    one, other = (fit(tiny(balance=0.1, epochs=1), prior=p) for p in (prior, None))
    assert but_seconds(one.history) == but_seconds(other.history)


def test_a_loss_that_is_not_one_number_is_refused():
    with pytest.raises(ValueError, match=r"one number for a batch; this one gave \[256\]: take"):
        fit(tiny(), loss=torch.nn.CrossEntropyLoss(reduction="none"))


@pytest.mark.parametrize(("balance", "low", "high"), [(0.0, 0.9, 1.0), (100.0, 0.0, 0.3)])
def test_the_penalty_keeps_classes_that_the_labels_have_lost(balance, low, high):
    one_class = lambda logits, labels: F.cross_entropy(logits, torch.zeros_like(labels))  # noqa: E731
    network = fit(tiny(epochs=4, lr=0.05, balance=balance), loss=one_class).network
    pixels = data.load("digits").train.images.float() / 255
    with torch.no_grad():
        share = network((pixels - pixels.mean()) / pixels.std()).softmax(1).mean(0)[0]
    assert low <= float(share) <= high


def nlnl(labels: torch.Tensor, classes: int = 4, epochs: int = 9, **more: int) -> NLNLObjective:
    return NLNLObjective(labels, classes, epochs, 5, **more)


def literal(objective: NLNLObjective, logits, labels, index, stage: int) -> float:
    """Kim et al., sample by sample."""
    classes = objective.num_classes
    counts = [int((objective.labels == k).sum()) for k in range(classes)]
    total, chosen = 0.0, 0
    for z, y, i in zip(logits.double(), labels.tolist(), index.tolist(), strict=True):
        p = z.softmax(0).tolist()
        weight = max(counts) / counts[y]
        if stage == 2:
            if p[y] > 0.5:
                total, chosen = total - weight * math.log(p[y]), chosen + 1
        elif stage == 0 or p[y] > 1 / classes:
            others = objective.complementary_labels[i].tolist()
            total -= weight * sum(math.log(max(1 - p[k], 1e-5)) for k in others)
            chosen += 1
    return total / max(chosen, 1)


@pytest.mark.parametrize("complements", [1, 3])
@pytest.mark.parametrize("stage", [0, 1, 2])
def test_nlnl_is_its_literal_twin(stage, complements):
    labels = torch.tensor([0, 1, 2, 3, 0, 0, 1, 3, 3, 3])
    objective = nlnl(labels, complements=complements)
    objective.begin_epoch(3 * stage)
    index = torch.tensor([9, 2, 0, 4, 7, 5])
    logits = 2 * torch.randn(6, 4)
    logits[0, 3] = 6.0  # one sample is sure of its label, one of another
    logits[1, int(objective.complementary_labels[2, 0])] = 40.0
    logits[2:4] = 0.5 * F.one_hot(labels[index[2:4]], 4)  # and two of p = 0.35, above 1/K
    found = objective(logits, labels[index], index)
    expected = literal(objective, logits, labels[index], index, stage)
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_nlnl_has_three_stages_of_equal_length():
    objective = nlnl(torch.arange(4), epochs=9)
    stages = []
    for epoch in range(9):
        objective.begin_epoch(epoch)
        stages.append(int(objective.stage))
    assert stages == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_complementary_labels_are_all_but_the_given_one_and_new_every_epoch():
    labels = torch.arange(4).repeat(500)
    one, again = nlnl(labels), nlnl(labels)
    one.begin_epoch(0)
    first = one.complementary_labels.clone()
    for label in range(4):
        counts = torch.bincount(first[labels == label].flatten(), minlength=4)
        assert counts[label] == 0
        assert bool((counts[torch.arange(4) != label] > 500 / 3 - 50).all())
    one.begin_epoch(1)
    assert not torch.equal(one.complementary_labels, first)
    again.begin_epoch(1)  # a run that is taken up again draws what it would have drawn
    assert torch.equal(one.complementary_labels, again.complementary_labels)


def test_a_hundred_classes_take_110_complementary_labels():
    assert nlnl(torch.arange(100), 100).complementary_labels.shape == (100, 110)
    assert nlnl(torch.arange(10), 10).complementary_labels.shape == (10, 1)


def test_nothing_chosen_gives_zero_and_no_nan():
    objective = nlnl(torch.zeros(2, dtype=torch.int64))
    objective.begin_epoch(8)
    logits = torch.tensor([[-9.0, 9, 0, 0], [-9.0, 0, 9, 0]], requires_grad=True)
    value = objective(logits, torch.zeros(2, dtype=torch.int64), torch.arange(2))
    (gradient,) = torch.autograd.grad(value, logits)
    assert value.item() == 0
    assert bool((gradient == 0).all())


@pytest.mark.slow
def test_nlnl_learns_digits():
    result = fit(tiny(loss="nlnl", epochs=24, batch_size=32, rate=0.3))
    assert result.accuracy > 0.8
