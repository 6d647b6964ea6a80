"""Whether this process is one of several that torchrun started, told from the environment.

Without torch, so that a command that needs none does not wait for it.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_PATIENCE = timedelta(seconds=20)  # with the agent's store, when a rank ends with an error


@dataclass(frozen=True)
class Place:
    """This process among those that were started together.

    Attributes:
        rank: its number, from 0.
        size: how many there are; torch's ``world_size``.
        local_rank: its number among those on this machine.
    """

    rank: int
    size: int
    local_rank: int


def place() -> Place | None:
    """This process among several, or None if it is the only one."""
    try:
        rank, size = (int(os.environ[name]) for name in _VARIABLES[:2])
        local = int(os.environ.get("LOCAL_RANK", rank))
    except (KeyError, ValueError):
        return None
    if size < 2 or not all(os.environ.get(name) for name in _VARIABLES):
        return None
    return Place(rank, size, local)


def speaks() -> bool:
    """Whether this process is to print why it ends: of several that end, the first to ask.

    What makes one rank fail soon makes all of them fail, and the first knows the reason. A rank
    that is not the first returns when the first has printed, which `has_spoken` tells: a rank that
    ended earlier would have torchrun end the others at once.
    """
    try:
        store = _store()
        if store is None or store.add("speakers", 1) == 1:
            return True
    except RuntimeError:  # it is gone, and with it whoever might have spoken
        return True
    with contextlib.suppress(RuntimeError):  # the first was killed at it
        store.wait(["spoken"], _PATIENCE)
    return False


def has_spoken() -> None:
    """Say that the reason is printed."""
    with contextlib.suppress(RuntimeError):
        if (store := _store()) is not None:
            store.set("spoken", "1")


_joined: Any = None


def use(store: Any) -> None:
    """Talk through this store of torch's, which the ranks share, and no longer the agent's."""
    global _joined
    _joined = store


def _store() -> Any:
    """A store that the ranks share, or None where there is none."""
    if _joined is not None:
        return _joined
    if place() is None or os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

    store = TCPStore(
        os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False,
        timeout=_PATIENCE,
    )  # fmt: skip
    return PrefixStore(f"noiseproof {os.environ.get('TORCHELASTIC_RESTART_COUNT')}", store)
