"""The checks of labels, rates, seeds and matrices.

Results have the type of the labels that were given: a NumPy array or a tensor, with the same dtype
and on the same device. torch is not imported: a caller with a tensor has imported it.
"""

from __future__ import annotations

import numbers
import sys
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._errors import UsageError, UsageTypeError
from ._stream import Floats, Integers

Labels: TypeAlias = Any
"""A NumPy array or a torch tensor of integers, [N]; a list becomes a NumPy array."""

_TOLERANCE = 1e-5  # of the sums of rows; enough for a float32 matrix of 1,000 classes


@dataclass(frozen=True)
class CheckedLabels:
    """Labels as int64, with the type and device of the labels that were given."""

    values: Integers
    dtype: np.dtype[Any]  # of the labels that were given
    device: Any = None  # of a tensor; None for NumPy

    def like_input(self, values: Integers) -> Labels:
        """Other labels with the type, dtype and device of those that were given."""
        return self._to_device(values.astype(self.dtype))

    def mask_like_input(self, mask: NDArray[np.bool_]) -> Any:
        """A boolean mask with the type and device of the labels that were given."""
        return self._to_device(mask)

    def _to_device(self, array: NDArray[Any]) -> Any:
        if self.device is None:
            return array
        return sys.modules["torch"].from_numpy(array).to(self.device)


def is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_array(value: Any) -> NDArray[Any]:
    """A tensor as a NumPy array, or ``np.asarray`` of anything else."""
    if is_tensor(value):
        value = value.detach().cpu()
        if value.is_floating_point() and value.element_size() < 4:
            value = value.float()  # NumPy has no bfloat16
        return np.asarray(value.numpy())
    return np.asarray(value)


def check_labels(labels: Labels, name: str = "labels") -> CheckedLabels:
    """Check labels for all but the number of classes; ``name`` is theirs in messages."""
    array = as_array(labels)
    device = labels.device if is_tensor(labels) else None
    if array.size == 0 and not hasattr(labels, "dtype"):
        array = array.astype(np.int64)  # an empty list has no type of its own
    if array.ndim != 1:
        hint = f"; if that is one-hot, give {name}.argmax(1)" if array.ndim == 2 else ""
        raise UsageError(
            f"{name} must be [N], one class a sample; their shape was {list(array.shape)}{hint}"
        )
    if array.dtype.kind not in "iu":
        remedy = ".long()" if device is not None else ".astype(int)"
        shown = labels.dtype if hasattr(labels, "dtype") else array.dtype
        named = array.dtype.kind in "OU" and all(isinstance(label, str) for label in array.flat)
        hint = (
            "number the names, as with np.unique(names, return_inverse=True)"
            if named
            else f"if they are whole numbers, give {name}{remedy}"
        )
        raise UsageTypeError(
            f"{name} must be integers, the classes from 0; they were {shown}: {hint}"
        )
    if array.size and array.min() < 0:
        raise UsageError(
            f"{name} must be classes from 0; the smallest was {array.min()}: "
            f"leave unlabelled samples out first"
        )
    if array.size and array.max() > np.iinfo(np.int64).max:
        raise UsageError(f"{name} must be classes from 0; the largest was {array.max()}")
    return CheckedLabels(array.astype(np.int64), array.dtype, device)


def check_classes(
    labels: CheckedLabels, num_classes: int | None, *, source: str = "num_classes"
) -> int:
    """The number of classes: ``num_classes``, or else the largest label and one."""
    largest = int(labels.values.max()) if labels.values.size else -1
    if num_classes is None:
        if largest < 1:
            what = "there are no labels" if largest < 0 else "every label is 0"
            raise UsageError(f"the number of classes cannot be seen, {what}: give num_classes")
        return largest + 1
    if not isinstance(num_classes, numbers.Integral) or isinstance(num_classes, bool):
        raise UsageTypeError(f"num_classes must be a whole number; it was {num_classes!r}")
    count = int(num_classes)
    if count < 2:
        raise UsageError(f"{source} must be at least 2 for a label to be wrong; it was {count}")
    if largest >= count:
        raise UsageError(
            f"a label is {largest}, and {source} = {count} allows 0 to {count - 1}: "
            f"give at least {largest + 1} classes, or other labels"
        )
    if count - 1 > np.iinfo(labels.dtype).max:
        raise UsageError(
            f"labels of type {labels.dtype} cannot hold class {count - 1}: "
            f"give them as int64, which the noisy ones then have too"
        )
    return count


def check_rate(rate: float) -> float:
    if not isinstance(rate, numbers.Real) or isinstance(rate, bool):
        raise UsageTypeError(f"rate must be a number from 0 to 1; it was {rate!r}")
    if not 0 <= rate <= 1:
        percent = f": for {rate:g} %, give {rate / 100:g}" if 1 < rate <= 100 else ""
        raise UsageError(f"rate must be from 0 to 1; it was {rate}{percent}")
    return float(rate)


def check_seed(seed: int, bits: int = 64) -> int:
    if not isinstance(seed, numbers.Integral) or isinstance(seed, bool):
        raise UsageTypeError(f"seed must be a whole number; it was {seed!r}")
    if not 0 <= seed < 2**bits:
        raise UsageError(f"seed must be from 0 to 2^{bits} - 1; it was {seed}")
    return int(seed)


def check_matrix(T: Any) -> Floats:
    """A transition matrix in float64, each row divided by its sum."""
    array = as_array(T)
    if array.dtype.kind not in "fiu":
        raise UsageTypeError(f"T must be numbers, [K, K]; it was {array.dtype}")
    if array.ndim != 2 or array.shape[0] != array.shape[1] or len(array) < 2:
        raise UsageError(
            f"T must be square, [K, K] with K at least 2, T[i, j] the probability that class i is "
            f"given as j; its shape was {list(array.shape)}"
        )
    matrix = array.astype(np.float64)
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise UsageError("T must be finite and not negative: its entries are probabilities")
    sums = matrix.cumsum(1)[:, -1]  # added in order, so that every machine has the same last digit
    worst = int(np.abs(sums - 1).argmax())
    if abs(sums[worst] - 1) > _TOLERANCE:
        by_column = np.allclose(matrix.sum(0), 1, atol=_TOLERANCE)
        remedy = "its columns do: give T.T" if by_column else "divide each row by its sum"
        raise UsageError(
            f"each row of T must sum to 1; row {worst} sums to {sums[worst]:.6g}: {remedy}"
        )
    matrix /= sums[:, None]
    return matrix


def check_variant(variant: str, exact: bool = True) -> bool:
    """Whether the variant is that of the authors' code."""
    if variant not in ("paper", "authors"):
        raise UsageError(f"variant must be 'paper' or 'authors'; it was {variant!r}")
    if variant == "authors" and not exact:
        raise UsageError(
            "exact=False is for variant='paper': how the authors' labels are drawn is theirs"
        )
    return variant == "authors"
