"""The idx files of MNIST and Fashion-MNIST: a magic number, the shape, the bytes."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import DamagedFileError


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array of an idx file of unsigned bytes, compressed or not."""
    content = read_bytes(path)
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise DamagedFileError(path, f"it does not decompress ({error})") from None
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise DamagedFileError(path, f"it begins with {content[:3].hex()}, an idx file with 000008")
    dimensions = content[3]
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise DamagedFileError(path, f"it ends within its header, after {len(content)} bytes")
    shape: tuple[int, ...] = struct.unpack(f">{dimensions}I", content[4:start])
    if len(content) - start != math.prod(shape):
        expected = " x ".join(map(str, shape))
        raise DamagedFileError(
            path, f"{len(content) - start} bytes follow its header, not {expected}"
        )
    array: NDArray[Any] = np.frombuffer(content, np.uint8, offset=start)
    return array.reshape(shape)


def read_bytes(path: Path) -> bytes:
    """The content of a file; one that cannot be read counts as damaged."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DamagedFileError(path, f"it cannot be read ({error.strerror})") from None
