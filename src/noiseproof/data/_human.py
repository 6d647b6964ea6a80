"""Labels that people gave: CIFAR-10N and CIFAR-100N."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from .._hints import match_name
from ..catalogue import HUMAN_FILES, NOISES, HumanLabels
from ..noise import NoisyLabels, from_labels
from ._places import obtain
from ._readers import check_digest, check_keys, check_labels
from ._torch_files import read_pt


def human(
    name: str, root: str | os.PathLike[str] | None = None, download: bool = True
) -> NoisyLabels:
    """The labels that people gave to the training images of CIFAR, as noise.

    They are in the order of the images of ``load("cifar10")`` and ``load("cifar100")``. The files
    may be used for what is not commercial (CC BY-NC 4.0).

    Args:
        name: ``"cifar10n-worst"``, ``"cifar10n-aggregate"``, ``"cifar10n-random1"`` to
            ``"cifar10n-random3"``, or ``"cifar100n"``.
        root: the folder to look in, which has to be there; without it ``NOISEPROOF_DATA``, else
            the user's cache folder.
        download: whether to download what is not there; needs ``pip install "noiseproof[data]"``.

    References:
        Wei et al., Learning with Noisy Labels Revisited, ICLR 2022
    """
    entry = NOISES[match_name(name, human_names(), "human labels")]
    source = HUMAN_FILES[entry.file]
    labels = obtain(source.files, root, download, lambda files: _read(files, source))
    clean, noisy = (torch.from_numpy(labels[c]) for c in ("clean_label", entry.column))
    return from_labels(clean, noisy, num_classes=source.num_classes)


def human_names() -> dict[str, str]:
    """The labels that ``human`` knows, and what they are.

    >>> human_names()["cifar10n-aggregate"]
    'what most of three people said'
    """
    return {name: entry.about for name, entry in NOISES.items() if entry.group == "human"}


def _read(files: dict[str, Path], source: HumanLabels) -> dict[str, NDArray[np.int64]]:
    ((name, path),) = files.items()
    values = source.size * len(source.columns)
    content = read_pt(path, 32 * values + (1 << 16), max_values=values)
    check_keys(path, content, source.columns)
    labels = {
        c: check_labels(path, content[c], source.size, source.num_classes) for c in source.columns
    }
    check_digest(path, source.files.digests[name], *labels.values())
    return labels
