"""Optimizers by name.

To add one, add an entry here and its file under ``noiseproof/train/optimizers``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OptimizerEntry:
    """An optimizer.

    Attributes:
        about: what it is, in a few words.
        module: the module of `noiseproof.train.optimizers` that has it.
        cls: its class in that module.
    """

    about: str
    module: str
    cls: str


OPTIMIZERS = {
    "sgd": OptimizerEntry("SGD with momentum, as torch.optim.SGD", "_sgd", "SGD"),
}
