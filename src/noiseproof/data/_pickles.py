"""Pickles read as data.

A pickle names functions and has them called. Here every name that a published file has cause to use
stands for a class of our own, and no other name is looked up.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ._errors import DamagedFileError
from ._idx import read_bytes


def _text(value: Any) -> str:
    """Text that Python 2 wrote arrives as bytes."""
    return value.decode("ascii") if isinstance(value, bytes) else str(value)


class _Dtype:
    """Stands for numpy.dtype: plain numbers only."""

    def __init__(self, code: Any, align: Any = False, copy: Any = False) -> None:
        self.dtype: np.dtype[Any] = np.dtype(_text(code))
        if self.dtype.kind not in "biuf" or self.dtype.fields is not None:
            raise pickle.UnpicklingError(f"its arrays are of type {self.dtype}, not numbers")

    def __setstate__(self, state: Any) -> None:
        order = _text(state[1])
        if order in "<>":
            self.dtype = self.dtype.newbyteorder(order)  # type: ignore[arg-type]


class _Array:
    """Stands for numpy.ndarray and for the function that pickles begin one with."""

    def __init__(self, *_: Any) -> None:
        self.array: NDArray[Any] = np.empty(0)

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, content = state
        if not (isinstance(dtype, _Dtype) and isinstance(content, bytes)):
            raise pickle.UnpicklingError("an array in it is not made of bytes")
        array = np.frombuffer(content, dtype.dtype)
        self.array = array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


class _Scalar(_Array):
    """Stands for the function that makes NumPy's own numbers."""

    def __init__(self, dtype: Any, content: Any) -> None:
        self.__setstate__((1, (), dtype, False, content))


def _encode(text: str, encoding: Any = "latin1") -> bytes:
    """Stands for codecs.encode, with which Python 3 writes bytes for Python 2."""
    if _text(encoding) != "latin1":
        raise pickle.UnpicklingError(f"its bytes are encoded as {encoding!r}, not as latin1")
    return text.encode("latin1")


_ADMITTED: dict[str, Any] = {
    "numpy.ndarray": _Array,
    "numpy.dtype": _Dtype,
    "_codecs.encode": _encode,
    **{f"numpy.{core}.multiarray._reconstruct": _Array for core in ("core", "_core")},
    **{f"numpy.{core}.multiarray.scalar": _Scalar for core in ("core", "_core")},
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ADMITTED[f"{module}.{name}"]
        except KeyError:
            raise pickle.UnpicklingError(
                f"it asks to run {module}.{name}, which was not run"
            ) from None


def read_pickle(path: Path) -> dict[str, Any]:
    """The dictionary in a pickle of arrays, numbers and text, whichever Python wrote it."""
    content = io.BytesIO(read_bytes(path))
    try:
        return _plain(_Unpickler(content, encoding="bytes").load())
    except Exception as error:  # a damaged pickle can raise anything
        raise DamagedFileError(path, _problem(error, "pickle")) from None


def read_pt(path: Path) -> dict[str, Any]:
    """The dictionary in a file that ``torch.save`` wrote, of arrays and tensors."""
    content = io.BytesIO(read_bytes(path))
    admitted: list[Any] = [(stand_in, name) for name, stand_in in _ADMITTED.items()]
    try:
        with torch.serialization.safe_globals(admitted):
            return _plain(torch.load(content, map_location="cpu", weights_only=True))
    except Exception as error:  # a damaged file can raise anything
        raise DamagedFileError(path, _problem(error, "file of torch.save")) from None


def _plain(content: Any) -> dict[str, Any]:
    """Stand-ins replaced by what they stand for, and keys by text."""
    if not isinstance(content, dict):
        raise pickle.UnpicklingError(f"it holds a {type(content).__name__}, not a dictionary")
    return {_text(k): v.array if isinstance(v, _Array) else v for k, v in content.items()}


def _problem(error: Exception, kind: str) -> str:
    said = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    if isinstance(error, pickle.UnpicklingError) and said.startswith("it"):
        return said
    return f"it is no {kind} that can be read ({said[:120]})"
