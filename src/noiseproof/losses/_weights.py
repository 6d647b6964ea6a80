"""Weights of classes for imbalanced data."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._errors import UsageError


def class_weights(labels: Any, num_classes: int | None = None) -> Tensor:
    """A weight for each class, inverse to how often it occurs, as ``weight=`` of any loss.

    With the weight N / (K * count) every class has the same share of the loss. The robust losses
    need it more than cross entropy: they give up a class whose samples look like mistakes, and a
    rare class does.

    Args:
        labels: integers from 0, [N]; the noisy labels will do.
        num_classes: the largest label and one, if not given.

    Returns:
        float32 [K]; 0 for a class that does not occur.

    >>> class_weights([0, 0, 0, 1])
    tensor([0.6667, 2.0000])
    """
    given = np.asarray(labels.detach().cpu() if isinstance(labels, Tensor) else labels)
    if given.dtype == object and {*map(type, given.flat)} == {int}:  # as in some columns of pandas
        with contextlib.suppress(OverflowError):
            given = given.astype(np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu" or not len(given):
        raise UsageError(
            f"labels must be integers [N]; they were {given.dtype} {list(given.shape)}"
        )
    if given.min() < 0:
        raise UsageError(f"labels must be classes from 0; the smallest was {given.min()}")
    counted = np.bincount(given.astype(np.int64), minlength=num_classes or 0)
    counts = torch.from_numpy(counted).double()
    if num_classes is not None and len(counts) > num_classes:
        raise UsageError(f"a label is {len(counts) - 1}, and num_classes is {num_classes}")
    weights = len(given) / (len(counts) * counts)
    return torch.where(counts > 0, weights, 0.0).float()
