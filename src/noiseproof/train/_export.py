"""A model in files of other programs: safetensors, torch.export, ONNX."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import __version__, models
from .._errors import UsageError, require
from .._files import refuse_folder, write_atomically
from .._imports import cause
from ..data import Augment
from ._model import Model

ABOUT = "noiseproof.json"
"""The file inside a .pt2 that has what the others have as metadata."""
SUFFIXES = {"safetensors": ".safetensors", "torch": ".pt2", "onnx": ".onnx"}
BATCH = "N"
OUTPUT = "probabilities"
_INPUT_NAMES = {"image": "images", "features": "features", "tokens": "ids", "text": "ids"}


def export(model: Model, path: Path, to: str | None = None) -> Path:
    """As `Model.export`."""
    form = form_of(path, to)
    refuse_folder(path)
    write_atomically(path, _WRITERS[form](model))
    return path


def form_of(path: Path | None, to: str | None) -> str:
    """The form that is asked for, by its name or by how the name of the file ends."""
    if to is None and path is not None:
        to = next((form for form, end in SUFFIXES.items() if path.suffix.lower() == end), None)
    to = None if to is None else to.lower()
    if to not in SUFFIXES:
        known = ", ".join(f"{form} ({end})" for form, end in SUFFIXES.items())
        given = f"{to!r}" if to is not None else f"{path}" if path is not None else "nothing"
        raise UsageError(f"to what? Give one of {known}; it was {given}")
    return to


def takes(model: Model) -> str:
    """The input of an exported program in words, such as ``images: uint8 [N, 3, 32, 32]``."""
    dtype, shape = model.inputs.raw
    sizes = ", ".join(map(str, (BATCH, *shape)))
    return f"{_INPUT_NAMES[model.inputs.kind]}: {str(dtype).removeprefix('torch.')} [{sizes}]"


def _about(model: Model) -> dict[str, Any]:
    """What goes with the weights."""
    return {
        "noiseproof": __version__,
        "classes": model.classes,
        "inputs": asdict(model.inputs),
        "settings": model.settings,
    }


def _metadata(model: Model) -> dict[str, str]:
    """The same as texts: what is no text is JSON."""
    about = _about(model).items()
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in about}


def _safetensors(model: Model) -> bytes:
    library = require("safetensors.torch", "export", "a .safetensors file")
    state = models.unwrapped(model.network).state_dict()
    other = [name for name, value in state.items() if not isinstance(value, Tensor)]
    if other:
        raise UsageError(f"a .safetensors file holds tensors, and the network's {other[0]} is none")
    # copies, as weights that two layers share are refused
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in state.items()}
    return bytes(library.save(tensors, metadata={"format": "pt", **_metadata(model)}))


def _torch(model: Model) -> bytes:
    program = _program(model, "torch")
    content = io.BytesIO()
    with _quiet():
        torch.export.save(program, content, extra_files={ABOUT: json.dumps(_about(model))})
    return content.getvalue()


def _onnx(model: Model) -> bytes:
    for name in ("onnx", "onnxscript"):
        require(name, "export", "an ONNX file")
    program = _program(model, "onnx")
    with _quiet(), _in_one_line(model, "onnx"):
        made: Any = torch.onnx.export(
            program, dynamo=True, verbose=False, output_names=[OUTPUT],
            input_names=[_INPUT_NAMES[model.inputs.kind]],
        )  # fmt: skip
    proto = made.model_proto
    _tidy(proto)
    for key, value in _metadata(model).items():
        proto.metadata_props.add(key=key, value=value)
    try:
        return bytes(proto.SerializeToString())
    except Exception:  # protobuf's own error, or its message
        raise UsageError(
            "the network takes more than the 2 GB of an ONNX file; take torch"
        ) from None


def _tidy(proto: Any) -> None:
    """Call the batch N, and leave out where in the code a node comes from."""
    batch = proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param
    for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if batch and dim.dim_param:
                dim.dim_param = re.sub(rf"\b{re.escape(batch)}\b", BATCH, dim.dim_param)
    for part in (proto.graph, *proto.functions):
        for node in part.node:
            node.ClearField("metadata_props")
            node.ClearField("doc_string")


_WRITERS: dict[str, Callable[[Model], bytes]] = {
    "safetensors": _safetensors,
    "torch": _torch,
    "onnx": _onnx,
}


class _Program(nn.Module):
    """From inputs as they are stored to probabilities, so that whoever runs it needs no more."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = copy.deepcopy(model).cpu().eval().requires_grad_(False)
        self.center = Augment(size=model.inputs.shape[-1] if model.inputs.stored else 0).center

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.model(self.center(inputs))
        return logits.softmax(1)


def _program(model: Model, to: str) -> Any:
    dtype, shape = model.inputs.raw
    example = torch.zeros(2, *shape, dtype=dtype)  # of one, the batch would be taken for constant
    with _quiet(), _in_one_line(model, to), torch.no_grad():
        program = torch.export.export(
            _Program(model), (example,), strict=False,
            dynamic_shapes=({0: torch.export.Dim("batch")},),
        )  # fmt: skip
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # files and lines of who exported it
    return program


@contextlib.contextmanager
def _in_one_line(model: Model, to: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        name = type(model.network).__name__
        raise UsageError(
            f"{name} cannot be exported to {to}, {cause(error):.300}; safetensors takes any network"
        ) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what exporters warn and log of themselves; what fails is an error."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
