"""Data sets by name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray

from .._hints import nearest
from ._dataset import Dataset, Split
from ._digits import TEST, TRAIN, load_digits
from ._places import obtain
from ._readers import read_cifar_files, read_idx_files
from ._sources import IMAGES


def load(
    name: str = "digits", root: str | os.PathLike[str] | None = None, download: bool = True
) -> Dataset:
    """A data set by name, as tensors.

    The files are read as their authors publish them or as torchvision leaves them. Where they are
    missing they are downloaded, into a folder ``noiseproof`` inside the root. Everything that is
    read is held against a digest of the images and labels.

    Args:
        name: ``"digits"``, which comes with the package, ``"mnist"``, ``"fashion-mnist"``,
            ``"cifar10"`` or ``"cifar100"``.
        root: the folder to look in; without it ``NOISEPROOF_DATA``, else the user's cache folder.
        download: whether to download what is not there; needs ``pip install "noiseproof[data]"``.

    Raises:
        MissingDataError: the files are not there, and could not be downloaded.
        DamagedFileError: a file does not hold what was published.

    >>> digits = load("digits")
    >>> digits
    Dataset('digits', 1437 + 360 images 1x8x8, 10 classes)
    >>> digits.train.images.dtype, digits.train.labels[:5].tolist()
    (torch.uint8, [2, 3, 7, 2, 3])
    """
    name = known(name, names(), "data set")
    if name == "digits":
        return load_digits()
    source = IMAGES[name]
    read = read_idx_files if source.layout == "idx" else read_cifar_files
    train, test = obtain(source.files, root, download, lambda files: read(files, source))
    return Dataset(name, _split(*train), _split(*test), source.classes, source.mean, source.std)


def _split(images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> Split:
    return Split(torch.from_numpy(images), torch.from_numpy(labels).long())


def names() -> dict[str, str]:
    """The data sets that ``load`` knows, and what is in each.

    >>> list(names())
    ['digits', 'mnist', 'fashion-mnist', 'cifar10', 'cifar100']
    >>> names()["cifar10"]
    '50,000 + 10,000 images 3x32x32, 10 classes'
    """
    rows = {"digits": ((TRAIN, TEST), (1, 8, 8), 10)}
    rows |= {n: (s.sizes, s.shape, len(s.classes)) for n, s in IMAGES.items()}
    return {
        name: f"{train:,} + {test:,} images {c}x{h}x{w}, {classes} classes"
        for name, ((train, test), (c, h, w), classes) in rows.items()
    }


def known(name: str, names: Iterable[str], what: str) -> str:
    """The name as it is listed, however it is spelt: ``CIFAR-10``, ``fashion_mnist``."""
    listed = {_bare(one): one for one in names}
    if (bare := _bare(name)) in listed:
        return listed[bare]
    hint = nearest(str(name).lower(), listed.values())
    raise ValueError(
        f"unknown {what} {name!r}{hint}; the known ones are {', '.join(listed.values())}"
    )


def _bare(name: str) -> str:
    return re.sub(r"[-_ ]", "", str(name).lower())
