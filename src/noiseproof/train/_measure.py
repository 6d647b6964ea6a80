"""What is measured of an epoch, on the device.

To add a measurement, compute it here and add it to the mapping of `RunTrainer.measure`: its key is
a column of the history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

BINS = 15  # of the calibration error
DIVERGED_STEP = "diverged_step"
"""The key of the first step whose loss or gradient is not finite, -1 for none; no column."""


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
    bins = (confidence * BINS).long().clamp_(0, BINS - 1)  # NaN goes to 0
    gap = confidence - (predicted == labels).float()
    return torch.zeros(BINS, device=logits.device).index_add_(0, bins, gap).abs().sum() / len(
        labels
    )


def first_nonfinite(values: Tensor) -> Tensor:
    """The index of the first value that is not finite, or -1."""
    nonfinite = ~torch.isfinite(values)
    return torch.where(nonfinite.any(), nonfinite.float().argmax(), -1)


@dataclass(frozen=True)
class EpochMetrics:
    """What was measured of an epoch of one run.

    Attributes:
        values: by column of the history.
        diverged_step: the first step, from 0, whose loss or gradient was not finite, if any.
    """

    values: dict[str, float]
    diverged_step: int | None = None


def to_host(rows: Sequence[Mapping[str, Tensor]]) -> list[EpochMetrics]:
    """Measured rows from the device, in one transfer."""
    flat = torch.stack([value.double() for row in rows for value in row.values()]).tolist()
    found, at = [], 0
    for row in rows:
        values = dict(zip(row, flat[at : at + len(row)], strict=True))
        at += len(row)
        step = int(values.pop(DIVERGED_STEP))
        found.append(EpochMetrics(values, None if step < 0 else step))
    return found
