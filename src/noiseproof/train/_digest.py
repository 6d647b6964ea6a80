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

from ..data import Dataset
from ..noise import NoisyLabels


def digests_of(overrides: Mapping[str, Any]) -> dict[str, str]:
    """A digest of each thing that overrides what a run names."""
    return {name: _digest(value) for name, value in sorted(overrides.items())}


def _digest(value: Any) -> str:
    digest = hashlib.sha256()
    for part in _parts(value):
        if isinstance(part, Tensor):
            part = part.float() if part.dtype == torch.bfloat16 else part
            digest.update(part.detach().cpu().numpy().tobytes())
        else:
            digest.update(str(part).encode())
    return digest.hexdigest()[:16]


def _parts(value: Any) -> list[Any]:
    """What a value consists of, down to tensors and plain values; of others their type."""
    match value:
        case None | bool() | int() | float() | str() | bytes() | complex():
            return [repr(value)]
        case torch.dtype() | torch.device() | types.ModuleType():
            return [str(value)]
        case Tensor():
            return [value]
        case np.ndarray():
            return [str(value.dtype), value.tobytes()]
        case nn.Module():
            return _module_parts(value)
        case Dataset(train=train, test=test):
            tensors = [train.images, train.labels, test.images, test.labels]
            return [value.mean, value.std, value.classes, *tensors]
        case NoisyLabels(labels=labels, clean=clean):
            return [torch.as_tensor(labels), torch.as_tensor(clean)]
        case list() | tuple():
            return [type(value).__name__, *(part for item in value for part in _parts(item))]
        case set() | frozenset():
            return _parts(sorted(value, key=repr))
        case dict():
            return _parts([*value.items()])
        case functools.partial():
            return _parts([value.func, value.args, value.keywords])
        case types.MethodType():
            return _parts([value.__func__, value.__self__])
        case types.FunctionType():
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            defaults = (value.__defaults__, value.__kwdefaults__)
            return [value.__qualname__, *_parts([_code(value), defaults, cells])]
        case types.BuiltinFunctionType() | type():
            return [value.__module__, value.__qualname__]
        case _ if callable(value) and isinstance(getattr(value, "__dict__", None), dict):
            return [type(value).__qualname__, *_parts([type(value).__call__, vars(value)])]
    return [type(value).__qualname__]


def _module_parts(module: nn.Module) -> list[Any]:
    """Structure, code, plain attributes, buffers and frozen parameters; no trained weights."""
    plain = [
        f"{name}.{k}={v!r}"
        for name, part in module.named_modules()
        for k, v in vars(part).items()
        if isinstance(v, bool | int | float | str) and k != "training"
    ]
    classes = {type(m) for m in module.modules() if not type(m).__module__.startswith("torch.")}
    code = [
        _code(function)
        for cls in sorted(classes, key=lambda c: (c.__module__, c.__qualname__))
        for function in vars(cls).values()
        if isinstance(function, types.FunctionType)
    ]
    shapes = [f"{name} {tuple(p.shape)}" for name, p in module.named_parameters()]
    fixed = [p for p in module.parameters() if not p.requires_grad]
    return [type(module).__qualname__, repr(module), *plain, *_parts(code), *shapes, *fixed]


def _code(function: types.FunctionType) -> str:
    """The source of a function, or where there is none its compiled code."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return repr(_compiled(function.__code__))


def _compiled(code: types.CodeType) -> list[Any]:
    constants = [_compiled(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return [code.co_code, list(code.co_names), constants]
