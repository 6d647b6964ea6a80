"""Networks by name. `noiseproof.models` has the function of each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NetworkEntry:
    """A network.

    Attributes:
        about: what it is, in a few words.
        image_size: the width in pixels of the images that it was made for.
        takes: the kinds of input that it is made for.
        runs_per_gpu: how many runs of it one large GPU trains side by side and gains from it.
    """

    about: str
    image_size: int
    runs_per_gpu: int = 4
    takes: tuple[str, ...] = ("image",)


NETWORKS = {
    "mlp": NetworkEntry(
        "a perceptron with two hidden layers", 8, runs_per_gpu=16, takes=("image", "features")
    ),
    "linear": NetworkEntry(
        "a linear classifier, for vectors of a pretrained encoder",
        8,
        runs_per_gpu=16,
        takes=("image", "features"),
    ),
    "bag": NetworkEntry(
        "the mean of a text's word embeddings, and a linear classifier",
        0,
        runs_per_gpu=16,
        takes=("text", "tokens"),
    ),
    "cnn4": NetworkEntry("the paper's 4-layer network", 28, runs_per_gpu=16),
    "cnn8": NetworkEntry("the paper's 8-layer network", 32, runs_per_gpu=8),
    "resnet18": NetworkEntry("ResNet-18 for 32x32 images", 32),
    "resnet34": NetworkEntry("ResNet-34 for 32x32 images", 32),
    "resnet50": NetworkEntry("ResNet-50 for 32x32 images", 32),
    "resnet18-imagenet": NetworkEntry("ResNet-18 as for ImageNet", 224),
    "resnet50-imagenet": NetworkEntry("ResNet-50 as for ImageNet", 224),
}


def runs_per_gpu(model: str) -> int:
    """How many runs of a network are trained side by side; 4 for one that is not listed."""
    return NETWORKS[model].runs_per_gpu if model in NETWORKS else 4
