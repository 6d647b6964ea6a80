"""The networks of the paper with its initialization, from a seed.

>>> from noiseproof import models
>>> network = models.build("cnn8", num_classes=10, in_channels=3)
"""

from ._build import build, names
from ._cnn import CNN4, CNN8, MLP
from ._layers import AcceptsPaddedChannels, padded_channels
from ._resnet import ResNet

__all__ = [
    "CNN4",
    "CNN8",
    "MLP",
    "AcceptsPaddedChannels",
    "ResNet",
    "build",
    "names",
    "padded_channels",
]
