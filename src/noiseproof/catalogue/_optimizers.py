"""Optimizers by name.

To add one, add an entry here and its file under ``noiseproof/train/optimizers``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class OptimizerEntry:
    """An optimizer.

    Attributes:
        about: what it is, in a few words.
        module: the module of `noiseproof.train.optimizers` that has it.
        cls: its class in that module.
        settings: the settings of a run that are its own; other optimizers refuse them.
        defaults: what a run takes for settings that it was not given, where the protocol is made
            for another optimizer.
    """

    about: str
    module: str
    cls: str
    settings: tuple[str, ...] = ()
    defaults: Mapping[str, float | bool] = field(default_factory=dict)


OPTIMIZERS = {
    "sgd": OptimizerEntry(
        "SGD with momentum, as torch.optim.SGD", "_sgd", "SGD", ("momentum", "nesterov"),
        {"lr": 0.01, "weight_decay": 1e-4},
    ),
    "adamw": OptimizerEntry(
        "Adam with decoupled weight decay, as torch.optim.AdamW", "_adamw", "AdamW",
        ("beta1", "beta2", "eps"),
        {"lr": 1e-3, "lr_floor": 0.0, "weight_decay": 0.01, "momentum": 0.0, "nesterov": False},
    ),
}  # fmt: skip
