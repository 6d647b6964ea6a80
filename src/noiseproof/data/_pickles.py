"""Read pickles without running code from them.

A pickle names functions that the reader calls. Here the few names that the published files need are
replaced by harmless stand-ins, and any other name is refused.
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
    """A string; Python 2 wrote strings as bytes."""
    return value.decode("ascii") if isinstance(value, bytes) else str(value)


class _Dtype:
    """Stand-in for numpy.dtype, of numbers only."""

    def __init__(self, code: Any, align: Any = False, copy: Any = False) -> None:
        self.dtype: np.dtype[Any] = np.dtype(_text(code))
        if self.dtype.kind not in "biuf" or self.dtype.fields is not None:
            raise pickle.UnpicklingError(f"its arrays are of type {self.dtype}, not numbers")

    def __setstate__(self, state: Any) -> None:
        order = _text(state[1])
        if order in "<>":
            self.dtype = self.dtype.newbyteorder(order)  # type: ignore[arg-type]


class _Array:
    """Stand-in for numpy.ndarray and for ``_reconstruct``, which creates one."""

    def __init__(self, *_: Any) -> None:
        self.array: NDArray[Any] = np.empty(0)

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, content = state
        if not (isinstance(dtype, _Dtype) and isinstance(content, bytes)):
            raise pickle.UnpicklingError("an array in it is not made of bytes")
        array = np.frombuffer(content, dtype.dtype)
        self.array = array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


class _Scalar(_Array):
    """Stand-in for ``scalar``, which creates NumPy's numbers."""

    def __init__(self, dtype: Any, content: Any) -> None:
        self.__setstate__((1, (), dtype, False, content))


def _encode(text: str, encoding: Any = "latin1") -> bytes:
    """Stand-in for codecs.encode, with which Python 3 writes bytes for Python 2."""
    if _text(encoding) != "latin1":
        raise pickle.UnpicklingError(f"its bytes are encoded as {encoding!r}, not as latin1")
    return text.encode("latin1")


_ALLOWED: dict[str, Any] = {
    "numpy.ndarray": _Array,
    "numpy.dtype": _Dtype,
    "_codecs.encode": _encode,
    **{f"numpy.{core}.multiarray._reconstruct": _Array for core in ("core", "_core")},
    **{f"numpy.{core}.multiarray.scalar": _Scalar for core in ("core", "_core")},
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[f"{module}.{name}"]
        except KeyError:
            raise pickle.UnpicklingError(
                f"it asks to run {module}.{name}, which was not run"
            ) from None


def read_pickle(path: Path) -> dict[str, Any]:
    """The dictionary in a pickle of arrays, numbers and strings, of Python 2 or 3."""
    content = io.BytesIO(read_bytes(path))
    try:
        return _unwrap(_Unpickler(content, encoding="bytes").load())
    except Exception as error:  # a damaged pickle can raise anything
        raise DamagedFileError(path, _problem(error, "pickle")) from None


def read_pt(path: Path) -> dict[str, Any]:
    """The dictionary of arrays and tensors in a file of ``torch.save``."""
    content = io.BytesIO(read_bytes(path))
    allowed: list[Any] = [(stand_in, name) for name, stand_in in _ALLOWED.items()]
    try:
        with torch.serialization.safe_globals(allowed):
            return _unwrap(torch.load(content, map_location="cpu", weights_only=True))
    except Exception as error:  # a damaged file can raise anything
        raise DamagedFileError(path, _problem(error, "file of torch.save")) from None


def _unwrap(content: Any) -> dict[str, Any]:
    """Replace stand-ins by arrays, and keys by strings."""
    if not isinstance(content, dict):
        raise pickle.UnpicklingError(f"it holds a {type(content).__name__}, not a dictionary")
    return {_text(k): v.array if isinstance(v, _Array) else v for k, v in content.items()}


def _problem(error: Exception, file_type: str) -> str:
    message = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    if isinstance(error, pickle.UnpicklingError) and message.startswith("it"):
        return message
    return f"it is no {file_type} that can be read ({message[:120]})"
