"""Flags by the names that other programs give them, and what they are called here."""

from __future__ import annotations

import dataclasses
import inspect
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args, get_type_hints

import tyro

from noiseproof._errors import UsageError
from noiseproof.sources import is_source, source_at

ALIASES: Mapping[str, tuple[str, ...]] = {
    "learning-rate": ("lr",), "base-lr": ("lr",), "eta": ("lr",),
    "lr-scheduler": ("schedule",), "scheduler": ("schedule",), "lr-schedule": ("schedule",),
    "warmup-epochs": ("warmup",), "min-lr": ("lr-floor",), "eta-min": ("lr-floor",),
    "batch": ("batch-size",), "batchsize": ("batch-size",), "bs": ("batch-size",),
    "epoch": ("epochs",), "num-epochs": ("epochs",), "n-epochs": ("epochs",),
    "max-epochs": ("epochs",),
    "wd": ("weight-decay",), "decay": ("weight-decay",), "l2": ("weight-decay",),
    "opt": ("optimizer",), "optim": ("optimizer",),
    "grad-clip": ("clip",), "clip-norm": ("clip",), "max-grad-norm": ("clip",),
    "smoothing": ("label-smoothing",), "ema-decay": ("ema",), "amp": ("precision",),
    "dtype": ("precision",),
    "net": ("model",), "network": ("model",), "arch": ("model",), "architecture": ("model",),
    "criterion": ("loss",), "loss-fn": ("loss",), "losses": ("loss",),
    "data": ("dataset",), "data-set": ("dataset",), "input": ("dataset",), "csv": ("dataset",),
    "data-dir": ("data-root",), "data-path": ("data-root",), "root": ("data-root",),
    "target": ("label",), "label-column": ("label",), "label-col": ("label",), "y": ("label",),
    "text-column": ("text",), "image-column": ("image",),
    "exclude": ("ignore",), "test-set": ("test",), "test-data": ("test",),
    "val-split": ("holdout",), "validation-split": ("holdout",), "val-size": ("holdout",),
    "test-size": ("holdout",),
    "noise-rate": ("rate",), "noise-type": ("noise",), "noise-kind": ("noise",),
    "random-state": ("seed", "seeds"), "random-seed": ("seed", "seeds"), "seeds": ("seed",),
    "seed": ("seeds",),
    "output": ("out",), "output-dir": ("out",), "out-dir": ("out",), "outdir": ("out",),
    "save-dir": ("out",), "logdir": ("out",), "log-dir": ("out",),
    "gpu": ("device",), "cuda": ("device",), "cpu": ("device",),
    "num-workers": ("workers",), "jobs": ("workers",), "n-jobs": ("workers",),
    "overwrite": ("force",), "dryrun": ("dry-run",), "n-trials": ("trials",),
    "num-trials": ("trials",), "k-folds": ("folds",), "cv": ("folds",), "format": ("to",),
    "proba": ("probabilities",), "tensor-board": ("tensorboard",), "num-classes": ("classes",),
    "n-classes": ("classes",), "num-samples": ("samples",), "n-samples": ("samples",),
}  # fmt: skip
"""What is typed for them; the first that a command has is meant. Without the two hyphens."""


def check_words(words: Sequence[str], commands: Iterable[Callable[..., Any]]) -> None:
    """Answer what other programs would take with what is taken here.

    Args:
        words: of the command line, the name of the command first.
        commands: the functions that the flags are those of.
    """
    command = next((c for c in commands if words[:1] == [c.__name__]), None)
    if command is None:
        return
    known = flags_of(command)
    if {"dataset", "label"} <= known:
        _refuse_bare_data(words[1:2])
    for word in words:
        name = word.partition("=")[0].removeprefix("--").replace("_", "-")
        if word.startswith("--") and name not in known:
            meant = next((flag for flag in ALIASES.get(name, ()) if flag in known), None)
            if meant is not None:
                raise UsageError(f"{command.__name__} has no --{name}: give --{meant}")


def _refuse_bare_data(words: Sequence[str]) -> None:
    """Refuse data where a command begins with it; npz files may be probabilities to audit."""
    for word in words:
        source = word if is_source(word) else source_at(word)
        if source.startswith(("csv:", "parquet:")) or source == word != "":
            raise UsageError(f"data is given with a flag: --dataset {shlex.quote(source)}")


def flags_of(command: Callable[..., Any]) -> set[str]:
    """The flags of a command, without their hyphens: its arguments and the fields of a run."""
    found: set[str] = set()
    for argument in inspect.signature(command).parameters.values():
        if dataclasses.is_dataclass(of := argument.default):
            hints = get_type_hints(type(of), include_extras=True)
            found |= {name for name in hints if tyro.conf.Suppress not in get_args(hints[name])}
        elif argument.kind is argument.KEYWORD_ONLY:  # others are given by their place
            found.add(argument.name)
    return {name.replace("_", "-") for name in found}
