"""The 1,797 handwritten digits of 8x8 pixels that come with the package (see digits.md)."""

from __future__ import annotations

from importlib import resources

import numpy as np
import torch

from ._dataset import Dataset, Split
from ._sources import DIGITS

TRAIN, TEST = 1437, 360
MEAN, STD = 0.3058, 0.3762  # of the images to train on; a test holds them to it


def load_digits() -> Dataset:
    """Read them from the package: the file has the images to train on first."""
    with (resources.files(__package__) / "digits.npz").open("rb") as file, np.load(file) as stored:
        images, labels = stored["images"], stored["labels"]
    grey = (images.astype(np.int64) * 255 + 8) // 16  # stored as published, 0 to 16
    pixels = torch.from_numpy(grey.astype(np.uint8)).unsqueeze(1)
    target = torch.from_numpy(labels.astype(np.int64))
    train, test = Split(pixels[:TRAIN], target[:TRAIN]), Split(pixels[TRAIN:], target[TRAIN:])
    return Dataset("digits", train, test, DIGITS, (MEAN,), (STD,))
