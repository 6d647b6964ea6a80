"""An image as a PNG file, without a library for images."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray


def png(image: NDArray[np.uint8]) -> bytes:
    """An image [H, W, C], grey or colour, as a PNG file."""
    height, width, channels = image.shape
    rows = b"".join(b"\0" + row.tobytes() for row in image)  # each with its filter: none
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content
        + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )  # fmt: skip
