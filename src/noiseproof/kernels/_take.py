"""The next batch of a uint8 buffer, normalised, in one kernel."""

from __future__ import annotations

import torch
from torch import Tensor


def take(
    pixels: Tensor, place: Tensor, size: int, scale: Tensor, shift: Tensor, dtype: torch.dtype,
    channels: int,
) -> Tensor:  # fmt: skip
    """``pixels[place : place + size] * scale + shift``, with channels of zeros up to ``channels``.

    Args:
        pixels: uint8 [N, C, H, W], channels last in memory.
        place: where to start, a tensor, so that a captured graph can move on.
        size: how many images.
        scale: of each channel.
        shift: of each channel.
        dtype: of the result.
        channels: how many the result has, at least C.
    """
    from . import _take_kernels as kernels

    _, real, height, width = pixels.shape
    out = torch.empty(
        (size, channels, height, width), dtype=dtype, device=pixels.device,
        memory_format=torch.channels_last,
    )  # fmt: skip
    total, block = out.numel(), 1024
    kernels.take[(-(-total // block),)](
        pixels, place, scale, shift, out, total, height * width, real,
        CHANNELS=channels, BLOCK=block,
    )  # fmt: skip
    return out
