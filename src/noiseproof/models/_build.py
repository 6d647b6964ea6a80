"""Networks by name."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from .._errors import UsageError
from .._hints import match_name
from ..catalogue import NETWORKS
from ._cnn import CNN4, CNN8, MLP
from ._resnet import BasicBlock, Bottleneck, ResNet

_Builder = Callable[[int, int, int], nn.Module]  # num_classes, in_channels, image_size

# One for each network of the catalogue.
_BUILDERS: dict[str, _Builder] = {
    "mlp": MLP,
    "cnn4": CNN4,
    "cnn8": CNN8,
    "resnet18": lambda k, c, _: ResNet(BasicBlock, (2, 2, 2, 2), k, c),
    "resnet34": lambda k, c, _: ResNet(BasicBlock, (3, 4, 6, 3), k, c),
    "resnet50": lambda k, c, _: ResNet(Bottleneck, (3, 4, 6, 3), k, c),
    "resnet50-imagenet": lambda k, c, _: ResNet(Bottleneck, (3, 4, 6, 3), k, c, "imagenet"),
}


def names() -> tuple[str, ...]:
    """The names that :func:`build` takes."""
    return tuple(NETWORKS)


def build(
    name: str,
    num_classes: int,
    in_channels: int = 3,
    *,
    image_size: int | None = None,
    seed: int = 0,
) -> nn.Module:
    """A network by name, with the paper's initialization.

    Args:
        name: one of `names()`.
        num_classes: the number of outputs.
        in_channels: the number of channels of the images.
        image_size: the height and width of the images in pixels. Default: 8 for ``mlp``, 28 for
            ``cnn4``, 32 for ``cnn8``. The residual networks take images of any size.
        seed: of the initialization; the same seed gives the same weights. The global generator is
            not used.

    >>> sum(p.numel() for p in build("cnn4", 10, 1).parameters())
    422090
    """
    name = match_name(name, NETWORKS, "network")
    for what, number in (("num_classes", num_classes), ("in_channels", in_channels)):
        if number < 1:
            raise UsageError(f"{what} must be at least 1; got {number}")
    with torch.device("meta"):  # so that nothing is drawn from the global generator
        size = image_size or NETWORKS[name].image_size
        network = _BUILDERS[name](num_classes, in_channels, size)
    network.to_empty(device="cpu")
    init_weights(network, torch.Generator().manual_seed(seed))
    return network


@torch.no_grad()
def init_weights(network: nn.Module, generator: torch.Generator) -> None:
    """Kaiming-uniform for convolutions, Xavier-uniform for linear layers, else PyTorch's own."""
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
