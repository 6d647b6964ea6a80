"""The settings of a run as flags: names, types and texts are those of `Run`, said there once."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import tyro

from noiseproof.catalogue import AUTO_BRINGS, DATASETS, NETWORKS, OPTIMIZERS
from noiseproof.runs import CHOICES, ResolvedRun, Run

_TYPES = {int: "INT", float: "FLOAT", str: "NAME", bool: "{True,False}"}
_CHOICES = CHOICES | {
    "dataset": (*DATASETS, "csv:FILE", "parquet:FILE", "npz:FILE", "folder:DIR"),
    "model": tuple(NETWORKS),
}
_OWN: dict[str, dict[str, Any]] = {
    "imports": {"name": "import", "metavar": "[MODULE ...]"},
    "model": {"metavar": "{" + ",".join(NETWORKS) + "}|MODULE:NAME"},
    "weights": {"metavar": "FILE"},
    "freeze": {"metavar": "[PATTERN ...]"},
    "test": {"metavar": "FILE"},
    "label": {"metavar": "COLUMN", "help_behavior_hint": "(default: label)"},
    "text": {"metavar": "COLUMN"},
    "image": {"metavar": "COLUMN"},
    "truth": {"metavar": "COLUMN"},
    "ignore": {"metavar": "[COLUMN ...]"},
    "cache": {"metavar": "DIR"},
} | {
    name: {"metavar": "FLOAT", "help_behavior_hint": f"(default: {getattr(ResolvedRun, name)})"}
    for name in OPTIMIZERS["adamw"].settings
}
_SUITED = ("model", "optimizer", "epochs", "batch_size", "lr")
_WHAT_SUITS = "(default: the protocol's; of your own data what suits it)"


def _truth(texts: list[str]) -> bool:
    found = {"true": True, "false": False}.get(texts[0].lower())
    if found is None:
        raise ValueError("give True or False")
    return found


_TRUE_OR_FALSE = tyro.constructors.PrimitiveConstructorSpec(
    nargs=1, metavar=_TYPES[bool], instance_from_str=_truth,
    is_instance=lambda value: value is None or isinstance(value, bool),
    str_from_instance=lambda value: [str(value)],
)  # fmt: skip
"""A flag that takes them in any case, since TOML and shells write true."""


def _flags(without: Collection[str] = ()) -> type[Run]:
    """A run whose help has the choices, and for what is None that it is the protocol's.

    Args:
        without: settings that have no flag, since the command decides them.
    """
    hints = get_type_hints(Run)
    fields = []
    for field in dataclasses.fields(Run):
        if field.name in without:
            fixed: Any = Annotated[hints[field.name], tyro.conf.Fixed, tyro.conf.Suppress]
            fields.append((field.name, fixed, dataclasses.field(default=field.default)))
        elif field.default is False:
            off = tyro.conf.FlagCreatePairsOff[bool]
            fields.append((field.name, off, dataclasses.field(default=False)))
        elif hint := _hint(field, hints[field.name]):
            # One of a few is any text here: the run takes it in any case, and says what is wrong.
            open_ = str | None if field.default is None else str
            taken = open_ if field.name in CHOICES else hints[field.name]
            annotated: Any = Annotated[taken, tyro.conf.arg(**hint)]
            if bool in get_args(hints[field.name]):
                annotated = Annotated[annotated, _TRUE_OR_FALSE]
            fields.append((field.name, annotated, dataclasses.field(default=field.default)))
    return dataclasses.make_dataclass("Run", fields, bases=(Run,), frozen=True, kw_only=True)


def _hint(field: dataclasses.Field[Any], of_type: Any) -> dict[str, Any]:
    """How a flag is shown; empty where tyro shows it well."""
    types = [t for t in get_args(of_type) if t is not type(None)]
    expected = types[0] if field.default is None else of_type
    named = "{" + ",".join(_CHOICES[field.name]) + "}" if field.name in _CHOICES else ""
    if field.default is not None and not named and field.name not in _OWN:
        return {}
    hint: dict[str, Any] = {}
    if field.name in _OWN:
        hint["help_behavior_hint"] = "(default: none)"
    if field.default is None:
        hint["help_behavior_hint"] = "(default: the protocol's)"
    if field.name == "holdout":
        hint["help_behavior_hint"] = "(default: what suits the data)"
    if field.name in _SUITED:
        hint["help_behavior_hint"] = _WHAT_SUITS
    if field.name in AUTO_BRINGS:
        plain = getattr(ResolvedRun, field.name)
        hint["help_behavior_hint"] = f"(default: {plain}; auto brings its own)"
    return hint | (_OWN.get(field.name) or {"metavar": named or _TYPES[expected]})


def shared_flags(*without: str) -> type[Run]:
    """The flags of what several runs have in common, for a command that makes many."""
    return _flags(without)


def grid_flags(*without: str) -> type[Any]:
    """The flags of a grid, all that `shared_flags` has, of which none is checked yet.

    A grid has no data set of its own, so that nothing can be said of its settings before it is
    joined with one. It may have several learning rates.
    """
    help_ = "learning rates, each of which is tried"
    several = tyro.conf.arg(metavar="[FLOAT ...]", help=help_, help_behavior_hint=_WHAT_SUITS)
    lr: Any = Annotated[tuple[float, ...], several]
    return dataclasses.make_dataclass(
        "Grid", [("lr", lr, dataclasses.field(default=()))], bases=(_flags(without),), frozen=True,
        kw_only=True, namespace={"__post_init__": lambda self: None},
    )  # fmt: skip


if TYPE_CHECKING:
    Flags = Run
else:
    Flags = _flags()
