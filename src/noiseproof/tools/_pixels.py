"""An image of any layout, made small, as a PNG file for the page."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _png
from .._errors import UsageError

_MAX_SIDE = 256  # pixels: of larger images every second, third, ... pixel is kept


def png(image: NDArray[Any]) -> bytes:
    """An image, uint8 [H, W], [H, W, C] or [C, H, W] of 1 or 3 channels, as a PNG file."""
    if image.ndim == 2:
        image = image[:, :, None]
    if image.ndim == 3 and image.shape[2] not in (1, 3) and image.shape[0] in (1, 3):
        image = image.transpose(1, 2, 0)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in (1, 3):
        raise UsageError(
            f"an image for the page is uint8 [H, W] or [H, W, C]; it was {image.dtype} "
            f"{list(image.shape)}"
        )
    step = -(-max(image.shape[:2]) // _MAX_SIDE)
    return _png.png(np.ascontiguousarray(image[::step, ::step]))
