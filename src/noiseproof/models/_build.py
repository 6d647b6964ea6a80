"""Networks by name."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from .._hints import nearest
from ._cnn import CNN4, CNN8, MLP
from ._resnet import BasicBlock, Bottleneck, ResNet

_Maker = Callable[[int, int, int], nn.Module]

_MAKERS: dict[str, tuple[int, _Maker]] = {  # the images they were made for, and the network
    "mlp": (8, MLP),
    "cnn4": (28, CNN4),
    "cnn8": (32, CNN8),
    "resnet18": (32, lambda k, c, _: ResNet(BasicBlock, (2, 2, 2, 2), k, c)),
    "resnet34": (32, lambda k, c, _: ResNet(BasicBlock, (3, 4, 6, 3), k, c)),
    "resnet50": (32, lambda k, c, _: ResNet(Bottleneck, (3, 4, 6, 3), k, c)),
    "resnet50-imagenet": (224, lambda k, c, _: ResNet(Bottleneck, (3, 4, 6, 3), k, c, "imagenet")),
}


def names() -> tuple[str, ...]:
    """What `build` knows."""
    return tuple(_MAKERS)


def build(
    name: str,
    num_classes: int,
    in_channels: int = 3,
    *,
    image_size: int | None = None,
    seed: int = 0,
) -> nn.Module:
    """A network, initialised as the paper's were, the same for the same seed.

    Args:
        name: one of `names()`.
        num_classes: outputs.
        in_channels: of the images.
        image_size: the width of the images in pixels, which are square; by default those that the
            network was made for. The residual networks take any.
        seed: of the initialisation. The global generator is neither read nor moved.

    >>> sum(p.numel() for p in build("cnn4", 10, 1).parameters())
    422090
    """
    if name not in _MAKERS:
        hint = nearest(name, _MAKERS)
        raise ValueError(f"unknown network {name!r}{hint}; the known ones are {', '.join(_MAKERS)}")
    for what, number in (("num_classes", num_classes), ("in_channels", in_channels)):
        if number < 1:
            raise ValueError(f"{what} must be at least 1; got {number}")
    made_for, maker = _MAKERS[name]
    with torch.device("meta"):  # so that nothing is drawn from the global generator
        network = maker(num_classes, in_channels, image_size or made_for)
    network.to_empty(device="cpu")
    initialise(network, torch.Generator().manual_seed(seed))
    return network


@torch.no_grad()
def initialise(network: nn.Module, generator: torch.Generator) -> None:
    """Convolutions Kaiming-uniform, linear layers Xavier-uniform, the rest as PyTorch does it."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_uniform_(
                    module.weight, mode="fan_in", nonlinearity="relu", generator=generator
                )
            else:
                nn.init.xavier_uniform_(module.weight, generator=generator)
            if module.bias is not None:
                bound = module.weight[0].numel() ** -0.5
                module.bias.uniform_(-bound, bound, generator=generator)
        elif isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.reset_parameters()
