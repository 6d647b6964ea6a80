"""The paper's networks, initialised as the paper's were, from a seed.

>>> from noiseproof import models
>>> network = models.build("cnn8", num_classes=10, in_channels=3)
"""

from ._build import build, names
from ._cnn import CNN4, CNN8, MLP
from ._layers import Padding, padded
from ._resnet import ResNet

__all__ = ["CNN4", "CNN8", "MLP", "Padding", "ResNet", "build", "names", "padded"]
