"""What is measured of an epoch, on the device, as one row of numbers."""

from __future__ import annotations

import torch
from torch import Tensor

BINS = 15  # of the calibration error


def fit_to_labels(predicted: Tensor, labels: Tensor, clean: Tensor) -> dict[str, Tensor]:
    """How the predictions of the training pass agree with the given and with the true labels."""
    wrong = labels != clean
    count = wrong.sum()
    return {
        "train_accuracy": (predicted == labels).float().mean(),
        "train_accuracy_clean": (predicted == clean).float().mean(),
        "wrong_accuracy": (wrong & (predicted == clean)).sum() / count,
        "memorised": (wrong & (predicted == labels)).sum() / count,
    }


def accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    return (logits.argmax(1) == labels).float().mean()


def calibration_error(logits: Tensor, labels: Tensor) -> Tensor:
    """The expected calibration error in 15 bins: how far confidence is from accuracy."""
    confidence, predicted = logits.float().softmax(1).max(1)
    bins = (confidence * BINS).long().clamp_(0, BINS - 1)  # 0: of no number
    gap = confidence - (predicted == labels).float()
    return torch.zeros(BINS, device=logits.device).index_add_(0, bins, gap).abs().sum() / len(
        labels
    )


def first_bad(losses: Tensor) -> Tensor:
    """The first step whose loss is no finite number, or -1."""
    bad = ~torch.isfinite(losses)
    return torch.where(bad.any(), bad.float().argmax(), -1)
