"""Data sets: names, files, classes, and how the paper and its authors' code trained on each.

To add a data set, add an entry to `DATASETS`. Files in a layout that `noiseproof.data` cannot read
yet need a reader there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .._imports import without_digest
from ._files import CIFAR10, CIFAR100, FASHION_MNIST, MNIST, FileSet
from ._lists import (
    CLOTHING1M,
    WEBVISION,
    WEBVISION_FULL,
    WEBVISION_FULL_VAL,
    WEBVISION_VAL,
    ImageLists,
)


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
    optimizer: str = "sgd"
    crop_size: int = 0  # the side of what is cut out of larger images; 0 for the whole image
    crop_scale: float = 0.0  # the smallest share of an image that is brought to crop_size
    jitter: float = 0.0  # of colours


@dataclass(frozen=True)
class DatasetEntry:
    """A data set of images.

    Attributes:
        title: its name as papers print it.
        shape: of an image: channels, height, width.
        sizes: how many images there are to train on and to test on.
        classes: the name of each label.
        protocols: the settings to train with, of the paper and of its authors' code.
        mean: of each channel, pixels scaled to 0..1; the four digits that the field uses.
        std: of each channel, likewise.
        confusions: for asymmetric noise, which class is mistaken for which: as the paper says, and
            as its authors' code has it.
        noise: of a run that names none.
        files: where it is published; None if it comes with this package or cannot be loaded.
        layout: of the files: ``"idx"`` or ``"cifar"``.
        lists: of images that have to be supplied, their layout.
        like: the data set whose published settings of losses it takes.
    """

    title: str
    shape: tuple[int, int, int]
    sizes: tuple[int, int]
    classes: tuple[str, ...]
    protocols: Mapping[str, Protocol]
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    confusions: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    noise: str = "symmetric"
    files: FileSet | None = None
    layout: str = ""
    lists: ImageLists | None = None
    like: str = ""

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def summary(self) -> str:
        """Sizes in words: ``50,000 + 10,000 images 3x32x32, 10 classes``."""
        train, test = self.sizes
        pixels = "x".join(map(str, self.shape))
        return f"{train:,} + {test:,} images {pixels}, {self.num_classes} classes"


def _next_of_group(groups: Iterable[Sequence[int]]) -> dict[int, int]:
    """Each class to the next of its group, the last to the first."""
    return {a: b for g in groups for a, b in zip(g, [*g[1:], g[0]], strict=True)}


_DIGITS = tuple("0123456789")
_FASHION = (
    "T-shirt/top", "trouser", "pullover", "dress", "coat",
    "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip
_TEN = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
_HUNDRED = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle",
    "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle",
    "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch", "crab", "crocodile", "cup",
    "dinosaur", "dolphin", "elephant", "flatfish", "forest", "fox", "girl", "hamster", "house",
    "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion", "lizard", "lobster", "man",
    "maple_tree", "motorcycle", "mountain", "mouse", "mushroom", "oak_tree", "orange", "orchid",
    "otter", "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy",
    "porcupine", "possum", "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal",
    "shark", "shrew", "skunk", "skyscraper", "snail", "snake", "spider", "squirrel", "streetcar",
    "sunflower", "sweet_pepper", "table", "tank", "telephone", "television", "tiger", "tractor",
    "train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf", "woman",
    "worm",
)  # fmt: skip

# 7 -> 1, 2 -> 7, 5 <-> 6, 3 -> 8
_CONFUSED_DIGITS = {7: 1, 2: 7, 5: 6, 6: 5, 3: 8}
# truck -> automobile, bird -> airplane, deer -> horse, cat <-> dog, in the authors' order
_CONFUSED_TEN = {9: 1, 2: 0, 3: 5, 5: 3, 4: 7}
# Fine labels of each superclass of CIFAR-100, in the order of the coarse labels.
_SUPERCLASSES = (
    (4, 30, 55, 72, 95),  # aquatic mammals
    (1, 32, 67, 73, 91),  # fish
    (54, 62, 70, 82, 92),  # flowers
    (9, 10, 16, 28, 61),  # food containers
    (0, 51, 53, 57, 83),  # fruit and vegetables
    (22, 39, 40, 86, 87),  # household electrical devices
    (5, 20, 25, 84, 94),  # household furniture
    (6, 7, 14, 18, 24),  # insects
    (3, 42, 43, 88, 97),  # large carnivores
    (12, 17, 37, 68, 76),  # large man-made outdoor things
    (23, 33, 49, 60, 71),  # large natural outdoor scenes
    (15, 19, 21, 31, 38),  # large omnivores and herbivores
    (34, 63, 64, 66, 75),  # medium-sized mammals
    (26, 45, 77, 79, 99),  # non-insect invertebrates
    (2, 11, 35, 46, 98),  # people
    (27, 29, 44, 78, 93),  # reptiles
    (36, 50, 65, 74, 80),  # small mammals
    (47, 52, 56, 59, 96),  # trees
    (8, 13, 48, 58, 90),  # vehicles 1
    (41, 69, 81, 85, 89),  # vehicles 2
)
_CONFUSED_HUNDRED = {
    "paper": _next_of_group(_SUPERCLASSES),
    # what the authors' code does: the next of five consecutive fine labels
    "authors": _next_of_group([range(i, i + 5) for i in range(0, 100, 5)]),
}

# Not the paper's: the smallest setting in which its losses part.
_ON_DIGITS = Protocol("mlp", epochs=40, lr=0.01, weight_decay=5e-3, batch_size=32)
_ON_MNIST = Protocol("cnn4", epochs=50, lr=0.01, weight_decay=1e-3)
_ON_CIFAR10 = Protocol("cnn8", epochs=120, lr=0.01, weight_decay=1e-4, crop=4, flip=True)
_ON_CIFAR100 = Protocol(
    "resnet34", epochs=200, lr=0.1, weight_decay=1e-5, crop=4, flip=True, rotate=20.0
)
_ON_WEBVISION = Protocol(
    "resnet50-imagenet", epochs=250, lr=0.4, weight_decay=3e-5, batch_size=512, nesterov=True,
    schedule="exponential", flip=True, crop_size=224, crop_scale=0.08, jitter=0.4,
)  # fmt: skip
# Not the paper's. Others start from weights of ImageNet, which --weights names.
_ON_CLOTHING = Protocol(
    "resnet50-imagenet", epochs=10, lr=2e-3, weight_decay=1e-3, batch_size=64, flip=True,
    crop_size=224,
)  # fmt: skip
_IMAGENET_MEAN, _IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_GARMENTS = (
    "T-Shirt", "Shirt", "Knitwear", "Chiffon", "Sweater", "Hoodie", "Windbreaker", "Jacket",
    "Downcoat", "Suit", "Shawl", "Dress", "Vest", "Underwear",
)  # fmt: skip


def _webvision(
    title: str, sizes: tuple[int, int], lists: ImageLists, like: str = "webvision"
) -> DatasetEntry:
    return DatasetEntry(
        title=title, shape=(3, 256, 256), sizes=sizes,
        classes=tuple(map(str, range(lists.labels))),
        protocols={"paper": _ON_WEBVISION, "authors": _ON_WEBVISION},
        noise="given", lists=lists, like=like, mean=_IMAGENET_MEAN, std=_IMAGENET_STD,
    )  # fmt: skip


DATASETS: dict[str, DatasetEntry] = {
    "digits": DatasetEntry(
        title="Digits", shape=(1, 8, 8), sizes=(1437, 360), classes=_DIGITS,
        protocols={"paper": _ON_DIGITS, "authors": _ON_DIGITS},
        confusions={"paper": _CONFUSED_DIGITS, "authors": _CONFUSED_DIGITS},
    ),
    "mnist": DatasetEntry(
        title="MNIST", shape=(1, 28, 28), sizes=(60000, 10000), classes=_DIGITS,
        mean=(0.1307,), std=(0.3081,), files=MNIST, layout="idx",
        protocols={
            "paper": _ON_MNIST,
            "authors": replace(_ON_MNIST, weight_decay=1e-2, nesterov=True, lr_floor=1e-3),
        },
        confusions={"paper": _CONFUSED_DIGITS, "authors": _CONFUSED_DIGITS},
    ),
    "fashion-mnist": DatasetEntry(
        title="Fashion-MNIST", shape=(1, 28, 28), sizes=(60000, 10000), classes=_FASHION,
        mean=(0.2860,), std=(0.3530,), files=FASHION_MNIST, layout="idx",
        protocols={"paper": _ON_MNIST, "authors": _ON_MNIST},
    ),
    "cifar10": DatasetEntry(
        title="CIFAR-10", shape=(3, 32, 32), sizes=(50000, 10000), classes=_TEN,
        mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2616), files=CIFAR10, layout="cifar",
        protocols={"paper": _ON_CIFAR10, "authors": _ON_CIFAR10},
        confusions={"paper": _CONFUSED_TEN, "authors": _CONFUSED_TEN},
    ),
    "cifar100": DatasetEntry(
        title="CIFAR-100", shape=(3, 32, 32), sizes=(50000, 10000), classes=_HUNDRED,
        mean=(0.5071, 0.4865, 0.4409), std=(0.2673, 0.2564, 0.2762), files=CIFAR100, layout="cifar",
        protocols={"paper": _ON_CIFAR100, "authors": replace(_ON_CIFAR100, model="resnet50")},
        confusions=_CONFUSED_HUNDRED,
    ),
    # Tested on ILSVRC12's validation images, or on WebVision's own.
    "webvision": _webvision("WebVision-mini", (65944, 2500), WEBVISION, like=""),
    "webvision-val": _webvision("WebVision-mini (own test)", (65944, 2500), WEBVISION_VAL),
    "webvision-full": _webvision("WebVision", (2439574, 50000), WEBVISION_FULL),
    "webvision-full-val": _webvision("WebVision (own test)", (2439574, 50000), WEBVISION_FULL_VAL),
    "clothing1m": DatasetEntry(
        title="Clothing1M", shape=(3, 256, 256), sizes=(1000000, 10526), classes=_GARMENTS,
        protocols={"paper": _ON_CLOTHING, "authors": _ON_CLOTHING}, noise="given",
        lists=CLOTHING1M, mean=_IMAGENET_MEAN, std=_IMAGENET_STD,
    ),
}  # fmt: skip

PROTOCOLS = ("paper", "authors")
"""Where settings that are not given come from."""


def protocol_of(name: str, dataset: str) -> Protocol:
    """The settings of a protocol for a data set; CIFAR-10's for one that is not listed."""
    return DATASETS[dataset if dataset in DATASETS else "cifar10"].protocols[name]


def dataset_title(dataset: str) -> str:
    """The name of a data set as papers print it; one that is not listed is called by its name.

    >>> dataset_title("cifar10"), dataset_title("reviews.csv@3fa9c1d20b")
    ('CIFAR-10', 'reviews.csv')
    """
    return DATASETS[dataset].title if dataset in DATASETS else without_digest(dataset)
