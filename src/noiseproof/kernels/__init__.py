"""Fused GPU kernels in Triton, which comes with torch for CUDA.

Each computes the same as a few lines of plain PyTorch, and the tests compare the two.
"""

from ._adamw import adamw
from ._available import available
from ._batch import normalized_batch
from ._norm import norm_relu
from ._sgd import sgd

__all__ = ["adamw", "available", "norm_relu", "normalized_batch", "sgd"]
