"""Read pickles without running code from them, and in memory that their size bounds.

A pickle is a program for a stack machine. Python's own machine calls any function that a pickle
names, and a few hundred bytes can make it take all memory, or crash. The machine here knows only
what the published files are made of: a dictionary of arrays, numbers, texts, and lists of numbers
and texts. Functions are replaced by harmless stand-ins, and everything else is refused.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._contents import read_bytes
from ._errors import DamagedFileError

_PLAIN = frozenset((int, bool, float, str, bytes, type(None)))
_CONTAINERS = (tuple, list, dict)
_LONGEST_TUPLE = 16  # the state of an array has 5 items, that of a type 8


class RefusedError(Exception):
    """What a file asks for, which published files do not: a sentence about it."""


def read_pickle(path: Path, max_bytes: int, max_values: int) -> dict[str, Any]:
    """The dictionary in a pickle of arrays, numbers and strings, of Python 2 or 3.

    Args:
        path: the file.
        max_bytes: that it may hold.
        max_values: numbers and texts that its lists may hold.
    """
    content = read_bytes(path, max_bytes)
    try:
        return unpickle(content, max_values)
    except Exception as error:  # a damaged pickle can raise anything
        raise damaged(path, "pickle", error) from None


def unpickle(
    content: bytes,
    max_values: int,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    storage: Callable[[Any], Any] | None = None,
) -> dict[str, Any]:
    """The dictionary that a pickle makes, with arrays in place of stand-ins.

    Args:
        content: the pickle.
        max_values: numbers and texts that its lists may hold.
        functions: more stand-ins, by the names that they replace.
        storage: what gives the object of a persistent id, for files of torch.
    """
    # A list of texts takes three opcodes a text in the oldest protocol.
    machine = _Machine(len(content), 1000 + 16 * max_values, functions or {}, storage)
    found = machine.run(content)
    if not isinstance(found, dict):
        raise RefusedError(f"it holds a {type(found).__name__}, not a dictionary")
    return {_text(k): v.array if isinstance(v, Array) else v for k, v in found.items()}


def damaged(path: Path, file_type: str, error: Exception) -> DamagedFileError:
    """The error of a file of which reading ended in ``error``."""
    if isinstance(error, RefusedError):
        return DamagedFileError(path, str(error))
    why = printable(str(error).strip().split("\n")[0]) or type(error).__name__
    return DamagedFileError(path, f"it is no {file_type} that can be read ({why})")


def printable(text: str) -> str:
    """A text from a file, for a message: no longer than a line, and without control characters."""
    return text[:80].encode("unicode_escape").decode()


def _text(value: Any) -> str:
    """A string; Python 2 wrote strings as bytes."""
    if not isinstance(value, str | bytes):
        raise RefusedError(f"a name in it is a {type(value).__name__}, not a text")
    return value.decode("ascii") if isinstance(value, bytes) else value


class _Dtype:
    """Stand-in for numpy.dtype, of numbers only."""

    def __init__(self, code: Any, align: Any = False, copy: Any = False) -> None:
        name = _text(code)
        if len(name) > 8 or (dtype := np.dtype(name)).kind not in "biuf":
            raise RefusedError(f"its arrays are of type {printable(name)}, not numbers")
        self.dtype: np.dtype[Any] = dtype

    def __setstate__(self, state: Any) -> None:
        order = _text(state[1])
        if order in ("<", ">"):
            self.dtype = self.dtype.newbyteorder(order)  # type: ignore[arg-type]


class Array:
    """Stand-in for numpy.ndarray and for ``_reconstruct``, which creates one."""

    def __init__(self, *_: Any) -> None:
        self.array: NDArray[Any] = np.empty(0)

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, content = state
        if not (isinstance(dtype, _Dtype) and isinstance(content, bytes)):
            raise RefusedError("an array in it is not made of bytes")
        array = np.frombuffer(content, dtype.dtype)
        self.array = array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


class _Scalar(Array):
    """Stand-in for ``scalar``, which creates NumPy's numbers."""

    def __init__(self, dtype: Any, content: Any) -> None:
        self.__setstate__((1, (), dtype, False, content))


def _encode(text: str, encoding: Any = "latin1") -> bytes:
    """Stand-in for codecs.encode, with which Python 3 writes bytes for Python 2."""
    if _text(encoding) != "latin1":
        raise RefusedError(f"its bytes are encoded as {printable(_text(encoding))}, not as latin1")
    return text.encode("latin1")


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "numpy.ndarray": Array,
    "numpy.dtype": _Dtype,
    "_codecs.encode": _encode,
    **{f"numpy.{core}.multiarray._reconstruct": Array for core in ("core", "_core")},
    **{f"numpy.{core}.multiarray.scalar": _Scalar for core in ("core", "_core")},
}


class Function:
    """A stand-in on the stack: the one thing that can be called."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call


class _Machine:
    """The stack machine that a pickle is a program for.

    Lists hold plain values alone, dictionaries no dictionaries, and tuples tuples of plain values
    at most. So nothing is nested deeply, and no value is met often by being within others.
    """

    def __init__(
        self,
        max_bytes: int,
        max_opcodes: int,
        functions: Mapping[str, Callable[..., Any]],
        storage: Callable[[Any], Any] | None,
    ) -> None:
        self.bytes_left = (
            max_bytes  # that calls may make; text that is written once becomes no more
        )
        self.max_opcodes = max_opcodes
        self.functions = {**_FUNCTIONS, **functions}
        self.storage = storage
        self.stack: list[Any] = []
        self.marks: list[int] = []  # heights of the stack
        self.memo: dict[int, Any] = {}

    def run(self, content: bytes) -> Any:
        for number, (opcode, argument, _) in enumerate(pickletools.genops(content)):
            if number == self.max_opcodes:
                raise RefusedError(f"it has more than {number:,} opcodes, which was not published")
            step = _OPCODES.get(opcode.name)
            if step is None:
                raise RefusedError(f"it has the opcode {opcode.name}, which was not published")
            step(self, argument)
        return self.stack.pop()

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def push_string(self, value: str) -> None:  # of Python 2, decoded by pickletools
        self.stack.append(value.encode("latin1"))

    def mark(self, _: None) -> None:
        self.marks.append(len(self.stack))

    def pop_items(self) -> list[Any]:
        """What was pushed since the last mark."""
        height = self.marks.pop()
        items = self.stack[height:]
        del self.stack[height:]
        return items

    def memoize(self, index: int | None) -> None:
        self.memo[len(self.memo) if index is None else index] = self.stack[-1]

    def recall(self, index: int) -> None:
        self.stack.append(self.memo[index])

    def push_tuple(self, items: list[Any]) -> None:
        if len(items) > _LONGEST_TUPLE:
            raise RefusedError(f"a tuple in it has {len(items)} items, which was not published")
        for item in items:
            if isinstance(item, list | dict) or (
                isinstance(item, tuple) and any(isinstance(i, _CONTAINERS) for i in item)
            ):
                raise RefusedError("a tuple in it is nested as none was published")
        self.stack.append(tuple(items))

    def tuple_of(self, count: int) -> None:
        items = [self.stack.pop() for _ in range(count)]
        self.push_tuple(items[::-1])

    def extend(self, items: list[Any]) -> None:
        if not _PLAIN.issuperset(map(type, items)):
            raise RefusedError("a list in it is not one of numbers")
        _of_type(self.stack[-1], list).extend(items)

    def update(self, items: list[Any]) -> None:
        target = _of_type(self.stack[-1], dict)
        for key, value in zip(items[::2], items[1::2], strict=True):
            _text(key)
            if isinstance(value, dict):
                raise RefusedError("a dictionary in it holds another, which was not published")
            target[key] = value

    def append(self, _: None) -> None:
        self.extend([self.stack.pop()])

    def set_item(self, _: None) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.update([key, value])

    def push_list(self, _: None) -> None:
        items = self.pop_items()
        self.push([])
        self.extend(items)

    def push_dict(self, _: None) -> None:
        items = self.pop_items()
        self.push({})
        self.update(items)

    def find(self, name: str) -> None:
        function = self.functions.get(name)
        if function is None:
            raise RefusedError(f"it asks to run {printable(name)}, which was not run")
        self.stack.append(Function(function))

    def find_on_stack(self, _: None) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        self.find(f"{_text(module)}.{_text(name)}")

    def reduce(self, _: None) -> None:
        arguments = _of_type(self.stack.pop(), tuple)
        made = _of_type(self.stack.pop(), Function).call(*arguments)
        self.bytes_left -= len(made) if isinstance(made, bytes) else 0
        if self.bytes_left < 0:
            raise RefusedError("it makes more bytes than it has, which was not published")
        self.push(made)

    def persistent(self, _: None) -> None:
        if self.storage is None:
            raise RefusedError("it has the opcode BINPERSID, which was not published")
        self.push(self.storage(_of_type(self.stack.pop(), tuple)))

    def build(self, _: None) -> None:
        state = self.stack.pop()
        if not isinstance(self.stack[-1], Array | _Dtype):
            raise RefusedError("it sets the state of what is no array, which was not published")
        self.stack[-1].__setstate__(state)


def _of_type(value: Any, wanted: type) -> Any:
    if type(value) is not wanted:
        raise TypeError(f"a {type(value).__name__} in place of a {wanted.__name__}")
    return value


_Step = Callable[[_Machine, Any], None]
_OPCODES: dict[str, _Step] = {
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), lambda m, a: None),
    **dict.fromkeys(
        ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "FLOAT", "BINFLOAT", "UNICODE",
         "BINUNICODE", "SHORT_BINUNICODE", "BINBYTES", "SHORT_BINBYTES"),
        _Machine.push,
    ),
    **dict.fromkeys(("BINSTRING", "SHORT_BINSTRING"), _Machine.push_string),
    "NONE": lambda m, a: m.push(None),
    "NEWTRUE": lambda m, a: m.push(True),
    "NEWFALSE": lambda m, a: m.push(False),
    "EMPTY_TUPLE": lambda m, a: m.push(()),
    "EMPTY_LIST": lambda m, a: m.push([]),
    "EMPTY_DICT": lambda m, a: m.push({}),
    "MARK": _Machine.mark,
    "TUPLE1": lambda m, a: m.tuple_of(1),
    "TUPLE2": lambda m, a: m.tuple_of(2),
    "TUPLE3": lambda m, a: m.tuple_of(3),
    "TUPLE": lambda m, a: m.push_tuple(m.pop_items()),
    "LIST": _Machine.push_list,
    "DICT": _Machine.push_dict,
    "APPEND": _Machine.append,
    "APPENDS": lambda m, a: m.extend(m.pop_items()),
    "SETITEM": _Machine.set_item,
    "SETITEMS": lambda m, a: m.update(m.pop_items()),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _Machine.memoize),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Machine.recall),
    "GLOBAL": lambda m, a: m.find(a.replace(" ", ".", 1)),
    "STACK_GLOBAL": _Machine.find_on_stack,
    "REDUCE": _Machine.reduce,
    "BUILD": _Machine.build,
    "BINPERSID": _Machine.persistent,
}  # fmt: skip
