"""Image files as one uint8 tensor: decoded, turned upright, brought to one size."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._errors import UsageError, require
from ..sources import Problems
from ..sources._folders import MODES


def decode(
    files: Sequence[Path], shape: Sequence[int], places: Sequence[str], problems: Problems
) -> tuple[Tensor, list[int]]:
    """Images [N, C, H, W], and the indices of the files that they come from.

    Args:
        files: of the images.
        shape: channels, height and width.
        places: what to call each in a message.
        problems: where those are reported that cannot be read.
    """
    require("PIL.Image", "images", "an image file")
    channels, height, width = shape
    images = np.empty((len(files), height, width, channels), np.uint8)

    def read(at: int) -> str | None:
        try:
            images[at] = read_image(files[at], shape)
        except UnreadableError as error:
            return str(error)
        return None

    with concurrent.futures.ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        found = list(pool.map(read, range(len(files))))
    kept = [at for at, problem in enumerate(found) if problem is None]
    for at, problem in enumerate(found):
        if problem is not None:
            named = places[at] if str(files[at]) in places[at] else f"{places[at]} ({files[at]})"
            problems.add(named, problem)
    if not kept:
        raise UsageError(f"none of {len(files)} images can be read")
    chosen = images if len(kept) == len(files) else images[kept]
    return torch.from_numpy(chosen).permute(0, 3, 1, 2).contiguous(), kept


class UnreadableError(Exception):
    """An image that cannot be read; the message says why."""


def read_image(file: Path, shape: Sequence[int]) -> np.ndarray[Any, np.dtype[np.uint8]]:
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
