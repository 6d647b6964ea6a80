"""What a run names of the user's own: modules, a loss, a network, weights to start from."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import models
from .._errors import UsageError
from .._imports import file_digest, is_import, load, without_digest
from .._seeds import derive
from ..losses import class_weights, from_function, parse
from ..losses._wrappers import num_required_args
from ..runs import ResolvedRun
from ._model import Inputs

Criterion = Callable[[Tensor, Tensor], Tensor]
Factory = Callable[..., nn.Module]


def import_modules(run: ResolvedRun) -> None:
    """Import what declares the losses that the run's text names."""
    for name in run.imports:
        load(name, "import", folder=_folder(run, name))


def loss_of(
    run: ResolvedRun, loss: Criterion | None, labels: Tensor, num_classes: int
) -> Criterion:
    """A loss that was given, or that a run names, for these training labels.

    A run names it by its text or as ``module:name``, which stands for a function of logits and
    labels; or of the logits alone, as `noiseproof.losses.from_function` takes it; or for a module,
    or the class of one.
    """
    if loss is None and not is_import(run.loss):
        balanced = run.class_weight == "balanced"
        return parse(run.loss, weight=class_weights(labels, num_classes) if balanced else None)
    if run.class_weight != "none":
        raise UsageError(
            "a loss of your own weighs classes itself (noiseproof.class_weights): leave "
            "class_weight out"
        )
    if loss is not None:
        return loss
    found: Any = load(run.loss, "loss", folder=_folder(run, run.loss))
    name = without_digest(run.loss)
    if isinstance(found, type) and issubclass(found, nn.Module):
        try:
            return found()
        except TypeError as error:
            raise UsageError(
                f"loss {name} is a class that needs arguments ({error}); name an instance of it"
            ) from None
    if isinstance(found, nn.Module):
        return copy.deepcopy(found)  # what it remembers is each run's own
    if not callable(found):
        raise UsageError(f"loss {name} is a {type(found).__name__}, not a function of logits")
    return from_function(found, name=name) if num_required_args(found) == 1 else found


def network_of(
    run: ResolvedRun, network: nn.Module | Factory | None, inputs: Inputs, device: torch.device
) -> nn.Module:
    """A network that was given, or that a function or class makes, where the run starts from it."""
    seed, classes, vocabulary = derive(run.seed, "start"), len(inputs.classes), inputs.vocabulary
    tried: nn.Module | None
    if isinstance(network, nn.Module):
        tried = _copied(network, device)  # it may count its batches
    elif network is None:
        tried = network = models.imported(
            run.model, classes, inputs.shape, seed=seed, vocabulary=vocabulary,
            folder=_folder(run, run.model),
        )  # fmt: skip
    else:
        tried = network = models.from_factory(
            network, classes, inputs.shape, seed=seed, vocabulary=vocabulary
        )
    if tried is not None:
        models.check_network(
            tried, without_digest(run.model), classes, inputs.shape, seed=seed,
            vocabulary=vocabulary, may_have_more=tried is not network,
            compute_dtype=compute_dtype_of(run),
        )  # fmt: skip
    elif run.ema or run.ema_horizon or run.choose_epoch:
        raise UsageError(
            f"model {without_digest(run.model)} cannot be copied, and a run with averaged "
            "weights or a chosen epoch ends with several: give ema=0, ema_horizon=0 and "
            "choose_epoch=False"
        )
    prepare(run, network)
    return network


def _copied(network: nn.Module, device: torch.device) -> nn.Module | None:
    """A copy to try, without what `torch.compile` puts around it; None if it cannot be copied.

    It is tried where it will be trained: layers of some libraries compute on a GPU alone.
    """
    try:
        return models.copy_of(models.unwrapped(network)).to(device)
    except Exception:  # as of one that holds an open file
        return None


def compute_dtype_of(run: ResolvedRun) -> torch.dtype | None:
    """What the network of a run computes in; None for float32."""
    return torch.bfloat16 if run.precision == "bf16" else None


def prepare(run: ResolvedRun, network: nn.Module) -> None:
    """Load the weights that a run starts from, and freeze what it does not train."""
    network = models.unwrapped(network)
    if run.weights:
        path = Path(run.place("weights"))
        if not run.place("weights") or not path.is_file():
            raise UsageError(
                f"the file of weights {without_digest(run.weights)} is not here"
                + (f": {path}" if run.place("weights") else "; give the Run with weights=FILE")
            )
        if run.weights != f"{path.name}@{file_digest(path)}":
            raise UsageError(f"{path} has changed since the run was made; start again")
        models.load_weights(network, path)
    models.freeze(network, run.freeze)


def _folder(run: ResolvedRun, name: str) -> str:
    """Where the module of a name was found when the run was resolved."""
    return run.place(f"import {name.partition('@')[0].partition(':')[0]}")
