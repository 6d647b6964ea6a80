"""Inputs and labels as tensors, from published files or one's own, and batches of them.

>>> from noiseproof import data
>>> digits = data.load("digits")
>>> digits
Dataset('digits', 1437 + 360 images 1x8x8, 10 classes)

The names here are the public ones; the files beside this one are private.
"""

from ..sources._decode import UnreadableError, read_image
from ._arrays import from_arrays
from ._augment import Augment
from ._dataset import Dataset, Split
from ._errors import DamagedFileError, DataError, MissingDataError
from ._human import human, human_names
from ._keep import Keeping, StreamingNote
from ._load import load, names
from ._loader import Batch, Loader
from ._own import from_dataset, from_folder, from_table, load_content, load_source
from ._statistics import channel_statistics
from ._stream import (
    ImageFiles,
    Inputs,
    content_digest,
    decoded_before,
    parts_of,
    resident,
    select,
)
from ._text import TextCoding

__all__ = [
    "Augment",
    "Batch",
    "DamagedFileError",
    "DataError",
    "Dataset",
    "ImageFiles",
    "Inputs",
    "Keeping",
    "Loader",
    "MissingDataError",
    "Split",
    "StreamingNote",
    "TextCoding",
    "UnreadableError",
    "channel_statistics",
    "content_digest",
    "decoded_before",
    "from_arrays",
    "from_dataset",
    "from_folder",
    "from_table",
    "human",
    "human_names",
    "load",
    "load_content",
    "load_source",
    "names",
    "parts_of",
    "read_image",
    "resident",
    "select",
]
