"""Weights to start from, out of a file, and parameters that are not trained."""

from __future__ import annotations

import fnmatch
import importlib
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .._errors import MissingExtraError, UsageError

_NESTED = ("state_dict", "model_state_dict", "model", "network")
_WRAPPERS = ("module.", "_orig_mod.")  # of DistributedDataParallel and of torch.compile
_MOST = 5  # names in a message


class WeightsWarning(UserWarning):
    """Some weights of a file were not used, or some of a network were not in it."""


def load_weights(network: nn.Module, path: Path | str) -> None:
    """Copy a state dict into a network, as far as it fits.

    A file may hold the state dict itself or have it under ``state_dict`` or ``model``, and its
    names may have a prefix in common, such as ``module.``. What the file lacks, or has in another
    shape, such as the head for another number of classes, stays as it is; a warning names it.

    Args:
        network: what to load into.
        path: ``.safetensors``, or what ``torch.save`` wrote; it is read without running code.

    Raises:
        UsageError: nothing in the file fits, or it cannot be read.
    """
    path = Path(path)
    own = {n: t for n, t in network.state_dict().items() if isinstance(t, Tensor)}
    found = _renamed(_state_dict(_content(path), path), own)
    fitting = {n: t for n, t in found.items() if n in own and t.shape == own[n].shape}
    if not fitting.keys() & dict(network.named_parameters()).keys():
        raise UsageError(
            f"no weights of {path} fit the network: the file has {_listed(_shapes(found))}; the "
            f"network has {_listed(_shapes(own))}"
        )
    with torch.no_grad():
        for name, tensor in fitting.items():
            own[name].copy_(tensor)
    counters = "num_batches_tracked"  # which older files lack
    other = [f"{n} {list(found[n].shape)} for {list(own[n].shape)}"
             for n in own if n in found and n not in fitting]  # fmt: skip
    missing = [n for n in own if n not in found and not n.endswith(counters)]
    unused = [n for n in found if n not in own]
    notes = [("of another shape", other), ("not in the file", missing)]
    lines = [f"{what}: {_listed(names)}" for what, names in notes if names]
    if lines:
        lines[0] = f"left as they start, {lines[0]}"
    lines += [f"not used: {_listed(unused)}"] if unused else []
    if lines:
        text = f"{len(fitting)} of {len(own)} tensors are from {path.name}; {'; '.join(lines)}"
        warnings.warn(text, WeightsWarning, stacklevel=2)


def freeze(network: nn.Module, patterns: Sequence[str]) -> None:
    """Let parameters whose names match one of the patterns not be trained.

    Args:
        network: whose they are.
        patterns: such as ``"layer1.*"``; the name of a module stands for all in it.

    Raises:
        UsageError: a pattern matches none.
    """
    parameters = dict(network.named_parameters())
    for pattern in patterns:
        names = [
            n for n in parameters
            if fnmatch.fnmatchcase(n, pattern) or n.startswith(f"{pattern}.")
        ]  # fmt: skip
        if not names:
            raise UsageError(
                f"freeze {pattern!r} matches no parameter; the network has {_listed(parameters)}"
            )
        for name in names:
            parameters[name].requires_grad_(False)


def frozen_norms(network: nn.Module) -> dict[str, nn.Module]:
    """The batch norms whose parameters are all frozen, by name."""
    return {
        name: m for name, m in network.named_modules()
        if isinstance(m, nn.modules.batchnorm._BatchNorm)
        and m.affine and not any(p.requires_grad for p in m.parameters())
    }  # fmt: skip


def _content(path: Path) -> Any:
    try:
        if path.suffix == ".safetensors":
            return _safetensors().load_file(str(path))
        return torch.load(path, map_location="cpu", weights_only=True)
    except (MissingExtraError, FileNotFoundError):
        raise
    except Exception as error:  # of a damaged or hostile file anything
        line = str(error).strip().split("\n")[0]
        raise UsageError(
            f"{path} cannot be read as weights ({type(error).__name__}: {line:.200}); give a state "
            "dict, torch.save(network.state_dict(), FILE)"
        ) from None


def _safetensors() -> Any:
    try:
        return importlib.import_module("safetensors.torch")
    except ImportError:
        line = "a file of weights .safetensors needs safetensors: pip install safetensors"
        raise MissingExtraError(line, name="safetensors") from None


def _state_dict(content: Any, path: Path) -> dict[str, Tensor]:
    """The tensors by name, however deep they are in a file."""
    while isinstance(content, Mapping):
        tensors = {str(k): v for k, v in content.items() if isinstance(v, Tensor)}
        inner = [content[k] for k in _NESTED if isinstance(content.get(k), Mapping)]
        if inner and len(tensors) < len(inner[0]):
            content = inner[0]
        elif tensors:
            return tensors
        else:
            break
    raise UsageError(f"{path} holds no state dict; give torch.save(network.state_dict(), FILE)")


def _renamed(found: dict[str, Tensor], own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors without the prefixes of wrappers, and without one that all have in common."""

    def fits(tensors: Mapping[str, Tensor]) -> int:
        return sum(n in own and t.shape == own[n].shape for n, t in tensors.items())

    best = found
    for prefix in _WRAPPERS:
        found = {n.removeprefix(prefix): t for n, t in found.items()}
    while True:
        best = found if fits(found) > fits(best) else best
        common = {n.partition(".")[0] for n in found}
        if len(common) != 1 or not all("." in n for n in found):
            return best
        found = {n.partition(".")[2]: t for n, t in found.items()}


def _shapes(tensors: Mapping[str, Tensor]) -> list[str]:
    return [f"{name} {list(tensor.shape)}" for name, tensor in tensors.items()]


def _listed(names: Any) -> str:
    """The first names, and how many there are beside them."""
    names = list(names)
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(f"{name:.80}" for name in names[:_MOST]) + more
