"""The 1,797 handwritten digits of 8x8 pixels that come with the package (see digits.md)."""

from __future__ import annotations

from importlib import resources

import numpy as np
import torch

from ..catalogue import DATASETS
from ._dataset import Dataset, Split

TRAIN, TEST = DATASETS["digits"].sizes
MEAN, STD = 0.3058, 0.3762  # of the training images, as a test checks


def load_digits() -> Dataset:
    """Read the digits from the package; the training images come first in the file."""
    with (resources.files(__package__) / "digits.npz").open("rb") as file, np.load(file) as stored:
        images, labels = stored["images"], stored["labels"]
    grey = (images.astype(np.int64) * 255 + 8) // 16  # stored as published, 0 to 16
    pixels = torch.from_numpy(grey.astype(np.uint8)).unsqueeze(1)
    target = torch.from_numpy(labels.astype(np.int64))
    train, test = Split(pixels[:TRAIN], target[:TRAIN]), Split(pixels[TRAIN:], target[TRAIN:])
    return Dataset("digits", train, test, DATASETS["digits"].classes, (MEAN,), (STD,))
