from __future__ import annotations

import pytest
import torch


@pytest.fixture(scope="session")
def place() -> torch.device:
    """Where kernels run: a GPU, or Triton's interpreter on the CPU."""
    pytest.importorskip("triton")
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
