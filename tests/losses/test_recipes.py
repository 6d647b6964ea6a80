"""Published settings, and the loss of two views."""

from __future__ import annotations

import math

import pytest
import torch

import noiseproof
from noiseproof.catalogue import METHODS, Setting
from noiseproof.runs import Run

RECIPES = [
    (name, dataset)
    for name, method in METHODS.items()
    for dataset, setting in method.paper.items()
    if isinstance(setting, Setting)
]


@pytest.mark.parametrize(("name", "dataset"), RECIPES)
def test_every_recipe_is_a_loss_that_trains(name, dataset):
    found = noiseproof.recipe(name, dataset, reduction="sum")
    logits = torch.randn(4, 10, requires_grad=True)
    found.loss(logits, torch.randint(10, (4,))).backward()
    assert found.loss.reduction == "sum"
    assert found.source
    assert found.l1 >= 0
    assert not (found.l1 and found.weight_decay)  # L1 is in place of weight decay


@pytest.mark.parametrize(
    ("name", "dataset", "text", "l1", "weight_decay"),
    [
        ("anl-ce", "cifar10", "5*nce + 5*nnce", 5e-5, 0.0),
        ("ANL-FL", "CIFAR-100", "10*normalize(fl_detached) + negative(fl_detached)", 5e-7, 0.0),
        ("jal-ce", "cifar100", "5*nce + amse(a=20)", 5e-6, 0.0),
        ("jal-fl", "webvision", "50*normalize(fl_detached) + amse", 0.0, 3e-5),
        ("nce + agce", "cifar10", "nce + 4*agce(a=6, q=1.5)", 0.0, None),
        ("nce+aul", "cifar100", "10*nce + 0.015*aul(a=6)", 0.0, None),
        ("nce+ael", "cifar10", "nce + 4*ael(a=5)", 0.0, None),
        ("nce+rce", "mnist", "nce + 100*rce", 0.0, None),
        ("nfl+mae", "cifar100", "10*nfl + 0.1*mae", 0.0, None),
        ("sce", "cifar100", "sce(alpha=6, beta=0.1)", 0.0, None),
    ],
)
def test_published_settings(name, dataset, text, l1, weight_decay):
    found = noiseproof.recipe(name, dataset)
    assert found.loss == noiseproof.parse(text)
    assert (found.l1, found.weight_decay) == (l1, weight_decay)


@pytest.mark.parametrize("form", ["{}", "normalize({})", "negative({})"])
def test_the_focal_loss_of_published_code_holds_its_factor_constant(form):
    """Its values are those of the focal loss; its gradient is that with sqrt(1 - p) as a number."""
    logits = torch.randn(6, 5, dtype=torch.float64, requires_grad=True)
    label = torch.arange(6) % 5
    loss = noiseproof.parse(form.format("fl_detached"))
    torch.testing.assert_close(
        loss(logits, label), noiseproof.parse(form.format("fl"))(logits, label)
    )

    log_p = logits.log_softmax(1)
    held = (1 - log_p.exp()).sqrt().detach()
    least = torch.tensor(1e-7, dtype=torch.float64)
    matrix = -held * log_p
    if form.startswith("normalize"):
        matrix = matrix / matrix.sum(1, keepdim=True)
    if form.startswith("negative"):
        negated = -(1 - least).sqrt() * least.log() - matrix
        matrix = 1 - negated / negated.sum(1, keepdim=True)
    by_hand = matrix.gather(1, label[:, None]).mean()
    (expected,) = torch.autograd.grad(by_hand, logits, retain_graph=True)
    (found,) = torch.autograd.grad(loss(logits, label), logits)
    torch.testing.assert_close(found, expected)


def test_recipes_that_follow_the_noise():
    assert str(noiseproof.recipe("js", "cifar10", rate=0.6).loss) == "js(pi=0.9)"
    found = noiseproof.recipe("epsilon-softmax", "cifar100", noise="asymmetric", rate=0.2)
    assert str(found.loss) == "0.007*epsilon_softmax(ce, m=100) + mae"
    plain = noiseproof.recipe("epsilon-softmax", "cifar10")
    assert str(plain.loss) == "0.01*epsilon_softmax(ce, m=100000) + 5*mae"
    with pytest.raises(ValueError, match=r"published for symmetric noise of rate 0, 0.2.*was 0.5"):
        noiseproof.recipe("js", "cifar10", rate=0.5)


def test_auto_is_the_loss_that_a_run_of_it_has():
    for dataset in ("cifar10", "cifar100"):
        found = noiseproof.recipe("auto", dataset)
        run = Run(dataset=dataset, loss="auto").resolve()
        assert found.loss == noiseproof.parse(run.loss)
        assert "--shrink" in found.note
        assert found.weight_decay == 0.0
    assert noiseproof.recipe("auto", "mine", classes=3).loss == noiseproof.parse(
        "1.5*nce + amse(a=6)"
    )
    with pytest.raises(ValueError, match="auto needs to know how many classes mine has"):
        noiseproof.recipe("auto", "mine")


def test_what_has_no_recipe():
    with pytest.raises(ValueError, match=r"unknown recipe 'anl-c' \(did you mean 'anl-ce'\?\)"):
        noiseproof.recipe("anl-c", "cifar10")
    with pytest.raises(ValueError, match=r"no published settings for 'mnist'.*cifar10, cifar100"):
        noiseproof.recipe("jal-ce", "mnist")


def entropy(p: torch.Tensor) -> torch.Tensor:
    return -(p * p.log()).sum(1)


def test_gjs_is_its_definition():
    pi = 0.3
    first, second = (torch.randn(6, 5, dtype=torch.float64) for _ in range(2))
    target = torch.randint(5, (6,))
    loss = noiseproof.GeneralizedJensenShannon(pi=pi, reduction="none")
    p, q = first.softmax(1), second.softmax(1)
    one_hot = torch.nn.functional.one_hot(target, 5).double()
    m = pi * one_hot + (1 - pi) / 2 * (p + q)
    expected = entropy(m) - (1 - pi) / 2 * (entropy(p) + entropy(q))
    expected = expected / (-(1 - pi) * math.log(1 - pi))
    torch.testing.assert_close(loss(first, second, target), expected)
    torch.testing.assert_close(loss(second, first, target), expected)


def test_gjs_has_the_conventions():
    weight = torch.rand(5)
    loss = noiseproof.GeneralizedJensenShannon(pi=0.5, weight=weight, label_smoothing=0.1)
    assert list(loss.state_dict()) == ["js.weight"]
    logits, target = torch.randn(2, 5, 3), torch.randint(5, (2, 3))
    plain = noiseproof.JensenShannon(pi=0.5, weight=weight, label_smoothing=0.1)
    torch.testing.assert_close(loss(logits, logits, target), plain(logits, target))
    one = loss(logits[0, :, 0], logits[0, :, 0], target[0, 0])
    torch.testing.assert_close(one, plain(logits[0, :, 0], target[0, 0]))
    z = [torch.randn(3, 5, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    assert torch.autograd.gradcheck(lambda a, b: loss(a, b, torch.tensor([0, 1, 2])), tuple(z))
    far = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    noiseproof.GeneralizedJensenShannon()(far, -far, torch.tensor([1])).backward()
    assert far.grad is not None
    assert bool(torch.isfinite(far.grad).all())
    with pytest.raises(ValueError, match="must have one shape"):
        loss(logits, logits[:1], target)
