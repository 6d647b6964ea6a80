"""How a loss is called: ``torch.nn.CrossEntropyLoss``'s conventions for any expression.

Every check of an input lives here, once. Shapes and types are always checked; values only where
looking at them costs nothing (see :func:`extremes`).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from ._expression import Expression
from ._prediction import Prediction, compute_dtype, extremes

Reduction = Literal["mean", "sum", "none"]
_REDUCTIONS = get_args(Reduction)

_INTEGERS = (
    torch.int8, torch.int16, torch.int32, torch.int64,
    torch.uint8, torch.uint16, torch.uint32, torch.uint64,
)  # fmt: skip

_BINARY = (
    "give z = logits.flatten() as torch.stack([torch.zeros_like(z), z], dim=1), targets 0 or 1"
)


def evaluate(
    expression: Expression,
    logits: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    weight: Tensor | None,
    ignore_index: int,
    reduction: Reduction,
    label_smoothing: float,
) -> Tensor:
    """The value of a loss, reduced. The keywords are taken as checked by :func:`check_keywords`."""
    batch = as_batch(logits)
    one_sample = logits.dim() == 1
    if weight is not None:
        _check_weight_fits(weight, batch.shape[1])
        weight = weight.to(compute_dtype(batch)).view(1, -1, *[1] * (batch.dim() - 2))
    given = target.unsqueeze(0) if one_sample and isinstance(target, Tensor) else target
    if _is_probabilities(logits, target, ignore_index):
        values = _at_probabilities(expression, batch, given, weight, label_smoothing)
        counts = None
    else:
        values, counts = _at_labels(
            expression, batch, given.long(), weight, ignore_index, label_smoothing
        )
    if sample_weight is not None:
        of_sample = _sample_weight(sample_weight, values, one_sample)
        values = values * of_sample
        counts = of_sample if counts is None else counts * of_sample
    return _reduce(values, counts, reduction, one_sample)


def _at_probabilities(
    expression: Expression, batch: Tensor, q: Tensor, weight: Tensor | None, label_smoothing: float
) -> Tensor:
    q = q.to(compute_dtype(batch))
    if label_smoothing:
        q = q * (1 - label_smoothing) + label_smoothing / batch.shape[1]
    if weight is not None:
        q = q * weight
    return (q * expression.per_class(Prediction(batch))).sum(1)


def _at_labels(
    expression: Expression,
    batch: Tensor,
    label: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    label_smoothing: float,
) -> tuple[Tensor, Tensor | None]:
    """The values, and what each counts in the mean: 0 if ignored, else the weight of its label."""
    num_classes = batch.shape[1]
    kept = _kept(label, num_classes, ignore_index)
    if kept is not None:
        label = label.where(kept, 0)
    rows = expression.label_from_rows
    if label_smoothing:
        rows = rows and expression.sum_from_rows and weight is None
    prediction = Prediction(batch, label.unsqueeze(1), whole=not rows)
    values = expression.at_label(prediction)
    counts = None if kept is None else kept.to(values.dtype)
    if weight is not None:
        of_label = prediction.pick(weight.expand_as(batch))
        values = values * of_label
        counts = of_label if counts is None else counts * of_label
    if label_smoothing:
        if weight is None:
            total = expression.class_sum(prediction)
        else:
            total = (weight * expression.per_class(prediction)).sum(1)
        values = values * (1 - label_smoothing) + total * (label_smoothing / num_classes)
    if kept is not None:
        values = values.where(kept, 0.0)
    return values, counts


def as_batch(logits: Tensor) -> Tensor:
    """Logits as [N, K, ...], or one line that says what they should be."""
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        kind = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
        raise TypeError(f"logits must be a floating-point tensor, [N, K]; they were {kind}")
    if logits.dim() == 0:
        raise ValueError("logits must be [K], [N, K] or [N, K, d1, ...]; they had no dimension")
    batch = logits.unsqueeze(0) if logits.dim() == 1 else logits
    if batch.shape[1] < 2:
        raise ValueError(
            f"logits {_shape(logits)} have {batch.shape[1]} class at dimension 1, and a loss needs "
            f"at least 2; for a binary problem with one logit a sample, {_BINARY}"
        )
    return batch


def _is_probabilities(logits: Tensor, target: Tensor, ignore_index: int) -> bool:
    """Probabilities have the shape of the logits, indices that shape without the classes."""
    if not isinstance(target, Tensor):
        raise TypeError(f"the target must be a tensor; it was {type(target).__name__}")
    if target.shape == logits.shape and target.is_floating_point():
        if ignore_index >= 0:
            raise ValueError(
                f"ignore_index = {ignore_index} needs class indices, and the target is "
                f"probabilities; give such samples a sample_weight of 0 instead"
            )
        return True
    index_shape = logits.shape[1:] if logits.dim() == 1 else logits.shape[:1] + logits.shape[2:]
    if target.shape == index_shape and target.dtype in _INTEGERS:
        return False
    expected = (
        f"for logits {_shape(logits)} the target is class indices (integers) of shape "
        f"{list(index_shape)} or class probabilities (floats) of shape {_shape(logits)}"
    )
    if target.shape == index_shape:
        remedy = "if these are indices, give target.long()"
    elif target.shape != logits.shape:
        raise ValueError(f"{expected}; its shape was {_shape(target)}")
    elif logits.dim() == 1:
        remedy = f"if these are {len(logits)} samples of one logit each, {_BINARY}"
    else:
        remedy = "if that is one-hot, give target.argmax(1) or target.float()"
    raise TypeError(f"{expected}; it was {target.dtype}: {remedy}")


def _kept(label: Tensor, num_classes: int, ignore_index: int) -> Tensor | None:
    """Which samples have a label that counts; None where it is known that all have.

    A label out of range is refused where the values are at hand; elsewhere it is left to the
    gather, which on a GPU ends in a device-side assertion.
    """
    seen = extremes(label)
    if seen is not None:
        low, high = seen
        if low >= 0 and high < num_classes and not low <= ignore_index <= high:
            return None
    kept = label != ignore_index
    if seen is not None and bool(kept.any()):
        for index in extremes(label[kept]) or ():
            if not 0 <= index < num_classes:
                raise IndexError(
                    f"class index {index} is out of range for {num_classes} classes "
                    f"(0 to {num_classes - 1}); to leave samples out, give them ignore_index "
                    f"({ignore_index})"
                )
    return kept


def _sample_weight(sample_weight: Tensor, values: Tensor, one_sample: bool) -> Tensor:
    weights = torch.as_tensor(sample_weight, dtype=values.dtype, device=values.device)
    if one_sample and weights.dim() == 0:
        weights = weights.unsqueeze(0)
    if weights.shape not in (values.shape, values.shape[:1]):
        of_target = "[]" if one_sample else _shape(values)
        raise ValueError(f"sample_weight must be {of_target}; its shape was {_shape(weights)}")
    if not _is_weight(extremes(weights)):
        raise ValueError("sample_weight must be finite and not negative")
    return weights.view(-1, *[1] * (values.dim() - weights.dim()), *weights.shape[1:]).expand_as(
        values
    )


def _reduce(values: Tensor, counts: Tensor | None, reduction: str, one_sample: bool) -> Tensor:
    if reduction == "mean":
        return values.mean() if counts is None else values.sum() / counts.sum()
    if reduction == "sum":
        return values.sum()
    if reduction == "none":
        return values.squeeze(0) if one_sample else values
    raise _unknown_reduction(reduction)


def _unknown_reduction(reduction: Any) -> ValueError:
    known = ", ".join(_REDUCTIONS)
    return ValueError(f"reduction must be one of {known}; it was {reduction!r}")


def check_keywords(
    weight: Tensor | Sequence[float] | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor | None:
    """Refuse impossible keywords; give the class weights back as a tensor."""
    if reduction not in _REDUCTIONS:
        raise _unknown_reduction(reduction)
    if not isinstance(ignore_index, numbers.Integral) or isinstance(ignore_index, bool):
        raise TypeError(f"ignore_index must be an integer; it was {ignore_index!r}")
    if not isinstance(label_smoothing, numbers.Real) or not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing must be from 0 to 1; it was {label_smoothing!r}")
    return None if weight is None else _check_weight(weight)


def _check_weight(weight: Any) -> Tensor:
    try:
        tensor = torch.as_tensor(weight)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"weight must be K numbers, one a class; it was {weight!r}") from None
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(f"weight must be K numbers, one a class; it was {tensor.dtype}")
    if not tensor.is_floating_point():
        tensor = tensor.to(torch.get_default_dtype())
    if tensor.dim() != 1:
        raise ValueError(f"weight must be [K], one number a class; its shape was {_shape(tensor)}")
    seen = extremes(tensor)
    if not _is_weight(seen):
        raise ValueError(f"weight must be finite and not negative; it was {tensor.tolist()}")
    if seen == (0, 0):
        raise ValueError("weight must not be 0 for every class: the mean would divide by 0")
    return tensor


def _is_weight(seen: tuple[float, float] | None) -> bool:
    return seen is None or (seen[0] >= 0 and seen[1] < math.inf)  # NaN is neither


def _check_weight_fits(weight: Tensor, num_classes: int) -> None:
    if weight.shape[0] != num_classes:
        raise ValueError(
            f"weight has {weight.shape[0]} entries, and the logits have {num_classes} classes "
            f"at dimension 1; give one weight a class"
        )


def _shape(tensor: Any) -> list[int]:
    return list(tensor.shape)
