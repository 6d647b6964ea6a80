"""The files of ``torch.save``: a pickle and the bytes of its tensors, in a zip archive."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ._contents import read_bytes
from ._pickles import Array, Function, RefusedError, damaged, unpickle

_MAX_FILES = 100  # in the archive; one for each tensor, and a few more
_INTEGERS = {"Byte": "u1", "Char": "i1", "Short": "<i2", "Int": "<i4", "Long": "<i8"}


def read_pt(path: Path, max_bytes: int, max_values: int) -> dict[str, Any]:
    """The dictionary of arrays and tensors of integers in a file of ``torch.save``.

    Args:
        path: the file.
        max_bytes: that it may hold.
        max_values: numbers that its lists may hold.
    """
    content = read_bytes(path, max_bytes)
    try:
        archive = _Archive(content)
        return unpickle(archive.read("data.pkl"), max_values, _FUNCTIONS, archive.storage)
    except Exception as error:  # a damaged file can raise anything
        raise damaged(path, "file of torch.save", error) from None


class _Archive:
    """A zip archive of files that are not compressed, all of them no larger than it is."""

    def __init__(self, content: bytes) -> None:
        if (count := content.count(b"PK\x01\x02")) > _MAX_FILES:  # each begins an entry of the list
            raise RefusedError(f"it holds {count} files, which was not published")
        self.zip = zipfile.ZipFile(io.BytesIO(content))
        names = self.zip.namelist()
        self.folder = next(
            (n.removesuffix("data.pkl") for n in names if n.endswith("data.pkl")), ""
        )
        self.bytes_left = len(content)  # entries can overlap
        self.found: dict[str, bytes] = {}

    def read(self, name: str) -> bytes:
        if name not in self.found:
            info = self.zip.getinfo(self.folder + name)
            if info.compress_type != zipfile.ZIP_STORED:
                raise RefusedError("it is compressed, which torch.save does not do")
            self.bytes_left -= info.file_size
            if self.bytes_left < 0:
                raise RefusedError("it makes more bytes than it has, which was not published")
            self.found[name] = self.zip.read(info)
        return self.found[name]

    def storage(self, persistent_id: tuple[Any, ...]) -> Array:
        """The content of a storage, of which the third item of the id is the name."""
        kind = persistent_id[1]
        if not (isinstance(kind, Function) and isinstance(kind.call, _StorageType)):
            raise RefusedError("a storage in it is not one of integers")
        array = Array()
        array.array = np.frombuffer(self.read(f"data/{persistent_id[2]}"), kind.call.dtype)
        return array


class _StorageType:
    """Stand-in for torch.LongStorage and its like, which are named and not called."""

    def __init__(self, dtype: str) -> None:
        self.dtype = np.dtype(dtype)

    def __call__(self, *_: Any) -> None:
        raise RefusedError("it makes a storage, which was not published")


def _rebuild_tensor(storage: Array, offset: int, size: Any, stride: Any, *_: Any) -> Array:
    """Stand-in for ``torch._utils._rebuild_tensor_v2``, of tensors that are contiguous."""
    if stride != tuple(math.prod(size[i + 1 :]) for i in range(len(size))):
        raise RefusedError("a tensor in it is not contiguous")
    array = Array()
    array.array = storage.array[offset : offset + math.prod(size)].reshape(size)
    return array


def _ordered_dict() -> None:
    """Stand-in for collections.OrderedDict: a tensor has one, of hooks, and it is empty."""


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor,
    "collections.OrderedDict": _ordered_dict,
    **{f"torch.{name}Storage": _StorageType(dtype) for name, dtype in _INTEGERS.items()},
}
