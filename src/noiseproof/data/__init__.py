"""Images and labels as tensors, from published files, and batches of them on the device.

>>> from noiseproof import data
>>> digits = data.load("digits")
>>> digits
Dataset('digits', 1437 + 360 images 1x8x8, 10 classes)

The names here are the public ones; the files beside this one are private.
"""

from ._augment import Augment
from ._dataset import Dataset, Split, from_arrays
from ._errors import DamagedFileError, DataError, MissingDataError
from ._human import human, human_names
from ._load import load, names
from ._loader import Batch, Loader

__all__ = [
    "Augment",
    "Batch",
    "DamagedFileError",
    "DataError",
    "Dataset",
    "Loader",
    "MissingDataError",
    "Split",
    "from_arrays",
    "human",
    "human_names",
    "load",
    "names",
]
