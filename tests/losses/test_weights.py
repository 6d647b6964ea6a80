"""Weights of classes for imbalanced data."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import noiseproof


def test_every_class_has_the_same_share():
    labels = torch.tensor([0] * 50 + [1] * 30 + [2] * 20)
    weights = noiseproof.class_weights(labels)
    share = [float(weights[labels[labels == k]].sum()) for k in range(3)]
    assert share == pytest.approx([100 / 3] * 3)
    for dtype in (np.int64, np.uint8, np.uint16):
        assert torch.equal(weights, noiseproof.class_weights(labels.numpy().astype(dtype)))
    assert torch.equal(weights, noiseproof.class_weights(labels.tolist(), num_classes=3))
    pandas = pytest.importorskip("pandas")
    part = pandas.Series(labels.numpy(), index=range(7, 107))  # as of a split
    assert torch.equal(weights, noiseproof.class_weights(part))
    assert torch.equal(weights, noiseproof.class_weights(part.astype(object)))
    assert noiseproof.class_weights([0, 2], 4).tolist() == pytest.approx([0.5, 0, 0.5, 0])


def test_it_is_a_weight_of_any_loss():
    labels = torch.randint(4, (64,))
    loss = noiseproof.parse("nce + rce", weight=noiseproof.class_weights(labels, 4))
    assert loss(torch.randn(64, 4), labels).isfinite()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "integers"), ([0.5], "integers"), ([[0, 1]], r"integers \[N\]"), ([-1, 0], "from 0"),
        (np.array([True]), "integers"), (np.array([0, 0.5], object), "they were object"),
        ([2**70], "they were object"),
    ],
)  # fmt: skip
def test_what_are_no_labels(labels, message):
    with pytest.raises(noiseproof.UsageError, match=message):
        noiseproof.class_weights(labels)
    with pytest.raises(noiseproof.UsageError, match="a label is 5, and num_classes is 3"):
        noiseproof.class_weights([0, 5], 3)
