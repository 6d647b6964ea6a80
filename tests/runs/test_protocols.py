"""The protocols against the table of the paper's settings, and the learning rate of each epoch."""

from __future__ import annotations

import math

import pytest
import torch

from noiseproof.catalogue import DATASETS, protocol_of
from noiseproof.runs import Run
from noiseproof.syntax import canonical

# The table of shared/FACTS.md, "Training": model, epochs, rate, decay, crop, flip, rotation.
PAPER = {
    "mnist": ("cnn4", 50, 0.01, 1e-3, 0, False, 0),
    "cifar10": ("cnn8", 120, 0.01, 1e-4, 4, True, 0),
    "cifar100": ("resnet34", 200, 0.1, 1e-5, 4, True, 20),
}
AUTHORS = {  # "Where the authors' code differs from the paper"
    **PAPER,
    "mnist": ("cnn4", 50, 0.01, 1e-2, 0, False, 0),
    "cifar100": ("resnet50", 200, 0.1, 1e-5, 4, True, 20),
}


@pytest.mark.parametrize(("name", "table"), [("paper", PAPER), ("authors", AUTHORS)])
@pytest.mark.parametrize("dataset", PAPER)
def test_settings_of_the_paper(name, table, dataset):
    p = protocol_of(name, dataset)
    found = (p.model, p.epochs, p.lr, p.weight_decay, p.crop, p.flip, p.rotate)
    assert found == table[dataset]
    assert (p.batch_size, p.momentum, p.clip, p.schedule) == (128, 0.9, 5.0, "cosine")


def test_nesterov_and_a_floor_are_the_authors_on_mnist_alone():
    odd = {
        (name, dataset): (p.nesterov, p.lr_floor)
        for dataset, entry in DATASETS.items()
        for name, p in entry.protocols.items()
        if (p.nesterov or p.lr_floor) and not dataset.startswith("webvision")
    }
    assert odd == {("authors", "mnist"): (True, 1e-3)}


def test_others_take_the_settings_of_cifar10():
    assert protocol_of("paper", "mine") == protocol_of("paper", "cifar10")
    assert protocol_of("paper", "fashion-mnist") == protocol_of("paper", "mnist")


def test_webvision_has_the_paper_s_settings():
    p = protocol_of("paper", "webvision")
    found = (p.model, p.epochs, p.lr, p.weight_decay, p.batch_size, p.nesterov, p.schedule)
    assert found == ("resnet50-imagenet", 250, 0.4, 3e-5, 512, True, "exponential")
    assert (p.crop_size, p.crop_scale, p.flip, p.jitter) == (224, 0.08, True, 0.4)


@pytest.mark.parametrize(
    ("settings", "decay", "l1"),
    [
        ({"loss": "nce"}, 1e-4, 0.0),
        ({"loss": "anl-ce"}, 0.0, 5e-5),
        ({"loss": "jal-ce"}, 0.0, 5e-5),
        ({"loss": "jal-ce", "weight_decay": 1e-3}, 1e-3, 5e-5),
        ({"loss": "jal-ce", "l1": 0.0}, 0.0, 0.0),
        ({"loss": "nce", "l1": 1e-6}, 1e-4, 1e-6),
    ],
)
def test_a_published_loss_brings_its_decay_and_its_l1(settings, decay, l1):
    run = Run(dataset="cifar10", **settings).resolve()
    assert (run.weight_decay, run.l1) == (decay, l1)


@pytest.mark.parametrize(
    ("dataset", "protocol", "text"),
    [
        ("cifar10", "paper", "nce + rce"),
        ("mnist", "paper", "nce + 100*rce"),
        ("cifar100", "paper", "10*nce + 0.1*rce"),
        ("mnist", "authors", "nce + 10*rce(A=-9.210340371976182)"),
        ("digits", "paper", "nce + 0.1*rce"),  # no paper used it: our own
        ("fashion-mnist", "paper", "nce + rce"),  # no weights at all: the text as it stands
    ],
)
def test_a_name_takes_the_weights_of_the_protocol(dataset, protocol, text):
    run = Run(dataset=dataset, protocol=protocol, loss="nce+rce").resolve()
    assert run.loss == canonical(text)


def test_an_unknown_loss_is_named():
    with pytest.raises(ValueError, match=r"unknown loss 'ncee' \(did you mean 'nce'\?\)"):
        Run(loss="ncee").resolve()
    with pytest.raises(ValueError, match="anl-ce has no published settings for 'digits'"):
        Run(loss="anl-ce").resolve()


def test_nlnl_takes_ten_times_as_long():
    assert Run(loss="nlnl", dataset="cifar10").resolve().epochs == 1200
    assert Run(loss="nlnl", dataset="cifar10", epochs=6).resolve().epochs == 6


@pytest.mark.parametrize("floor", [0.0, 1e-3])
def test_the_cosine_is_torch_s(floor):
    run = Run(epochs=7, lr=0.05, lr_floor=floor).resolve()
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 7, eta_min=floor)
    for epoch in range(7):
        closed = floor + (0.05 - floor) * (1 + math.cos(math.pi * epoch / 7)) / 2
        assert run.lr_at(epoch) == pytest.approx(closed, rel=1e-12)
        assert run.lr_at(epoch) == pytest.approx(schedule.get_last_lr()[0], rel=1e-6)
        optimizer.step()
        schedule.step()
    assert run.lr_at(7) == pytest.approx(floor)


def test_exponential_and_constant():
    run = Run(epochs=9, lr=0.4, schedule="exponential").resolve()
    assert [run.lr_at(e) for e in (0, 1, 5)] == pytest.approx([0.4, 0.388, 0.4 * 0.97**5])
    assert Run(lr=0.4, schedule="constant").resolve().lr_at(8) == 0.4
