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
        shrink_limit: the most that a step shrinks a weight by, as a share of the learning rate; 0
            for no limit.
    """

    about: str
    module: str
    cls: str
    settings: tuple[str, ...] = ()
    defaults: Mapping[str, float | bool] = field(default_factory=dict)
    shrink_limit: float = 0.0


OPTIMIZERS = {
    "sgd": OptimizerEntry(
        "SGD with momentum, as torch.optim.SGD", "_sgd", "SGD", ("momentum", "nesterov"),
        {"lr": 0.01, "weight_decay": 1e-4},
    ),
    "adamw": OptimizerEntry(
        "Adam with decoupled weight decay, as torch.optim.AdamW", "_adamw", "AdamW",
        ("beta1", "beta2", "eps"),
        {"lr": 1e-3, "lr_floor": 0.0, "weight_decay": 0.01, "momentum": 0.0, "nesterov": False},
        shrink_limit=0.1,  # it moves a weight by lr at most, however much the loss pulls
    ),
}  # fmt: skip
