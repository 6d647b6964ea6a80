"""Networks by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from .._errors import UsageError
from .._hints import match_name
from .._imports import is_import
from ..catalogue import NETWORKS
from ._bag import Bag
from ._cnn import CNN4, CNN8, MLP
from ._factory import imported
from ._resnet import BasicBlock, Bottleneck, ResNet

_USUAL_SIZE = 32  # of images for a network of the user's own


@dataclass(frozen=True)
class Task:
    """What a network is made for.

    Attributes:
        num_classes: the number of outputs.
        shape: of one input: channels, height and width of an image; or of a row of features or
            token ids.
        vocabulary: how many token ids there are; 0 where inputs are none.
    """

    num_classes: int
    shape: tuple[int, ...]
    vocabulary: int = 0


def _residual(block: Any, depths: tuple[int, ...], stem: str = "cifar") -> Callable[[Task], Any]:
    return lambda task: ResNet(block, depths, task.num_classes, task.shape[0], stem)


# One for each network of the catalogue.
_BUILDERS: dict[str, Callable[[Task], nn.Module]] = {
    "mlp": lambda task: MLP(task.num_classes, *task.shape),
    "linear": lambda task: nn.Sequential(
        nn.Flatten(), nn.Linear(math.prod(task.shape), task.num_classes)
    ),
    "bag": lambda task: Bag(task.num_classes, task.vocabulary),
    "cnn4": lambda task: CNN4(task.num_classes, *task.shape[:2]),
    "cnn8": lambda task: CNN8(task.num_classes, *task.shape[:2]),
    "resnet18": _residual(BasicBlock, (2, 2, 2, 2)),
    "resnet34": _residual(BasicBlock, (3, 4, 6, 3)),
    "resnet50": _residual(Bottleneck, (3, 4, 6, 3)),
    "resnet18-imagenet": _residual(BasicBlock, (2, 2, 2, 2), "imagenet"),
    "resnet50-imagenet": _residual(Bottleneck, (3, 4, 6, 3), "imagenet"),
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
    shape: Sequence[int] | None = None,
    vocabulary: int = 0,
    seed: int = 0,
    device: Literal["cpu", "meta"] = "cpu",
) -> nn.Module:
    """A network by name, with the paper's initialization; or one of the user's own.

    Args:
        name: one of `names()`; or ``module:name``, a function or class that `from_factory` calls,
            ``torchvision:resnet18``, ``timm:resnet18``.
        num_classes: the number of outputs.
        in_channels: the number of channels of the images.
        image_size: the height and width of the images in pixels. Default: 8 for ``mlp``, 28 for
            ``cnn4``, 32 for ``cnn8``. The residual networks take images of any size.
        shape: of one input, in place of in_channels and image_size.
        vocabulary: how many token ids there are, for ``bag``.
        seed: of the initialization; the same seed gives the same weights. The global generator is
            not used.
        device: ``"meta"`` for one of `names()` without weights, to load some into.

    >>> sum(p.numel() for p in build("cnn4", 10, 1).parameters())
    422090
    """
    if is_import(name):
        size = image_size or _USUAL_SIZE
        shape = shape or (in_channels, size, size)
        return imported(name, num_classes, shape, seed=seed, vocabulary=vocabulary)
    name = match_name(name, NETWORKS, "network")
    for what, number in (("num_classes", num_classes), ("in_channels", in_channels)):
        if number < 1:
            raise UsageError(f"{what} must be at least 1; got {number}")
    with torch.device("meta"):  # so that nothing is drawn from the global generator
        size = image_size or NETWORKS[name].image_size
        task = Task(num_classes, tuple(shape or (in_channels, size, size)), vocabulary)
        check_takes(name, task)
        network = _BUILDERS[name](task)
    if device == "meta":
        return network
    network.to_empty(device="cpu")
    init_weights(network, torch.Generator().manual_seed(seed))
    return network


def check_takes(name: str, task: Task) -> None:
    """Refuse inputs of a kind that a network is not made for."""
    takes, dims = NETWORKS[name].takes, len(task.shape)
    if "tokens" in takes and not task.vocabulary:
        raise UsageError(f"{name} takes texts and token ids; for images and features there is mlp")
    if "features" not in takes and "tokens" not in takes and (dims != 3 or task.vocabulary):
        remedy = "bag" if task.vocabulary else "mlp"
        raise UsageError(
            f"{name} takes images [C, H, W], and inputs are {list(task.shape)}; take {remedy}"
        )
    if name.startswith("cnn") and task.shape[1] != task.shape[2]:
        raise UsageError(
            f"{name} takes square images, and these are {task.shape[1]}x{task.shape[2]}; take "
            "resnet18, or bring them to one size with --image-size"
        )
    if task.vocabulary and "tokens" not in takes:
        raise UsageError(f"{name} takes numbers, and inputs are token ids; take bag")


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
        elif isinstance(module, nn.EmbeddingBag):
            module.weight.normal_(0, module.embedding_dim**-0.5, generator=generator)
            if module.padding_idx is not None:
                module.weight[module.padding_idx].zero_()
        elif isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.reset_parameters()
