"""Records of the first format, whose settings left open what the protocol or the recipe brings.

What such a run came to stands beside its settings, so it is read as the resolved run that it was.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Any

from .. import catalogue, syntax
from .._errors import UsageError
from ..runs import hash_of

Row = dict[str, float]
_RENAMED_LOSSES = {"fl_held": "fl_detached"}
_MOVED = ("loss", "weight_decay", "l1", "precision")  # from what a run came to into its settings


def upgraded_settings(settings: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a record of the first format, complete."""
    found = dict(settings)
    digest = found.pop("own", None)
    for name in _MOVED:
        found[name] = about[name]
    dataset = re.sub(r"[-_ ]", "", str(found["dataset"]).lower())
    known = {name.replace("-", ""): name for name in catalogue.DATASETS}
    if digest is None:
        found["dataset"] = known.get(dataset, found["dataset"])
        found["loss"] = _canonical(str(found["loss"]))
    else:  # something of the user's own, which is found again by no name
        found["name"] = f"unnamed-{hash_of(settings)}"
        found["overrides"] = _overridden(found)
        with contextlib.suppress(UsageError):
            found["loss"] = _canonical(str(found["loss"]))
    if found["noise"] in ("given", "real") or (
        "data" in found.get("overrides", ()) and found["noise"] == catalogue.CLEAN
    ):
        found["noise"] = catalogue.GIVEN
    if catalogue.noise_group(found["noise"]) == "drawn" and not found["rate"]:
        found["noise"] = catalogue.CLEAN
    if catalogue.noise_group(found["noise"]) != "drawn":
        found["variant"] = "paper"
    return found


def _canonical(text: str) -> str:
    if text.strip().lower() == catalogue.NLNL:
        return catalogue.NLNL
    for old, new in _RENAMED_LOSSES.items():
        text = text.replace(old, new)
    return syntax.canonical(text)


def _overridden(settings: Mapping[str, Any]) -> list[str]:
    """What of a run was the user's own, as far as its names tell."""
    found = []
    if settings["dataset"] not in catalogue.DATASETS:
        found.append("data")
    if settings["noise"] == "given":
        found.append("labels")
    if settings["model"] not in catalogue.NETWORKS:
        found.append("network")
    try:
        _canonical(str(settings["loss"]))
    except UsageError:
        found.append("loss")
    return sorted(found) or ["loss"]


def upgraded_about(about: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in about.items() if name not in _MOVED}


def upgraded_columns(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a history by their names today."""
    return {"lr" if name == "learning_rate" else name: v for name, v in columns.items()}
