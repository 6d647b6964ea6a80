"""What comes in: labels, rates, seeds and matrices, each checked here once.

A NumPy array comes back as a NumPy array and a tensor as a tensor, of the same type and on the same
device. torch is not imported: who gives a tensor has it already.
"""

from __future__ import annotations

import numbers
import sys
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ._stream import Floats, Integers

Labels: TypeAlias = Any
"""A NumPy array or a torch tensor of integers, [N]; a list is taken as a NumPy array."""

_TOLERANCE = 1e-5  # of the sums of rows: a float32 matrix of 1,000 classes is within it


@dataclass(frozen=True)
class Given:
    """Labels as int64, and how to give others back in the kind that these came in."""

    values: Integers
    dtype: np.dtype[Any]
    device: Any = None  # of a tensor; None for NumPy

    def back(self, values: Integers) -> Labels:
        return self._kind(values.astype(self.dtype))

    def back_mask(self, mask: NDArray[np.bool_]) -> Any:
        return self._kind(mask)

    def _kind(self, array: NDArray[Any]) -> Any:
        if self.device is None:
            return array
        return sys.modules["torch"].from_numpy(array).to(self.device)


def is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_array(value: Any) -> NDArray[Any]:
    """A tensor's values, on the CPU, or whatever NumPy makes of anything else."""
    if is_tensor(value):
        value = value.detach().cpu()
        if value.is_floating_point() and value.element_size() < 4:
            value = value.float()  # NumPy has no bfloat16
        return np.asarray(value.numpy())
    return np.asarray(value)


def take_labels(labels: Labels, name: str = "labels") -> Given:
    """Labels of the user's, checked for all but the number of classes."""
    array = as_array(labels)
    device = labels.device if is_tensor(labels) else None
    if array.size == 0 and not hasattr(labels, "dtype"):
        array = array.astype(np.int64)  # an empty list has no type of its own
    if array.ndim != 1:
        hot = f"; if that is one-hot, give {name}.argmax(1)" if array.ndim == 2 else ""
        raise ValueError(
            f"{name} must be [N], one class a sample; their shape was {list(array.shape)}{hot}"
        )
    if array.dtype.kind not in "iu":
        remedy = ".long()" if device is not None else ".astype(int)"
        shown = labels.dtype if hasattr(labels, "dtype") else array.dtype
        raise TypeError(
            f"{name} must be integers, the classes from 0; they were {shown}: "
            f"if they are whole numbers, give {name}{remedy}"
        )
    if array.size and array.min() < 0:
        raise ValueError(
            f"{name} must be classes from 0; the smallest was {array.min()}: "
            f"leave unlabelled samples out first"
        )
    if array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must be classes from 0; the largest was {array.max()}")
    return Given(array.astype(np.int64), array.dtype, device)


def take_classes(given: Given, num_classes: int | None, *, source: str = "num_classes") -> int:
    """The number of classes: as said, else the largest label and one."""
    largest = int(given.values.max()) if given.values.size else -1
    if num_classes is None:
        if largest < 1:
            what = "there are no labels" if largest < 0 else "every label is 0"
            raise ValueError(f"the number of classes cannot be seen, {what}: give num_classes")
        return largest + 1
    if not isinstance(num_classes, numbers.Integral) or isinstance(num_classes, bool):
        raise TypeError(f"num_classes must be a whole number; it was {num_classes!r}")
    count = int(num_classes)
    if count < 2:
        raise ValueError(f"{source} must be at least 2 for a label to be wrong; it was {count}")
    if largest >= count:
        raise ValueError(
            f"a label is {largest}, and {source} = {count} allows 0 to {count - 1}: "
            f"give at least {largest + 1} classes, or other labels"
        )
    if count - 1 > np.iinfo(given.dtype).max:
        raise ValueError(
            f"labels of type {given.dtype} cannot hold class {count - 1}: "
            f"give them as int64, which the noisy ones then have too"
        )
    return count


def take_rate(rate: float) -> float:
    if not isinstance(rate, numbers.Real) or isinstance(rate, bool):
        raise TypeError(f"rate must be a number from 0 to 1; it was {rate!r}")
    if not 0 <= rate <= 1:
        percent = f": for {rate:g} %, give {rate / 100:g}" if 1 < rate <= 100 else ""
        raise ValueError(f"rate must be from 0 to 1; it was {rate}{percent}")
    return float(rate)


def take_seed(seed: int, bits: int = 64) -> int:
    if not isinstance(seed, numbers.Integral) or isinstance(seed, bool):
        raise TypeError(f"seed must be a whole number; it was {seed!r}")
    if not 0 <= seed < 2**bits:
        raise ValueError(f"seed must be from 0 to 2^{bits} - 1; it was {seed}")
    return int(seed)


def take_matrix(T: Any) -> Floats:
    """A transition matrix in float64, each row divided by its sum."""
    array = as_array(T)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"T must be numbers, [K, K]; it was {array.dtype}")
    if array.ndim != 2 or array.shape[0] != array.shape[1] or len(array) < 2:
        raise ValueError(
            f"T must be square, [K, K] with K at least 2, T[i, j] the probability that class i is "
            f"given as j; its shape was {list(array.shape)}"
        )
    matrix = array.astype(np.float64)
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise ValueError("T must be finite and not negative: its entries are probabilities")
    sums = matrix.cumsum(1)[:, -1]  # added in order, so that every machine has the same last digit
    off = int(np.abs(sums - 1).argmax())
    if abs(sums[off] - 1) > _TOLERANCE:
        by_column = np.allclose(matrix.sum(0), 1, atol=_TOLERANCE)
        remedy = "its columns do: give T.T" if by_column else "divide each row by its sum"
        raise ValueError(
            f"each row of T must sum to 1; row {off} sums to {sums[off]:.6g}: {remedy}"
        )
    matrix /= sums[:, None]
    return matrix


def take_variant(variant: str, exact: bool = True) -> bool:
    """Whether the authors' own labels are asked for."""
    if variant not in ("paper", "authors"):
        raise ValueError(f"variant must be 'paper' or 'authors'; it was {variant!r}")
    if variant == "authors" and not exact:
        raise ValueError(
            "exact=False is for variant='paper': how the authors' labels are drawn is theirs"
        )
    return variant == "authors"
