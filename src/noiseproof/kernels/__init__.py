"""Fused GPU kernels in Triton, which comes with torch for CUDA.

Each computes what a few lines of plain PyTorch beside it do, and tests hold the two together.
"""

from ._available import available
from ._norm import norm_relu
from ._sgd import sgd
from ._take import take

__all__ = ["available", "norm_relu", "sgd", "take"]
