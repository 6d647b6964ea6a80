"""The next batch of a uint8 buffer, normalized, in one kernel."""

from __future__ import annotations

import torch
from torch import Tensor

_BLOCK = 1024


def normalized_batch(
    pixels: Tensor, start: Tensor, size: int, scale: Tensor, shift: Tensor, dtype: torch.dtype,
    channels: int,
) -> Tensor:  # fmt: skip
    """``pixels[start : start + size] * scale + shift``, padded with zero channels.

    Args:
        pixels: uint8 [N, C, H, W], channels last in memory.
        start: the index of the first image, an int64 tensor of one element. It is a tensor so that
            a captured CUDA graph can be replayed for the next batch.
        size: the number of images.
        scale: float32, one number for each of the C channels.
        shift: float32, one number for each of the C channels.
        dtype: of the result.
        channels: of the result, at least C; those after the first C are zeros.

    Returns:
        [size, channels, H, W], channels last in memory.
    """
    from . import _batch_kernels as kernels

    _, in_channels, height, width = pixels.shape
    out = torch.empty(
        (size, channels, height, width), dtype=dtype, device=pixels.device,
        memory_format=torch.channels_last,
    )  # fmt: skip
    num_elements = out.numel()
    kernels.normalized_batch[(-(-num_elements // _BLOCK),)](
        pixels, start, scale, shift, out, num_elements, height * width, in_channels,
        OUT_CHANNELS=channels, BLOCK=_BLOCK,
    )  # fmt: skip
    return out
