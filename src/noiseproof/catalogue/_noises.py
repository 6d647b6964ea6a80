"""Kinds of label noise: what a run, a table and a report may call them.

To add a kind that is drawn, add an entry to `NOISES` and the function of that name to
`noiseproof.noise`. To add human labels, add an entry with the file and the column they are in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ._files import CIFAR10N, CIFAR100N, FileSet

CLEAN = "none"
GIVEN = "given"
NoiseGroup = Literal["clean", "drawn", "human", "given"]


@dataclass(frozen=True)
class NoiseEntry:
    """A kind of label noise.

    Attributes:
        title: what a table or a figure calls it.
        about: what it is, in a few words.
        group: ``clean`` labels; noise that is ``drawn`` at a rate; labels that ``human`` annotators
            gave; labels as they are ``given`` with the data, of an unknown rate.
        variants: the ways to draw it: as the paper says, and as its authors' code does.
        function: of noise that is drawn, the function of `noiseproof.noise`.
        file: of human labels, the key into `HUMAN_FILES`.
        column: of human labels, the column in that file.
    """

    title: str
    about: str
    group: NoiseGroup
    variants: tuple[str, ...] = ("paper",)
    function: str = ""
    file: str = ""
    column: str = ""

    @property
    def has_rate(self) -> bool:
        """Whether its rate can be chosen."""
        return self.group == "drawn"


@dataclass(frozen=True)
class HumanLabels:
    """A file of labels that people gave to the training images of a data set."""

    files: FileSet
    dataset: str
    size: int
    num_classes: int
    columns: tuple[str, ...]  # the digest is over these


HUMAN_FILES = {
    "cifar10n": HumanLabels(
        CIFAR10N, "cifar10", 50000, 10,
        ("clean_label", "aggre_label", "worse_label", "random_label1", "random_label2",
         "random_label3"),
    ),
    "cifar100n": HumanLabels(CIFAR100N, "cifar100", 50000, 100, ("clean_label", "noisy_label")),
}  # fmt: skip

_BOTH = ("paper", "authors")

NOISES: dict[str, NoiseEntry] = {
    CLEAN: NoiseEntry("clean", "clean labels", "clean"),
    "symmetric": NoiseEntry(
        "symmetric", "to any other class", "drawn", _BOTH, function="symmetric"
    ),
    "asymmetric": NoiseEntry(
        "asymmetric", "to the class that is mistaken for it", "drawn", _BOTH, function="asymmetric"
    ),
    "pairflip": NoiseEntry("pairflip", "to the next class", "drawn", function="pairflip"),
    "instance": NoiseEntry(
        "instance", "where the image looks like it", "drawn", function="instance_dependent"
    ),
    "cifar10n-worst": NoiseEntry(
        "CIFAR-10N worst", "a wrong label where one of three people erred", "human",
        file="cifar10n", column="worse_label",
    ),
    "cifar10n-aggregate": NoiseEntry(
        "CIFAR-10N aggregate", "what most of three people said", "human",
        file="cifar10n", column="aggre_label",
    ),
    "cifar10n-random1": NoiseEntry(
        "CIFAR-10N random1", "what the first of three people said", "human",
        file="cifar10n", column="random_label1",
    ),
    "cifar10n-random2": NoiseEntry(
        "CIFAR-10N random2", "what the second of three people said", "human",
        file="cifar10n", column="random_label2",
    ),
    "cifar10n-random3": NoiseEntry(
        "CIFAR-10N random3", "what the third of three people said", "human",
        file="cifar10n", column="random_label3",
    ),
    "cifar100n": NoiseEntry(
        "CIFAR-100N", "what one person said", "human", file="cifar100n", column="noisy_label"
    ),
    GIVEN: NoiseEntry("labels as given", "as they come with the data, rate unknown", "given"),
}  # fmt: skip


def noise_group(noise: str) -> NoiseGroup:
    """The group of a kind of noise; labels of a name that is not known are as given."""
    return NOISES[noise].group if noise in NOISES else "given"


def noise_title(noise: str, rate: float | None = None) -> str:
    """The display name of a noise, with its rate where one is given and the noise has one.

    >>> noise_title("symmetric", 0.4), noise_title("none", 0), noise_title("cifar10n-worst", 0)
    ('symmetric 0.4', 'clean', 'CIFAR-10N worst')
    >>> noise_title("symmetric")
    'symmetric'
    """
    if noise not in NOISES:
        return noise
    entry = NOISES[noise]
    return f"{entry.title} {rate:g}" if entry.has_rate and rate is not None else entry.title


def labels_title(noise: str) -> str:
    """The labels of a noise in words, for a title or a sentence.

    >>> labels_title("symmetric"), labels_title("none"), labels_title("given")
    ('symmetric noise', 'clean labels', 'labels as given')
    """
    titles = {"clean": "clean labels", "human": "human labels", "given": NOISES[GIVEN].title}
    return titles.get(noise_group(noise), f"{noise} noise")
