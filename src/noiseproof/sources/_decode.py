"""An image file as uint8 pixels: decoded, turned upright, brought to one size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._errors import require
from ._folders import MODES

# So many times the side that is asked for is enough to decode: libjpeg leaves out what is finer,
# which is faster (benchmarks/decoders.py) and moves a pixel by less than 1 of 255 on average.
_DRAFT = 2


class UnreadableError(Exception):
    """An image that cannot be read; the message says why."""


def read_image(file: Path | str, shape: Sequence[int]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """An image [H, W, C], its shorter side brought to size and the middle of the longer one kept.

    Raises:
        UnreadableError: it is missing, damaged, or holds more than 8 bits a channel.
    """
    pillow = require("PIL.Image", "images", "an image file")
    ops = require("PIL.ImageOps", "images", "an image file")
    channels, height, width = shape
    try:
        with pillow.open(file) as opened:
            if opened.mode not in MODES:
                raise UnreadableError(
                    f"an image of mode {opened.mode}; save it with 8 bits a channel, grey or RGB"
                )
            opened.draft(None, (_DRAFT * max(height, width),) * 2)  # it may yet be turned
            upright = ops.exif_transpose(opened).convert("L" if channels == 1 else "RGB")
        if upright.size != (width, height):
            upright = ops.fit(upright, (width, height), pillow.Resampling.BILINEAR)
        pixels = np.asarray(upright, np.uint8)
    except FileNotFoundError:
        raise UnreadableError("there is no such file") from None
    except pillow.UnidentifiedImageError:
        raise UnreadableError("no image") from None
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        raise UnreadableError(f"a damaged image ({str(error).splitlines()[0]:.100})") from None
    return pixels[:, :, None] if channels == 1 else pixels
