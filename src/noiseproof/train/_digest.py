"""What can be compared of a user's own data, labels, network or loss: a digest of each.

A digest does not see everything: not the helpers that a function calls, not the weights that a
network starts from, which a checkpoint replaces. So it never says that two things are the same; it
only refuses to go on with a run where something has changed.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..data import Dataset, Inputs, content_digest, decoded_before
from ..losses import Loss
from ..noise import NoisyLabels


def digests_of(overrides: Mapping[str, Any]) -> dict[str, str]:
    """A digest of each thing that overrides what a run names."""
    return {name: _kind(value) + _digest(value) for name, value in sorted(overrides.items())}


def difference(part: str, known: str | None, now: str) -> str | None:
    """What to say of two digests of a part, if they differ."""
    if known == now:
        return None
    if known is not None and known.startswith(_UNREAD) != now.startswith(_UNREAD):
        return (
            f"the {part} cannot be compared: its images are streamed in one of them and in memory "
            "or in a cache in the other, so load them as before"
        )
    return f"the {part} differs"


_UNREAD = "files-"  # of data whose pixels are not known before it is trained on


def _kind(value: Any) -> str:
    """What the digest is of, where it is not all of the content."""
    if isinstance(value, Dataset):
        inputs = (value.train.inputs, value.test.inputs)
        return "" if all(map(decoded_before, inputs)) else _UNREAD
    return ""


def _digest(value: Any) -> str:
    digest = hashlib.sha256()
    for part in _Parts().of(value):
        if isinstance(part, Tensor):
            part = part.float() if part.dtype == torch.bfloat16 else part
            digest.update(part.detach().cpu().numpy().tobytes())
        else:
            digest.update(str(part).encode())
    return digest.hexdigest()[:16]


class _Parts:
    """Takes a value apart, down to tensors and plain values; what it has seen it passes over."""

    def __init__(self) -> None:
        self._seen: dict[int, Any] = {}  # by id; kept, so that no other gets its id

    def of(self, value: Any) -> list[Any]:
        match value:
            case None | bool() | int() | float() | str() | bytes() | complex():
                return [repr(value)]
            case torch.dtype() | torch.device() | types.ModuleType():
                return [str(value)]
            case Tensor():
                return [value]
            case np.ndarray():
                return [str(value.dtype), value.tobytes()]
            case types.BuiltinFunctionType():
                return [value.__module__, value.__qualname__]
            case type() if not _is_own_network(value):
                return [value.__module__, value.__qualname__]
        if id(value) in self._seen:
            return ["seen"]
        self._seen[id(value)] = value
        return self._of_composed(value)

    def _of_composed(self, value: Any) -> list[Any]:
        match value:
            case Loss():
                functions = list(value.expression.functions())
                return [repr(value), *self.of(functions), *value.buffers()]
            case nn.Module():
                return self._of_module(value)
            case type():
                return [value.__qualname__, *self.of(_members(value))]
            case Dataset(train=train, test=test):
                labels = [train.labels, test.labels]
                labels += [] if train.truth is None else [train.truth]
                return [value.mean, value.std, value.classes, *labels,
                        *(_inputs_digest(split.inputs) for split in (train, test))]  # fmt: skip
            case NoisyLabels(labels=labels, clean=clean):
                return [torch.as_tensor(labels), torch.as_tensor(clean)]
            case list() | tuple():
                return [type(value).__name__, *(part for item in value for part in self.of(item))]
            case set() | frozenset():
                return self.of(sorted(value, key=repr))
            case dict():
                return self.of([*value.items()])
            case functools.partial():
                return self.of([value.func, value.args, value.keywords])
            case types.MethodType():
                return self.of([value.__func__, value.__self__])
            case staticmethod() | classmethod():
                return self.of(value.__func__)
            case property():
                return self.of([value.fget, value.fset])
            case types.FunctionType():
                return self._of_function(value)
            case _ if callable(value) and isinstance(getattr(value, "__dict__", None), dict):
                return [type(value).__qualname__, *self.of([type(value).__call__, vars(value)])]
        return [type(value).__qualname__]

    def _of_function(self, function: types.FunctionType) -> list[Any]:
        cells = []
        for cell in function.__closure__ or ():
            try:
                cells.append(cell.cell_contents)
            except ValueError:  # not filled yet
                continue
        defaults = (function.__defaults__, function.__kwdefaults__)
        return [function.__qualname__, *_code(function), *self.of([defaults, cells])]

    def _of_module(self, module: nn.Module) -> list[Any]:
        """Structure, code, attributes and what is not trained; no trained weights."""
        skipped = {"training", "_parameters", "_buffers", "_modules"}
        attributes = [
            (name, k, v)
            for name, part in module.named_modules()
            for k, v in vars(part).items()
            if k not in skipped and not k.startswith("_")
        ]
        classes = {type(m) for m in module.modules() if not type(m).__module__.startswith("torch.")}
        members = [
            member
            for cls in sorted(classes, key=lambda c: (c.__module__, c.__qualname__))
            for member in _members(cls)
        ]
        shapes = [f"{name} {tuple(p.shape)}" for name, p in module.named_parameters()]
        fixed: list[Tensor] = [p for p in module.parameters() if not p.requires_grad]
        if not any(True for _ in module.parameters()):  # a loss: what it holds is not trained
            fixed += list(module.buffers())
        kind = type(module).__qualname__
        return [kind, repr(module), *self.of(attributes), *self.of(members), *shapes, *fixed]


def _inputs_digest(inputs: Inputs) -> str | Tensor:
    return content_digest(inputs) if inputs.dtype == torch.uint8 else inputs  # type: ignore[return-value]


def _is_own_network(cls: type) -> bool:
    return issubclass(cls, nn.Module) and not cls.__module__.startswith(("torch.", "noiseproof."))


def _members(cls: type) -> list[Any]:
    """The code of a class."""
    return [
        member
        for member in vars(cls).values()
        if isinstance(member, types.FunctionType | staticmethod | classmethod | property)
    ]


def _code(function: types.FunctionType) -> list[str]:
    """The source of a function, and the names and constants of its compiled code."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = repr(function.__code__.co_code)
    return [source, *_constants(function.__code__)]


def _constants(code: types.CodeType) -> list[str]:
    """Tells apart functions of one line of source, such as two lambdas."""
    found = [repr(code.co_names)]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found += _constants(constant)
        elif isinstance(constant, frozenset):
            found.append(repr(sorted(constant, key=repr)))
        else:
            found.append(repr(constant))
    return found
