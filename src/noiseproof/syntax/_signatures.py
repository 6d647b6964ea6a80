"""The names that a text may use, with their hyper-parameters.

Losses and forms are declared in ``noiseproof.losses``, which imports torch. What a reader of texts
needs of these declarations is kept in ``signatures.json``, written by ``make docs`` and compared by
a test, so that texts can be read without torch. A loss that a user declares or registers adds its
signature when it is declared.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any, Literal

from ._hyper import Hyper

Kind = Literal["active", "passive", "undetermined"]
_BOUNDS = ("above", "at_least", "below", "at_most")


@dataclass(frozen=True)
class Signature:
    """What a text needs to know of a loss.

    Attributes:
        hyper: its hyper-parameters by name.
        kind: ``"active"``, ``"passive"`` or ``"undetermined"``.
        form: where it names a form of another loss, the form's word, such as ``"normalize"``.
        of: the name of that other loss.
        user: whether it was declared outside this package.
        listed: whether tables and messages list it.
        module: where a user declared it.
        class_name: what it is called in Python.
    """

    hyper: Mapping[str, Hyper] = field(default_factory=dict)
    kind: Kind = "undetermined"
    form: str = ""
    of: str = ""
    user: bool = False
    listed: bool = True
    module: str = ""
    class_name: str = ""


SIGNATURES: dict[str, Signature] = {}
"""Every known loss by its name in texts."""

FORMS: dict[str, Mapping[str, Hyper]] = {}
"""Every known form by its word in texts, such as ``normalize``, with its hyper-parameters."""


def is_loss_name(name: str) -> bool:
    """Whether a name can stand for a loss in a text."""
    return name.isidentifier() and name.islower()


def declare(name: str, signature: Signature) -> None:
    """Add a loss. The kind of one that is declared again is kept: it is computed elsewhere."""
    known = SIGNATURES.get(name)
    if known is not None and signature.kind == "undetermined":
        signature = replace(signature, kind=known.kind)
    SIGNATURES[name] = signature


def declare_form(word: str, hyper: Mapping[str, Hyper]) -> None:
    """Add a form."""
    FORMS[word] = hyper


def to_json(kinds: Mapping[str, Kind]) -> str:
    """The content of ``signatures.json`` for the losses and forms of this package.

    Args:
        kinds: the computed kind of each loss, by name.
    """
    losses = {}
    for name, s in SIGNATURES.items():
        if s.user:
            continue
        content: dict[str, Any] = {
            "class_name": s.class_name, "kind": kinds.get(name, s.kind), "hyper": _plain(s.hyper)
        }  # fmt: skip
        content |= {"form": s.form, "of": s.of} if s.form else {}
        content |= {} if s.listed else {"listed": False}
        losses[name] = content
    forms = {word: _plain(hyper) for word, hyper in FORMS.items()}
    lines = [
        f"  {json.dumps(group)}: {{\n"
        + ",\n".join(f"    {json.dumps(k)}: {json.dumps(v)}" for k, v in content.items())
        + "\n  }"
        for group, content in (("losses", losses), ("forms", forms))
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _plain(hyper: Mapping[str, Hyper]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for name, h in hyper.items():
        bounds = {b: getattr(h, b) for b in _BOUNDS if math.isfinite(getattr(h, b))}
        found[name] = {"default": h.default, **bounds, **({"integer": True} if h.integer else {})}
    return found


def _hyper(content: Mapping[str, Mapping[str, Any]]) -> dict[str, Hyper]:
    return {name: Hyper(**bounds, name=name) for name, bounds in content.items()}


def _load() -> None:
    file = resources.files(__package__) / "signatures.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    for name, s in content["losses"].items():
        SIGNATURES[name] = Signature(**s | {"hyper": _hyper(s["hyper"])})
    for word, hyper in content["forms"].items():
        FORMS[word] = _hyper(hyper)


_load()
