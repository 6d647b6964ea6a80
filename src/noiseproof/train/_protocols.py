"""How the paper trained, and how its authors' code did: settings as data."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Protocol:
    """What a run takes for settings that it was not given."""

    model: str
    epochs: int
    lr: float
    weight_decay: float
    batch_size: int = 128
    momentum: float = 0.9
    nesterov: bool = False
    schedule: str = "cosine"
    lr_floor: float = 0.0
    clip: float = 5.0  # of the gradient's norm; the paper does not mention it, its code has it
    crop: int = 0
    flip: bool = False
    rotate: float = 0.0


_MNIST = Protocol("cnn4", epochs=50, lr=0.01, weight_decay=1e-3)
_CIFAR10 = Protocol("cnn8", epochs=120, lr=0.01, weight_decay=1e-4, crop=4, flip=True)
_CIFAR100 = Protocol(
    "resnet34", epochs=200, lr=0.1, weight_decay=1e-5, crop=4, flip=True, rotate=20.0
)
_PAPER = {
    # Not the paper's: the smallest setting in which its losses part.
    "digits": Protocol("mlp", epochs=40, lr=0.01, weight_decay=5e-3, batch_size=32),
    "mnist": _MNIST,
    "fashion-mnist": _MNIST,
    "cifar10": _CIFAR10,
    "cifar100": _CIFAR100,
}
_AUTHORS = {
    **_PAPER,
    "mnist": replace(_MNIST, weight_decay=1e-2, nesterov=True, lr_floor=1e-3),
    "cifar100": replace(_CIFAR100, model="resnet50"),
}
PROTOCOLS = {"paper": _PAPER, "authors": _AUTHORS}


def side_by_side(model: str | None) -> int:
    """How many runs of a network a large GPU trains at once and is still faster for it."""
    return {"mlp": 16, "cnn4": 16, "cnn8": 8}.get(model or "", 4)


def protocol_of(name: str, dataset: str) -> Protocol:
    """The settings of a protocol for a data set; CIFAR-10's for one that the paper did not use."""
    if name not in PROTOCOLS:
        raise ValueError(f"unknown protocol {name!r}; the known ones are {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name].get(dataset, _CIFAR10)
