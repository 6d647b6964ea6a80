"""Where the channels of an array of images are: the one place that infers it."""

from __future__ import annotations

from collections.abc import Sequence

_CHANNELS = (1, 3)  # grey and colour


def layout_of(shape: Sequence[int]) -> str | None:
    """``NCHW`` or ``NHWC``, by which dimension has as many entries as images have channels.

    None where both have, or neither; of images of one pixel both layouts are the same.

    >>> layout_of((5, 3, 32, 32)), layout_of((5, 28, 28, 1)), layout_of((5, 3, 8, 3))
    ('NCHW', 'NHWC', None)
    """
    _, first, _, last = shape
    if (first in _CHANNELS) != (last in _CHANNELS):
        return "NCHW" if first in _CHANNELS else "NHWC"
    return "NCHW" if tuple(shape[1:]) == (1, 1, 1) else None
