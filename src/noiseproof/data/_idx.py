"""The idx files of MNIST and Fashion-MNIST: a magic number, the shape, the bytes."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ._contents import read_bytes
from ._errors import DamagedFileError


def read_idx(path: Path, expected: tuple[int, ...]) -> NDArray[np.uint8]:
    """The array of an idx file of unsigned bytes, compressed or not.

    Args:
        path: the file.
        expected: the shape that was published. No more is read than such a file holds, and the
            number of dimensions is checked; the shape is left to the caller.
    """
    start = 4 + 4 * len(expected)
    content = read_bytes(path, start + math.prod(expected))
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise DamagedFileError(path, f"it begins with {content[:3].hex()}, an idx file with 000008")
    if content[3] != len(expected):
        raise DamagedFileError(path, f"it has {content[3]} dimensions, not {len(expected)}")
    if len(content) < start:
        raise DamagedFileError(path, f"it ends within its header, after {len(content)} bytes")
    shape: tuple[int, ...] = struct.unpack(f">{len(expected)}I", content[4:start])
    if len(content) - start != math.prod(shape):
        said = " x ".join(map(str, shape))
        raise DamagedFileError(path, f"{len(content) - start} bytes follow its header, not {said}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
