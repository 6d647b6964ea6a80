"""A published loss: its name, and the settings that it was trained with on each data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Setting:
    """A loss as it was trained on a data set.

    Attributes:
        loss: its text.
        source: the paper.
        l1: the weight of the L1 norm of all parameters, added to the loss.
        weight_decay: in place of the protocol's; None leaves that as it is.
        note: what a user should know of these numbers, where sources disagree.
        brings: other settings of a run, which it takes where they are not given.
    """

    loss: str
    source: str
    l1: float = 0.0
    weight_decay: float | None = None
    note: str = ""
    brings: Mapping[str, Any] = field(default_factory=dict, hash=False)


ByNoise: TypeAlias = Mapping[str, "Setting | Mapping[float, Setting]"]
"""Settings that follow the kind of noise, and some the rate; ``"*"`` is any other kind."""


@dataclass(frozen=True)
class Method:
    """A published loss.

    Attributes:
        label: its name as papers print it.
        paper: its settings by data set.
        authors: the same as the code of the paper's authors has it, where that differs; None if
            their code does not have the method.
    """

    label: str
    paper: Mapping[str, Setting | ByNoise] = field(default_factory=dict)
    authors: Mapping[str, Setting | ByNoise] | None = field(default_factory=dict)
