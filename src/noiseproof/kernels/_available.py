from __future__ import annotations

import functools
import importlib.util

from torch import Tensor


@functools.cache
def _installed() -> bool:
    return importlib.util.find_spec("triton") is not None


def available(tensor: Tensor) -> bool:
    """Whether kernels can work on this tensor: it is on a GPU, and there is Triton."""
    return tensor.is_cuda and _installed()
