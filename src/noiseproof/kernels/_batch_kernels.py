"""The kernel of :func:`noiseproof.kernels.normalized_batch`."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def normalized_batch(
    pixels, start, scale, shift, out, num_elements, pixels_per_image, in_channels,
    OUT_CHANNELS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One block of ``pixels[start:] * scale + shift``, padded with zero channels.

    Args:
        pixels: [N, H, W, in_channels], uint8, contiguous: the images to choose from.
        start: [1], int64: the index of the first image.
        scale: [in_channels], float32.
        shift: [in_channels], float32.
        out: [images, H, W, OUT_CHANNELS], compute dtype, contiguous: written.
        num_elements: of ``out``.
        pixels_per_image: H * W.
        in_channels: of ``pixels``.
        OUT_CHANNELS: of ``out``, at least ``in_channels``.
        BLOCK: elements of ``out`` for each program.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = at % OUT_CHANNELS
    pixel = (at // OUT_CHANNELS).to(tl.int64) + tl.load(start) * pixels_per_image
    valid = (at < num_elements) & (c < in_channels)
    x = tl.load(pixels + pixel * in_channels + c, valid, 0).to(tl.float32)
    x = x * tl.load(scale + c, valid, 0.0) + tl.load(shift + c, valid, 0.0)
    tl.store(out + at, tl.where(valid, x, 0.0).to(out.dtype.element_ty), at < num_elements)
