"""The networks of the paper with its initialization, from a seed; networks of the user's own.

>>> from noiseproof import models
>>> network = models.build("cnn8", num_classes=10, in_channels=3)
"""

from ._build import build, names
from ._cnn import CNN4, CNN8, MLP
from ._factory import (
    channels_last_pays,
    check_network,
    copy_of,
    from_factory,
    imported,
    not_logits,
    takes_channels_last,
    unwrapped,
)
from ._layers import AcceptsPaddedChannels, padded_channels
from ._resnet import ResNet
from ._weights import WeightsWarning, freeze, frozen_norms, load_weights

__all__ = [
    "CNN4",
    "CNN8",
    "MLP",
    "AcceptsPaddedChannels",
    "ResNet",
    "WeightsWarning",
    "build",
    "channels_last_pays",
    "check_network",
    "copy_of",
    "freeze",
    "from_factory",
    "frozen_norms",
    "imported",
    "load_weights",
    "names",
    "not_logits",
    "padded_channels",
    "takes_channels_last",
    "unwrapped",
]
