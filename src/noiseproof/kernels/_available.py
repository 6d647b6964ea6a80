"""Where the kernels can run."""

from __future__ import annotations

import functools
import importlib.util

from torch import Tensor


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def available(tensor: Tensor) -> bool:
    """Whether the kernels can run on this tensor: it is on a GPU, and Triton is installed."""
    return tensor.is_cuda and _has_triton()
