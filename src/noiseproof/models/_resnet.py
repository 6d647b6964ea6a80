"""Residual networks. Parameters have torchvision's names, so that its weights can be loaded."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from ._layers import AcceptsPaddedChannels, conv_norm


def _conv(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)


class BasicBlock(nn.Module):
    """Two 3×3 convolutions with a shortcut around them."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = _conv(inputs, width, 3, stride), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = _conv(width, width, 3), nn.BatchNorm2d(width)
        self.downsample = _downsample(inputs, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = conv_norm(x, self.conv1, self.bn1)
        return conv_norm(out, self.conv2, self.bn2, residual=_shortcut(x, self.downsample))


class Bottleneck(nn.Module):
    """A 3×3 convolution between two 1×1 convolutions, with a shortcut around them."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * self.expansion
        self.conv1, self.bn1 = _conv(inputs, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = _conv(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = _conv(width, outputs, 1), nn.BatchNorm2d(outputs)
        self.downsample = _downsample(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = conv_norm(x, self.conv1, self.bn1)
        out = conv_norm(out, self.conv2, self.bn2)
        return conv_norm(out, self.conv3, self.bn3, residual=_shortcut(x, self.downsample))


def _downsample(inputs: int, outputs: int, stride: int) -> nn.Sequential | None:
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(_conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))


def _shortcut(x: Tensor, downsample: nn.Sequential | None) -> Tensor:
    if downsample is None:
        return x
    conv, norm = downsample
    assert isinstance(conv, nn.Conv2d)
    assert isinstance(norm, nn.BatchNorm2d)
    return conv_norm(x, conv, norm, relu=False)


class ResNet(nn.Module, AcceptsPaddedChannels):
    """A residual network of four stages.

    Args:
        block: `BasicBlock` (18 and 34 layers) or `Bottleneck` (50).
        depths: the number of blocks of each stage.
        num_classes: the number of outputs.
        in_channels: the number of channels of the images.
        stem: ``"cifar"``, a 3×3 convolution that keeps the size, or ``"imagenet"``, a 7×7
            convolution and a pooling that quarter it.
    """

    def __init__(
        self,
        block: type[BasicBlock | Bottleneck],
        depths: Sequence[int],
        num_classes: int,
        in_channels: int = 3,
        stem: str = "cifar",
    ) -> None:
        super().__init__()
        self.stem = stem
        large = stem == "imagenet"
        self.conv1 = _conv(in_channels, 64, 7 if large else 3, 2 if large else 1)
        self.bn1 = nn.BatchNorm2d(64)
        stages = [nn.Sequential() for _ in depths]
        inputs = 64
        for number, (stage, depth) in enumerate(zip(stages, depths, strict=True)):
            width = 64 << number
            for i in range(depth):
                stage.append(block(inputs, width, stride=2 if number and not i else 1))
                inputs = width * block.expansion
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.fc = nn.Linear(inputs, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = conv_norm(x, self.conv1, self.bn1)
        if self.stem == "imagenet":
            x = F.max_pool2d(x, 3, 2, 1)
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        return self.fc(x.mean((2, 3)))  # type: ignore[no-any-return]
