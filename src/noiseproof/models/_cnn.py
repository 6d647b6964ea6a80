"""The networks that the paper trains on MNIST and CIFAR-10, and an MLP for small images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice, pairwise

from torch import Tensor, nn

from .._errors import UsageError
from ._layers import AcceptsPaddedChannels, conv_norm, linear_norm


class _ConvNet(nn.Module, AcceptsPaddedChannels):
    """Stages of 3×3 convolutions that each end with a pooling, a hidden layer, a linear classifier.

    Args:
        stages: the output channels of the convolutions of each stage.
        hidden: the number of hidden units.
        num_classes: the number of outputs.
        in_channels: the number of channels of the images.
        image_size: the height and width of the images in pixels.
    """

    def __init__(
        self,
        stages: Sequence[Sequence[int]],
        hidden: int,
        num_classes: int,
        in_channels: int,
        image_size: int,
    ) -> None:
        super().__init__()
        if image_size < 2 ** len(stages):
            raise UsageError(
                f"{type(self).__name__} halves its images {len(stages)} times, so they must be at "
                f"least {2 ** len(stages)} pixels wide; image_size was {image_size}"
            )
        self.stage_sizes = tuple(len(widths) for widths in stages)
        self.convs = nn.ModuleList()
        self.norms = nn.ModuleList()
        width = in_channels
        for out in (w for widths in stages for w in widths):
            self.convs.append(nn.Conv2d(width, out, 3, padding=1))
            self.norms.append(nn.BatchNorm2d(out))
            width = out
        side = image_size // 2 ** len(stages)
        self.width = width
        self.hidden = nn.Linear(width * side * side, hidden)
        self.hidden_norm = nn.BatchNorm1d(hidden)
        self.classes = nn.Linear(hidden, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        layers = zip(self.convs, self.norms, strict=True)
        for size in self.stage_sizes:
            for i, (conv, norm) in enumerate(islice(layers, size)):
                assert isinstance(conv, nn.Conv2d)
                assert isinstance(norm, nn.BatchNorm2d)
                x = conv_norm(x, conv, norm, pool=i == size - 1)
        x = x[:, : self.width].flatten(1)  # fused layers pad the channels
        return self.classes(linear_norm(x, self.hidden, self.hidden_norm))  # type: ignore[no-any-return]


class CNN4(_ConvNet):
    """The paper's 4-layer network: 32, pool, 64, pool, 128 hidden units."""

    def __init__(self, num_classes: int = 10, in_channels: int = 1, image_size: int = 28) -> None:
        super().__init__([[32], [64]], 128, num_classes, in_channels, image_size)


class CNN8(_ConvNet):
    """The paper's 8-layer network: twice 64, 128 and 196, each with a pool, 256 hidden units."""

    def __init__(self, num_classes: int = 10, in_channels: int = 3, image_size: int = 32) -> None:
        stages = [[64, 64], [128, 128], [196, 196]]
        super().__init__(stages, 256, num_classes, in_channels, image_size)


class MLP(nn.Module):
    """Two hidden layers of 256 units with batch norm and ReLU, for inputs of any shape."""

    def __init__(self, num_classes: int = 10, *shape: int) -> None:
        super().__init__()
        sizes = (math.prod(shape or (1, 8, 8)), 256, 256)
        layers: list[nn.Module] = [nn.Flatten()]
        for inputs, outputs in pairwise(sizes):
            layers += [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.Linear(sizes[-1], num_classes))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)  # type: ignore[no-any-return]
