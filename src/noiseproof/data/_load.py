"""Data sets by name."""

from __future__ import annotations

import os

import numpy as np
import torch
from numpy.typing import NDArray

from .._hints import match_name
from ..catalogue import DATASETS
from ._dataset import Dataset, Split
from ._digits import load_digits
from ._keep import Keeping
from ._lists import load_lists
from ._places import obtain
from ._readers import read_cifar_files, read_idx_files


def load(
    name: str = "digits",
    root: str | os.PathLike[str] | None = None,
    download: bool = True,
    *,
    keeping: Keeping | None = None,
    skip_unreadable: bool = False,
) -> Dataset:
    """A data set by name, as tensors.

    The files are read as their authors publish them or as torchvision leaves them. Where they are
    missing they are downloaded, into a folder ``noiseproof`` inside the root. Everything that is
    read is held against a digest of the images and labels.

    Args:
        name: ``"digits"``, which comes with the package, ``"mnist"``, ``"fashion-mnist"``,
            ``"cifar10"`` or ``"cifar100"``; or images that have to be supplied: ``"webvision"``,
            ``"webvision-val"``, ``"webvision-full"``, ``"webvision-full-val"``, ``"clothing1m"``.
        root: the folder to look in, which has to be there; without it ``NOISEPROOF_DATA``, else
            the user's cache folder.
        download: whether to download what is not there; needs ``pip install "noiseproof[data]"``.
        keeping: of image files, whether they are decoded as they are read, and where they are kept.
        skip_unreadable: of image files, go on without those that cannot be read, with a warning.

    Raises:
        MissingDataError: the files are not there, and could not be downloaded.
        DamagedFileError: a file does not hold what was published.

    >>> digits = load("digits")
    >>> digits
    Dataset('digits', 1437 + 360 images 1x8x8, 10 classes)
    >>> digits.train.images.dtype, digits.train.labels[:5].tolist()
    (torch.uint8, [2, 3, 7, 2, 3])
    """
    name = match_name(name, DATASETS, "data set")
    entry = DATASETS[name]
    if entry.lists is not None:
        return load_lists(name, entry, entry.lists, root, keeping or Keeping(), skip_unreadable)
    if entry.files is None:
        return load_digits()
    read = read_idx_files if entry.layout == "idx" else read_cifar_files
    train, test = obtain(entry.files, root, download, lambda files: read(files, entry))
    return Dataset(name, _split(*train), _split(*test), entry.classes, entry.mean, entry.std)


def _split(images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> Split:
    return Split(torch.from_numpy(images), torch.from_numpy(labels).long())


def names() -> dict[str, str]:
    """The data sets that ``load`` knows, and what is in each.

    >>> list(names())  # doctest: +NORMALIZE_WHITESPACE
    ['digits', 'mnist', 'fashion-mnist', 'cifar10', 'cifar100', 'webvision', 'webvision-val',
     'webvision-full', 'webvision-full-val', 'clothing1m']
    >>> names()["cifar10"]
    '50,000 + 10,000 images 3x32x32, 10 classes'
    """
    return {name: entry.summary for name, entry in DATASETS.items()}
