"""Optimizers on flat buffers. One file each; `noiseproof.catalogue.OPTIMIZERS` names them."""

from __future__ import annotations

import importlib

from ...catalogue import OPTIMIZERS
from ...runs import ResolvedRun
from ._base import Optimizer

__all__ = ["Optimizer", "optimizer_of"]


def optimizer_of(run: ResolvedRun) -> Optimizer:
    """The optimizer of a run, with its hyper-parameters."""
    entry = OPTIMIZERS[run.optimizer]
    cls = getattr(importlib.import_module(f".{entry.module}", __name__), entry.cls)
    made: Optimizer = cls.from_run(run)
    return made
