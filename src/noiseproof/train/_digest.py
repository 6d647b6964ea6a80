"""What tells a user's own data, labels, network or loss from another: its contents."""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..data import Dataset
from ..noise import NoisyLabels


def digest_of(own: Mapping[str, Any]) -> str:
    """Of what stands in for what the settings name: content, not names, tells it apart."""
    digest = hashlib.sha256()
    for name, value in sorted(own.items()):
        digest.update(name.encode())
        for part in _parts(value):
            if isinstance(part, Tensor):
                part = part.float() if part.dtype == torch.bfloat16 else part
                digest.update(part.detach().cpu().numpy().tobytes())
            else:
                digest.update(str(part).encode())
    return digest.hexdigest()[:16] if own else ""


def _parts(value: Any) -> list[Any]:
    """What a value consists of, down to tensors and plain values."""
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
            plain = [
                f"{name}.{k}={v!r}"
                for name, module in value.named_modules()
                for k, v in vars(module).items()
                if isinstance(v, bool | int | float | str) and k != "training"
            ]
            return [type(value).__qualname__, repr(value), *plain, *value.state_dict().values()]
        case Dataset(train=train, test=test):
            tensors = [train.images, train.labels, test.images, test.labels]
            return [value.mean, value.std, value.classes, *tensors]
        case NoisyLabels(labels=labels, clean=clean):
            return [torch.as_tensor(labels), torch.as_tensor(clean)]
        case list() | tuple():
            return [type(value).__name__, *(part for item in value for part in _parts(item))]
        case dict():
            return _parts([*value.items()])
        case functools.partial():
            return _parts([value.func, value.args, value.keywords])
        case types.MethodType():
            return _parts([value.__func__, value.__self__])
        case types.FunctionType():
            held = [cell.cell_contents for cell in value.__closure__ or ()]
            given = (value.__defaults__, value.__kwdefaults__)
            return [value.__qualname__, *_parts([_code(value.__code__), given, held])]
        case types.BuiltinFunctionType() | type():
            return [value.__module__, value.__qualname__]
        case _ if callable(value) and isinstance(getattr(value, "__dict__", None), dict):
            return [type(value).__qualname__, *_parts([type(value).__call__, vars(value)])]
    raise ValueError(
        f"a run with a {type(value).__name__} of your own cannot be kept: nothing tells it from "
        "another one; give a module, or a function of plain values, or leave out the folder"
    )


def _code(code: types.CodeType) -> list[Any]:
    """What a function does, wherever it was written."""
    inner = [_code(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return [code.co_code, list(code.co_names), inner]
