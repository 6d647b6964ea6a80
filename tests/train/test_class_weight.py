"""A run with balanced class weights is one with the weighted loss in its place."""

from __future__ import annotations

import pytest
import torch

import noiseproof
from noiseproof import UsageError, data
from noiseproof.train import Run, fit
from noiseproof.train._setup import Setup

from .subjects import tiny


def rare() -> data.Dataset:
    """Digits with a few of one class."""
    digits = data.load("digits")
    labels = digits.train.labels
    keep = torch.cat([(labels != 3).nonzero().flatten(), (labels == 3).nonzero().flatten()[:12]])
    return data.from_arrays(
        digits.train.inputs[keep].numpy(), labels[keep].numpy(),
        digits.test.inputs.numpy(), digits.test.labels.numpy(),
    )  # fmt: skip


def but_seconds(history):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in history]


def test_it_is_the_weighted_loss():
    of = rare()
    weight = noiseproof.class_weights(of.train.labels)
    by_setting = fit(tiny(loss="nce + 0.1*rce", class_weight="balanced"), data=of)
    by_loss = fit(tiny(), data=of, loss=noiseproof.parse("nce + 0.1*rce", weight=weight))
    plain = fit(tiny(loss="nce + 0.1*rce"), data=of)
    assert but_seconds(by_setting.history) == but_seconds(by_loss.history)
    assert but_seconds(by_setting.history) != but_seconds(plain.history)


def test_the_weights_are_of_the_noisy_labels_that_are_trained_on():
    run = tiny(loss="ce", class_weight="balanced", rate=0.6, holdout=0.3)
    trainer = Setup().trainer(run.resolve())
    expected = noiseproof.class_weights(trainer.loader.labels, 10)
    assert torch.equal(trainer.objective.loss.weight, expected)


def test_it_renames_no_run():
    assert tiny(class_weight="none").resolve().hash == tiny().resolve().hash
    assert tiny(class_weight="balanced").resolve().hash != tiny().resolve().hash


def test_mistakes():
    with pytest.raises(UsageError, match="class_weight is one of none, balanced"):
        Run(class_weight="equal")
    with pytest.raises(UsageError, match=r"nlnl .* takes no class_weight"):
        Run(loss="nlnl", class_weight="balanced").resolve()
    with pytest.raises(UsageError, match="leave class_weight out"):
        fit(tiny(class_weight="balanced"), loss=noiseproof.parse("ce"))
