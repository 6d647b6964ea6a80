"""How a loss is called: the conventions of ``torch.nn.CrossEntropyLoss`` for any expression.

All checks of inputs are here. Shapes and dtypes are always checked; values only of CPU tensors in
eager mode (see :func:`extremes`).
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from .._errors import UsageError, UsageTypeError, level_outside
from ._expression import Expression
from ._prediction import Prediction, compute_dtype, extremes

Reduction = Literal["mean", "sum", "none"]
_REDUCTIONS = get_args(Reduction)

_INTEGERS = (
    torch.int8, torch.int16, torch.int32, torch.int64,
    torch.uint8, torch.uint16, torch.uint32, torch.uint64,
)  # fmt: skip

_BINARY_HINT = (
    "give z = logits.flatten() as torch.stack([torch.zeros_like(z), z], dim=1), targets 0 or 1"
)

_SUM_TOLERANCE = 0.02  # probabilities of half precision sum to 1 within this


def evaluate(
    expression: Expression,
    logits: Tensor,
    target: Tensor,
    *,
    sample_weight: Tensor | None,
    weight: Tensor | None,
    ignore_index: int,
    reduction: Reduction,
    label_smoothing: float,
) -> Tensor:
    """The reduced value of a loss. :func:`check_keywords` must have checked the keywords."""
    batch = as_batch(logits)
    one_sample = logits.dim() == 1
    if weight is not None:
        _check_weight_fits(weight, batch.shape[1])
        weight = weight.to(compute_dtype(batch)).view(1, -1, *[1] * (batch.dim() - 2))
    if _is_probabilities(logits, target, ignore_index):
        q = target.unsqueeze(0) if one_sample else target
        values = _at_probabilities(expression, batch, q, weight, label_smoothing)
        divisors = None
    else:
        label = target.reshape(1) if one_sample else target
        values, divisors = _at_labels(
            expression, batch, label.long(), weight, ignore_index, label_smoothing
        )
    if sample_weight is not None:
        sample_weights = _check_sample_weight(sample_weight, values, one_sample)
        values = values * sample_weights
        divisors = sample_weights if divisors is None else divisors * sample_weights
    return _reduce(values, divisors, reduction, one_sample)


def _at_probabilities(
    expression: Expression, batch: Tensor, q: Tensor, weight: Tensor | None, label_smoothing: float
) -> Tensor:
    q = q.to(compute_dtype(batch))
    _warn_of_sums(q)
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
    """The value of each sample and its part of the mean's divisor: its class weight, 0 if ignored.

    The divisors are None where all are 1.
    """
    num_classes = batch.shape[1]
    kept = _not_ignored(label, num_classes, ignore_index)
    if kept is not None:
        label = label.where(kept, 0)
    from_reductions = expression.label_from_reductions
    if label_smoothing:
        from_reductions &= expression.sum_from_reductions and weight is None
    prediction = Prediction(batch, label.unsqueeze(1), needs_log_p=not from_reductions)
    values = expression.at_label(prediction)
    divisors = None if kept is None else kept.to(values.dtype)
    if weight is not None:
        label_weight = prediction.gather_label(weight.expand_as(batch))
        values = values * label_weight
        divisors = label_weight if divisors is None else divisors * label_weight
    if label_smoothing:
        if weight is None:
            total = expression.class_sum(prediction)
        else:
            total = (weight * expression.per_class(prediction)).sum(1)
        values = values * (1 - label_smoothing) + total * (label_smoothing / num_classes)
    if kept is not None:
        values = values.where(kept, 0.0)
    return values, divisors


def as_batch(logits: Tensor) -> Tensor:
    """Logits as [N, K, ...], checked."""
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        found = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
        raise UsageTypeError(f"logits must be a floating-point tensor, [N, K]; they were {found}")
    if logits.dim() == 0:
        raise UsageError("logits must be [K], [N, K] or [N, K, d1, ...]; they had no dimension")
    batch = logits.unsqueeze(0) if logits.dim() == 1 else logits
    if batch.shape[1] < 2:
        raise UsageError(
            f"logits {_shape(logits)} have {batch.shape[1]} class at dimension 1, and a loss needs "
            f"at least 2; for a binary problem with one logit a sample, {_BINARY_HINT}"
        )
    return batch


def _is_probabilities(logits: Tensor, target: Tensor, ignore_index: int) -> bool:
    """Whether the target is class probabilities, shaped like the logits, or class indices."""
    if not isinstance(target, Tensor):
        raise UsageTypeError(f"the target must be a tensor; it was {type(target).__name__}")
    if target.shape == logits.shape and target.is_floating_point():
        if ignore_index >= 0:
            raise UsageError(
                f"ignore_index = {ignore_index} needs class indices, and the target is "
                f"probabilities; give such samples a sample_weight of 0 instead"
            )
        return True
    index_shape = logits.shape[1:] if logits.dim() == 1 else logits.shape[:1] + logits.shape[2:]
    if target.shape == index_shape and target.dtype in _INTEGERS:
        return False
    if logits.dim() == 1 and target.shape == (1,) and target.dtype in _INTEGERS:
        return False  # torch takes the label of one sample with and without a dimension
    expected = (
        f"for logits {_shape(logits)} the target is class indices (integers) of shape "
        f"{list(index_shape)} or class probabilities (floats) of shape {_shape(logits)}"
    )
    if target.shape == index_shape:
        remedy = "if these are indices, give target.long()"
    elif target.shape != logits.shape:
        raise UsageError(f"{expected}; its shape was {_shape(target)}")
    elif logits.dim() == 1:
        remedy = f"if these are {len(logits)} samples of one logit each, {_BINARY_HINT}"
    else:
        remedy = "if that is one-hot, give target.argmax(1) or target.float()"
    raise UsageTypeError(f"{expected}; it was {target.dtype}: {remedy}")


_warned_of_sums = False


def _warn_of_sums(q: Tensor) -> None:
    """Warn, once, if class probabilities [N, K, ...] do not sum to 1, as those of several labels.

    torch takes them without a word, and so the loss of a multi-label problem is not the one meant.
    """
    global _warned_of_sums
    if _warned_of_sums or q.device.type != "cpu":
        return
    sums = extremes(q.sum(1)) or ()
    wrong = [each for each in sums if abs(each - 1) > _SUM_TOLERANCE]  # none for NaN
    if not wrong:
        return
    _warned_of_sums = True
    warnings.warn(
        f"the class probabilities of a sample sum to {wrong[-1]:.4g}, not 1; if a sample can "
        "have several labels, give logits z, [N, L], as "
        "torch.stack([torch.zeros_like(z), z], dim=1) and targets 0 or 1, [N, L]",
        stacklevel=level_outside(),
    )


def _not_ignored(label: Tensor, num_classes: int, ignore_index: int) -> Tensor | None:
    """A mask of the samples whose label is not ``ignore_index``; None if no label is.

    A label out of range raises for CPU tensors in eager mode; on a GPU, the gather that follows
    fails with a device-side assertion.
    """
    bounds = extremes(label)
    if bounds is not None:
        low, high = bounds
        if low >= 0 and high < num_classes and not low <= ignore_index <= high:
            return None
    kept = label != ignore_index
    if bounds is not None and bool(kept.any()):
        for index in extremes(label[kept]) or ():
            if not 0 <= index < num_classes:
                raise IndexError(
                    f"class index {index} is out of range for {num_classes} classes "
                    f"(0 to {num_classes - 1}); to leave samples out, give them ignore_index "
                    f"({ignore_index})"
                )
    return kept


def _check_sample_weight(sample_weight: Tensor, values: Tensor, one_sample: bool) -> Tensor:
    weights = torch.as_tensor(sample_weight, dtype=values.dtype, device=values.device)
    if one_sample and weights.dim() == 0:
        weights = weights.unsqueeze(0)
    if weights.shape not in (values.shape, values.shape[:1]):
        expected = "[]" if one_sample else _shape(values)
        raise UsageError(f"sample_weight must be {expected}; its shape was {_shape(weights)}")
    if not _are_weights(extremes(weights)):
        raise UsageError("sample_weight must be finite and not negative")
    return weights.view(-1, *[1] * (values.dim() - weights.dim()), *weights.shape[1:]).expand_as(
        values
    )


def _reduce(values: Tensor, divisors: Tensor | None, reduction: str, one_sample: bool) -> Tensor:
    if reduction == "mean":
        return values.mean() if divisors is None else values.sum() / divisors.sum()
    if reduction == "sum":
        return values.sum()
    if reduction == "none":
        return values.squeeze(0) if one_sample else values
    raise _unknown_reduction(reduction)


def _unknown_reduction(reduction: Any) -> UsageError:
    known = ", ".join(_REDUCTIONS)
    return UsageError(f"reduction must be one of {known}; it was {reduction!r}")


def named_arguments(
    by_position: tuple[Any, ...], by_name: Mapping[str, Any], hyper: Collection[str], call: str
) -> dict[str, Any]:
    """All arguments of a loss by name. By position it takes class weights, as torch does.

    Args:
        by_position: the arguments that were given by position, beside logits and target.
        by_name: those that were given by name.
        hyper: the names of the hyper-parameters of the loss.
        call: how its call begins, for the messages: ``"FocalLoss("``.
    """
    if not by_position:
        return dict(by_name)
    weight = by_position[0]
    if isinstance(weight, numbers.Number | str):
        example = next((f"{call}{name}={weight!r})" for name in hyper), "this one has none")
        raise UsageTypeError(
            f"{weight!r} was given by position, where a loss takes weight, one number a class; "
            f"hyper-parameters go by name: {example}"
        )
    if len(by_position) > 1:
        raise UsageTypeError(
            f"{len(by_position)} arguments were given by position, and a loss takes one, weight; "
            f"give the others by name, as in {call}weight, reduction='sum')"
        )
    if "weight" in by_name:
        raise UsageTypeError("weight was given by position and by name; give it once")
    return {"weight": weight, **by_name}


def check_keywords(
    weight: Tensor | Sequence[float] | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor | None:
    """Check the keywords of a loss; returns the class weights as a tensor."""
    if reduction not in _REDUCTIONS:
        raise _unknown_reduction(reduction)
    if not isinstance(ignore_index, numbers.Integral) or isinstance(ignore_index, bool):
        raise UsageTypeError(f"ignore_index must be an integer; it was {ignore_index!r}")
    if not isinstance(label_smoothing, numbers.Real) or not 0 <= label_smoothing <= 1:
        raise UsageError(f"label_smoothing must be from 0 to 1; it was {label_smoothing!r}")
    return None if weight is None else _check_weight(weight)


def _check_weight(weight: Any) -> Tensor:
    try:
        tensor = torch.as_tensor(weight)
    except (TypeError, ValueError, RuntimeError):
        raise UsageTypeError(f"weight must be K numbers, one a class; it was {weight!r}") from None
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise UsageTypeError(f"weight must be K numbers, one a class; it was {tensor.dtype}")
    if not tensor.is_floating_point():
        tensor = tensor.to(torch.get_default_dtype())
    if tensor.dim() != 1:
        raise UsageError(f"weight must be [K], one number a class; its shape was {_shape(tensor)}")
    bounds = extremes(tensor)
    if not _are_weights(bounds):
        raise UsageError(f"weight must be finite and not negative; it was {tensor.tolist()}")
    if bounds == (0, 0):
        raise UsageError("weight must not be 0 for every class: the mean would divide by 0")
    return tensor


def _are_weights(bounds: tuple[float, float] | None) -> bool:
    return bounds is None or (bounds[0] >= 0 and bounds[1] < math.inf)  # false for NaN


def _check_weight_fits(weight: Tensor, num_classes: int) -> None:
    if weight.shape[0] != num_classes:
        raise UsageError(
            f"weight has {weight.shape[0]} entries, and the logits have {num_classes} classes "
            f"at dimension 1; give one weight a class"
        )


def _shape(tensor: Any) -> list[int]:
    return list(tensor.shape)
