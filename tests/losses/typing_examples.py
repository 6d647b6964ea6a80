"""What a type checker must make of the public faces; mypy reads this file, nothing runs it.

An ignore that is not needed is an error, so each one below proves that a mistake is caught.
"""

from typing import assert_type

import torch
from torch import Tensor

import noiseproof
from noiseproof import functional


def examples() -> None:
    logits, target = torch.zeros(2, 3), torch.zeros(2, dtype=torch.long)

    loss = noiseproof.FocalLoss(
        gamma=2, reduction="none", weight=torch.ones(3), label_smoothing=0.1
    )
    assert_type(loss.gamma, float)
    assert_type(loss.weight, Tensor | None)
    assert_type(loss(logits, target), Tensor)
    assert_type(loss(logits, target, sample_weight=torch.ones(2)), Tensor)
    assert_type(10 * loss + noiseproof.ReverseCrossEntropy(A=-4), noiseproof.Loss)
    assert_type(noiseproof.parse("nce"), noiseproof.Loss)
    assert_type(noiseproof.normalize(lambda z: -z.log_softmax(1)), noiseproof.Loss)
    assert_type(noiseproof.NormalizedFocalLoss(gamma=2).gamma, float)
    assert_type(functional.normalized_focal_loss(logits, target, gamma=2, reduction="sum"), Tensor)
    assert_type(noiseproof.FocalLoss(torch.ones(3), gamma=2), noiseproof.FocalLoss)
    assert_type(functional.cross_entropy(logits, target, torch.ones(3)), Tensor)
    assert_type(functional.focal_loss(logits, target, torch.ones(3), gamma=2), Tensor)
    assert_type(functional.focal_loss(logits, target, sample_weight=torch.ones(2)), Tensor)
    assert_type(
        functional.focal_loss(logits, target, torch.ones(3), sample_weight=None, gamma=2), Tensor
    )

    noiseproof.FocalLoss(gama=2)  # type: ignore[call-arg]
    noiseproof.FocalLoss(2)  # type: ignore[arg-type]
    loss(logits, target, torch.ones(2))  # type: ignore[call-arg]
    noiseproof.FocalLoss(reduction="avg")  # type: ignore[arg-type]
    noiseproof.CrossEntropy(gamma=2)  # type: ignore[call-arg]
    functional.focal_loss(logits, target, gama=2)  # type: ignore[call-overload]
    loss + 1  # type: ignore[operator]
