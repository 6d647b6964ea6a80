"""What a caller may have set in torch for code of his own, and ours is not written for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def usual_torch() -> Iterator[None]:
    """Gradients are taken, and what has no other type is float32, whatever the caller has set."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.inference_mode(False):  # which ends no_grad too
            yield
    finally:
        torch.set_default_dtype(before)
