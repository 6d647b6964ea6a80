"""What a user gives `noiseproof.train.fit` in place of what a run names."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from .. import models
from .._errors import UsageError
from .._hints import nearest
from ..data import Dataset
from ._state import extra_states, set_extra_states


def checked(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Those that were given, each of a kind that can be trained with."""
    overrides = {name: value for name, value in overrides.items() if value is not None}
    known = ("data", "network", "loss", "labels", "prior")
    for name in overrides:
        if name not in known:
            raise UsageError(f"unknown override {name!r}{nearest(name, known)}; {', '.join(known)}")
    for name, right, what, remedy in (
        ("data", isinstance(overrides.get("data"), Dataset), "Dataset",
         "data.from_arrays makes one, and data.from_dataset of a torch.utils.data.Dataset"),
        ("network", callable(overrides.get("network")), "Module, or a function that makes one",
         "a network by its name goes to Run(model=...)"),
        ("loss", callable(overrides.get("loss")), "function", "a text goes to Run(loss=...)"),
    ):  # fmt: skip
        if name in overrides and not right:
            shown = " ".join(repr(overrides[name]).split())  # that of networks has many lines
            raise UsageError(f"{name} must be a {what}, not {shown:.60}; {remedy}")
    network = overrides.get("network")
    if isinstance(network, nn.DataParallel | nn.parallel.DistributedDataParallel):
        raise UsageError(
            f"network is wrapped in {type(network).__name__}: give network.module; several GPUs "
            "train it where torchrun starts the script"
        )
    if isinstance(network, nn.Module) and any(map(is_lazy, network.parameters())):
        raise UsageError(
            "network has lazy layers that have seen no input: call it once on a batch, or give the "
            "function or class that makes it"
        )
    for name, module in overrides.items():
        if isinstance(module, nn.Module) and any(t.is_inference() for _, t in _tensors(module)):
            raise UsageError(
                f"{name} was made in torch.inference_mode, and its tensors cannot be trained with: "
                "make it outside"
            )
    return overrides


def shown_names(overrides: Mapping[str, Any]) -> dict[str, str]:
    """What overrides a setting, by the name that results show."""
    shown = dict.fromkeys(overrides, "")
    if "data" in overrides:
        shown["data"] = overrides["data"].name
    if "network" in overrides:
        made = isinstance(overrides["network"], nn.Module)
        named = type(overrides["network"]) if made else overrides["network"]
        shown["network"] = str(getattr(named, "__name__", type(named).__name__))
    if "loss" in overrides:
        loss = overrides["loss"]
        named = getattr(loss, "__qualname__", type(loss).__qualname__)
        shown["loss"] = " ".join(str(loss if isinstance(loss, nn.Module) else named).split())
    return shown


def copies(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The same with modules of their own, for one run of several."""
    return {k: models.copy_of(v) if isinstance(v, nn.Module) else v for k, v in overrides.items()}


def _tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()


@contextlib.contextmanager
def restored_on_error(overrides: Mapping[str, Any]) -> Iterator[Callable[[], None]]:
    """A run that does not end well leaves the user's modules as they were, to be trained again.

    What it gives does that for one that ends without an exception, as after a loss of NaN.
    """
    modules = [v for v in overrides.values() if isinstance(v, nn.Module)]
    # Not their state dicts, which may hold anything and be taken by them alone.
    before = [
        ({name: t.detach().clone() for name, t in _tensors(m)}, copy.deepcopy(extra_states(m)))
        for m in modules
    ]

    def restore() -> None:
        for module, (tensors, extra) in zip(modules, before, strict=True):
            for name, tensor in _tensors(module):
                if name in tensors:
                    tensor.data = tensors[name]
            set_extra_states(module, extra)

    try:
        yield restore
    except BaseException:
        restore()
        raise
