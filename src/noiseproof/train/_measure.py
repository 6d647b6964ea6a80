"""What is measured of an epoch, on the device.

To add a measurement, compute it here and add it to the mapping of `RunTrainer.measure`: its key is
a column of the history.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..results import CHOSEN_EPOCH as CHOSEN_EPOCH
from ..results import accuracy_column

BINS = 15  # of the calibration error
DIVERGED_STEP = "diverged_step"
"""The key of the first step whose loss or gradient is not finite, -1 for none; no column."""
UNPREDICTED = "unpredicted_classes"
CHANGED = "changed_predictions"
MIN_TEST_SAMPLES = 5  # of a class that is expected to be predicted
PATIENCE = 10  # epochs in which classes are not predicted before that is remarked on


def fit_to_labels(predicted: Tensor, labels: Tensor, clean: Tensor | None) -> dict[str, Tensor]:
    """How the predictions of the training pass agree with the given and with the true labels."""
    if clean is None:  # nobody knows them
        return {"train_accuracy": (predicted == labels).float().mean()}
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


def unpredicted(logits: Tensor, expected: Tensor) -> Tensor:
    """Of the expected classes, a mask [K], those that no sample is predicted as."""
    classes = max(len(expected), logits.shape[1])  # a user's network may have other outputs
    found = torch.zeros(classes, dtype=torch.bool, device=logits.device)
    return expected & ~found.index_fill_(0, logits.argmax(1), True)[: len(expected)]


def gave_classes_up(history: Sequence[Mapping[str, float]], epochs: int, classes: int) -> bool:
    """Whether the last epoch is the first of which it can be said that classes were given up.

    They were if in each of the last `PATIENCE` epochs some class was not predicted, the network is
    better than chance, and half of the training is over: robust losses learn one class after
    another, and the last ones late.
    """

    def at(epoch: int) -> bool:
        if epoch < max(PATIENCE, math.ceil(epochs / 2)):
            return False
        last = history[epoch - 1]
        column = accuracy_column(last)
        if column is None or not last[column] > 1.2 / classes:
            return False
        recent = history[epoch - PATIENCE : epoch]
        return all(row.get(UNPREDICTED, 0) > 0 for row in recent)

    now = len(history)
    return at(now) and not any(at(epoch) for epoch in range(1, now))


def output_names(classes: Sequence[str], outputs: int) -> list[str]:
    """The classes; what a user's network has beyond them is called by its number.

    >>> output_names(["cat", "dog"], 3)
    ['cat', 'dog', '2']
    """
    return [*classes, *map(str, range(len(classes), outputs))]


def disbelieved(
    predicted: Tensor, labels: Tensor, classes: Sequence[str], most: int = 20
) -> list[tuple[str, str, int]]:
    """The labels that the network did not believe: given, predicted, and how many.

    >>> disbelieved(torch.tensor([1, 1, 0]), torch.tensor([0, 0, 0]), ["cat", "dog"])
    [('cat', 'dog', 2)]
    """
    differing = predicted != labels
    both = torch.stack([labels[differing], predicted[differing]])
    pairs, counts = torch.unique(both, dim=1, return_counts=True)
    order = counts.argsort(descending=True, stable=True)[:most]
    given, said = (row.tolist() for row in pairs[:, order])
    names = output_names(classes, 1 + max(said, default=0))
    return [
        (names[g], names[s], n) for g, s, n in zip(given, said, counts[order].tolist(), strict=True)
    ]


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
