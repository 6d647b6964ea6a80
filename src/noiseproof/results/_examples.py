"""A few training images with a wrong label, and what the trained network says of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from .._errors import UsageError
from .._files import write_atomically
from ._store import EXAMPLES, Folder

MAX_EXAMPLES = 6
MAX_NAME = 100  # characters of a class
_MAX_PICTURE = 40_000  # characters of a picture: a PNG of 64 by 64 pixels has fewer
_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Example:
    """A training image whose given label is wrong."""

    index: int
    """in the training set of the run"""
    given: str
    """the class that its label says"""
    true: str
    """the class that it is of"""
    predicted: str
    """the class that the trained network says"""
    probability: float
    """of that class"""
    picture: str
    """the image as a PNG, in base64"""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            expected = {"int": int, "str": str, "float": float}[str(field.type)]
            if type(value) is not expected:
                raise UsageError(f"{field.name} is {value!r:.60}, not a {expected.__name__}")
        if not 0 <= self.probability <= 1:
            raise UsageError(f"the probability is {self.probability}")
        if max(map(len, (self.given, self.true, self.predicted))) > MAX_NAME:
            raise UsageError(f"a class has a name of more than {MAX_NAME} characters")
        if len(self.picture) > _MAX_PICTURE or not _is_png(self.picture):
            raise UsageError("a picture is no small PNG")


def _is_png(text: str) -> bool:
    try:
        return base64.b64decode(text, validate=True).startswith(_PNG)
    except ValueError:
        return False


def write_examples(folder: Folder, examples: Sequence[Example]) -> None:
    """Keep them in the folder of their run; bundles leave them out."""
    content = {"examples": [asdict(example) for example in examples]}
    write_atomically(folder.path / EXAMPLES, json.dumps(content).encode())


def read_examples(source: Path) -> list[Example]:
    """Those in the folder of a run; none where it has none, or where the source is a bundle.

    Raises:
        UsageError: the file is damaged.
    """
    content: Any = Folder(source).read_json(EXAMPLES)
    if content is None:
        return []
    try:
        found = [Example(**values) for values in content["examples"][:MAX_EXAMPLES]]
    except (KeyError, TypeError, ValueError) as error:
        why = f" ({error})" if isinstance(error, UsageError) else ""
        raise UsageError(f"{source / EXAMPLES} is damaged{why}; delete the file") from None
    return found
