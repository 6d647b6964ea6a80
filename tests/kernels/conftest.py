from __future__ import annotations

import os

import pytest
import torch


@pytest.fixture(scope="session")
def place() -> torch.device:
    """Where kernels run: a GPU, or Triton's interpreter on the CPU."""
    pytest.importorskip("triton")
    if torch.cuda.is_available():
        return torch.device("cuda")
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("no GPU, and TRITON_INTERPRET=1 was not set before Triton was imported")
    return torch.device("cpu")
