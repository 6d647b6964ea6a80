from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def take(
    pixels, place, scale, shift, out, total, area, real,
    CHANNELS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = at % CHANNELS
    pixel = (at // CHANNELS).to(tl.int64) + tl.load(place) * area
    valid = (at < total) & (c < real)
    x = tl.load(pixels + pixel * real + c, valid, 0).to(tl.float32)
    x = x * tl.load(scale + c, valid, 0.0) + tl.load(shift + c, valid, 0.0)
    tl.store(out + at, tl.where(valid, x, 0.0).to(out.dtype.element_ty), at < total)
