from __future__ import annotations

import warnings

import pytest
import torch


@pytest.fixture(scope="session")
def kernel_device() -> torch.device:
    """Where kernels run: a GPU, or Triton's interpreter on the CPU."""
    pytest.importorskip("triton")
    if not torch.cuda.is_available():
        return torch.device("cpu")
    with warnings.catch_warnings():  # a process's first backward pass may remark
        warnings.simplefilter("ignore")
        start = torch.ones(8, 8, device="cuda", requires_grad=True)
        (start @ start).sum().backward()
    return torch.device("cuda")
