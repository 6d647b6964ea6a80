"""Torch as it comes, whatever a caller has set in it for code of his own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def usual_torch() -> Iterator[None]:
    """Gradients are taken, and what is made without a type or device is float32 on the CPU."""
    before = torch.get_default_dtype()
    there = torch.get_default_device().type == "cpu"  # to say it costs each call a little
    on_cpu = contextlib.nullcontext() if there else torch.device("cpu")
    torch.set_default_dtype(torch.float32)
    try:
        with torch.inference_mode(False), on_cpu:  # the first of which ends no_grad too
            yield
    finally:
        torch.set_default_dtype(before)
