"""A trained model out of the folder of its run, or out of a file that it was exported to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import models
from .._errors import UsageError, require
from .._imports import LIBRARIES, is_import, without_digest
from .._usual import usual_torch
from ..results import Folder
from ..runs import ResolvedRun
from ._model import CHOSEN_MODEL, EMA_MODEL, MODEL, Inputs, Model

Network = nn.Module | Callable[..., nn.Module] | str
_OF_A_LIBRARY = re.compile(r"[\w.]+", re.ASCII)  # no address that a library would fetch


@usual_torch()
def load(
    path: Path | str,
    *,
    network: Network | None = None,
    ema: bool = False,
    last: bool = False,
) -> Model:
    """The trained model of a run, ready to predict: the weights that the run ends with.

    They are those of the epoch that was chosen, where the run chooses one (`Run.choose_epoch`),
    else those of the last.

    The weights are read without running code. A network that the folder of a run names as
    ``module:name`` is imported again, with a warning if its source has changed since; what a file
    names is imported only if it is given as ``network`` too.

    Args:
        path: the folder of the run, or a file ``.safetensors`` that `Model.export` wrote.
        network: one of the same architecture, or what makes it, or ``"module:name"``, for a run
            that was given a network of your own; the weights are loaded into it.
        ema: load the exponential moving average of the weights after the last epoch.
        last: load the weights after the last epoch, also where another one was chosen.

    >>> import tempfile
    >>> from noiseproof import data, train
    >>> digits = data.load("digits")
    >>> with tempfile.TemporaryDirectory() as out:
    ...     result = train.fit(train.Run(epochs=2, device="cpu"), out=out)
    ...     model = train.load(result.folder)
    >>> model.predict(digits.test.images).shape
    torch.Size([360])
    """
    if not isinstance(path, str | Path):
        raise UsageError(
            f"load takes the folder of a run, result.folder of fit(..., out=...), not {path!r:.60}"
        )
    path = Path(path)
    if ema and last:
        raise UsageError("ema are averaged weights, and last are not: give one of them")
    asked = EMA_MODEL if ema else MODEL if last else None
    if path.is_file() or path.suffix == ".safetensors":
        return _from_file(path, network, asked)
    return _from_folder(path, network, asked)


_HINTS = {
    MODEL: "noiseproof train keeps it, and a bench with --keep-models",
    EMA_MODEL: "train it with ema=0.999 or ema_horizon=0.02",
    CHOSEN_MODEL: "--last takes the weights of the last epoch",
}


def _from_folder(path: Path, network: Network | None, asked: str | None) -> Model:
    kept = Folder(path)
    described = kept.read_json("run.json")
    settings = (described or {}).get("settings", {})
    if not isinstance(settings, dict):
        raise kept.damaged("run.json")
    name = asked or (CHOSEN_MODEL if settings.get("choose_epoch") is True else MODEL)
    weights = path / name
    if described is None or not weights.exists():
        if not path.is_dir():
            raise UsageError(f"there is no folder {path}")
        if described is None:
            inside = next((run.parent for run in sorted(path.glob("*/run.json"))), None)
            one = "" if inside is None else f", such as {inside} (noiseproof results {path})"
            raise UsageError(f"{path} has no run.json; give the folder of one run{one}")
        if kept.read_json("result.json") is None:
            raise UsageError(
                f"the run {path} has not ended; the command that began it goes on with it"
            )
        raise UsageError(
            f"{path} has no {name}; {_HINTS[name if (path / MODEL).exists() else MODEL]}"
        )
    inputs = Inputs.read(kept)
    made = _network(network, settings, inputs, f"the run {path}", may_import=True)
    try:
        tensors = torch.load(weights, map_location="cpu", weights_only=True)
    except Exception as error:
        raise _unfit(weights, made, error) from None
    return _filled(made, tensors, inputs, settings, weights)


def _from_file(path: Path, network: Network | None, asked: str | None) -> Model:
    if path.suffix in (".pt2", ".onnx"):
        raise UsageError(
            f"{path} is a program for others to run; give the folder of the run or .safetensors"
        )
    if path.suffix != ".safetensors":
        raise UsageError(f"{path} is no .safetensors; give that, or the folder of the run")
    if asked is not None:
        flag = "--ema" if asked == EMA_MODEL else "--last"
        raise UsageError(f"{path} holds one set of weights; export the run with {flag} for those")
    if not path.exists():
        raise UsageError(
            f"there is no file {path}; noiseproof export RUN --to safetensors writes one"
        )
    library = require("safetensors", "export", "a .safetensors file")
    try:
        with library.safe_open(str(path), framework="pt") as file:
            about = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except Exception as error:
        line = str(error).strip().split("\n")[0]
        raise UsageError(f"{path} cannot be read as .safetensors: {line:.200}") from None
    if "inputs" not in about or "settings" not in about:
        raise UsageError(
            f"{path} holds weights without what noiseproof export adds; to start a run from them "
            "give --weights"
        )
    try:
        settings = dict(json.loads(about["settings"]))
        inputs = Inputs.from_values(json.loads(about["inputs"]))
    except (KeyError, TypeError, ValueError, RecursionError):
        raise UsageError(f"{path} is damaged; export the run again") from None
    made = _network(network, settings, inputs, str(path), may_import=False)
    return _filled(made, tensors, inputs, settings, path)


def _network(
    given: Network | None,
    settings: Mapping[str, Any],
    inputs: Inputs,
    where: str,
    *,
    may_import: bool,
) -> nn.Module:
    """The network that weights belong to, with other weights or none."""
    shape, classes, vocabulary = inputs.shape, len(inputs.classes), inputs.vocabulary
    if isinstance(given, nn.Module):
        return given
    if isinstance(given, str):
        known = str(settings.get("model", ""))
        name = known if without_digest(known) == given else given  # a change of it is then noticed
        return models.imported(name, classes, shape, vocabulary=vocabulary, strict=False)
    if given is not None:
        return models.from_factory(given, classes, shape, vocabulary=vocabulary)
    try:
        run = ResolvedRun.from_settings(settings)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    if "network" in run.overrides:
        raise UsageError(
            f"{where} has a network of your own, {run.model}: give network=..., one of the same "
            "architecture"
        )
    if not is_import(run.model):
        try:
            return models.build(
                run.model, classes, shape=shape, vocabulary=vocabulary, device="meta"
            )
        except (RuntimeError, TypeError, ValueError, OverflowError) as error:
            first = str(error).split("\n")[0]
            raise UsageError(
                f"{where} has no inputs that {run.model} takes: {first:.200}"
            ) from None
    library, _, name = run.model.partition(":")
    if not may_import and (library not in LIBRARIES or not _OF_A_LIBRARY.fullmatch(name)):
        name = without_digest(run.model)
        raise UsageError(
            f"{where} has the network {name}, which is imported only if you name it too: give "
            f"network={name!r}, in a command --network {name}"
        )
    return models.imported(run.model, classes, shape, vocabulary=vocabulary, strict=False)


def _filled(
    network: nn.Module,
    tensors: Mapping[str, Tensor],
    inputs: Inputs,
    settings: Mapping[str, Any],
    weights: Path,
) -> Model:
    blank = any(p.is_meta for p in network.parameters())
    try:
        # An older version kept the names that torch.compile gives.
        tensors = {name.removeprefix("_orig_mod."): t for name, t in tensors.items()}
        models.unwrapped(network).load_state_dict(tensors, assign=blank)
    except Exception as error:
        raise _unfit(weights, network, error) from None
    return Model(network.float() if blank else network, inputs, settings)


def _unfit(weights: Path, network: nn.Module, error: Exception) -> UsageError:
    lines = str(error).strip().split("\n")
    reason = " ".join(line.strip() for line in lines[:2])
    return UsageError(f"{weights} cannot be loaded into {type(network).__name__}: {reason:.300}")
