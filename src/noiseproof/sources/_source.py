"""A source: its form, its path, and which columns are what."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from .._errors import UsageError

FORMS = ("folder", "csv", "parquet", "npz")
LABEL = "label"  # the column of the labels, where none is named
_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".gz": "csv", ".parquet": "parquet", ".npz": "npz"}
_SPREADSHEETS = (".xlsx", ".xls", ".ods")


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where data lies, and how it is read.

    Attributes:
        form: ``folder`` (one folder a class), ``csv``, ``parquet`` or ``npz``.
        path: of the folder or file to train on.
        test: of a folder or file of the same form to test on.
        label: the column of the labels. Default: ``label``; of an npz file ``y`` or ``labels``.
        text: the column of texts, if texts are to be classified.
        image: the column of image files, relative to the table, if images are.
        truth: the column of the true labels, where they are known.
        ignore: columns that are no features.
        image_size: the side in pixels that images are brought to; 0 for what suits them.
        skip_unreadable: whether to go on without what cannot be read.
    """

    form: str
    path: Path
    test: Path | None = None
    label: str = ""
    text: str = ""
    image: str = ""
    truth: str = ""
    ignore: tuple[str, ...] = ()
    image_size: int = 0
    skip_unreadable: bool = field(default=False)

    def __post_init__(self) -> None:
        if self.text and self.image:
            raise UsageError("a table has texts or images to classify; give text or image alone")
        if self.form in ("csv", "parquet") and (self.label or "label") in (self.text, self.image):
            raise UsageError(
                f"column {self.label or 'label'!r} has the labels, and cannot be what is classified"
            )
        if self.form not in ("csv", "parquet"):
            for name in ("text", "image", "ignore"):
                if getattr(self, name):
                    raise UsageError(f"{name} names a column of a table, and {self} is none")
        if self.form == "folder" and (self.label or self.truth):
            named = "label" if self.label else "truth"
            raise UsageError(
                f"{named} names a column, and {self} has its labels as names of folders"
            )

    def __str__(self) -> str:
        return f"{self.form}:{self.path}"

    def to_json(self) -> str:
        """A text that `from_json` reads, also in another folder."""
        values = {name: value for name, value in vars(self).items() if value}
        for name in ("path", "test"):
            if name in values:
                values[name] = str(Path(values[name]).absolute())
        return json.dumps(values)

    @classmethod
    def from_json(cls, text: str) -> Source:
        values = json.loads(text)
        for name in ("path", "test"):
            if name in values:
                values[name] = Path(values[name])
        return cls(**values | {"ignore": tuple(values.get("ignore", ()))})

    @property
    def name(self) -> str:
        """What tables call it: the last part of its path."""
        return self.path.resolve().name or "data"


def is_source(dataset: str) -> bool:
    """Whether a text names data of one's own and no data set that is known."""
    return dataset.partition(":")[0] in FORMS and ":" in dataset


def source_named(dataset: str, *, test: str = "", **options: object) -> Source:
    """The source that a text names, with the columns to read.

    >>> source_named("csv:reviews.csv", label="stars", text="review").form
    'csv'
    """
    form, _, path = dataset.partition(":")
    if not path:
        raise UsageError(f"{dataset!r} names no {'folder' if form == 'folder' else 'file'}")
    values = {name: value for name, value in options.items() if value is not None}
    tested = _path_of(test.removeprefix(f"{form}:")) if test else None
    return Source(form=form, path=_path_of(path), test=tested, **values)  # type: ignore[arg-type]


def _path_of(text: str) -> Path:
    """A path that the system can be asked about."""
    try:
        path = Path(text).expanduser()
        path.exists()
    except (OSError, ValueError, RuntimeError):
        raise UsageError(f"{text!r:.100} cannot be the name of a file") from None
    return path


def source_at(path: str) -> str:
    """The text that names a file or folder, where it is there: ``csv:x.csv`` for ``x.csv``.

    >>> source_at("no such thing")
    ''
    """
    try:
        place = Path(path).expanduser()
        form = "folder" if place.is_dir() else _SUFFIXES.get(place.suffix.lower(), "")
        return f"{form}:{path}" if form and place.exists() else ""
    except (OSError, ValueError, RuntimeError):  # a text that can be the name of no file
        return ""


def meant_source(dataset: str) -> str:
    """`` (did you mean 'csv:x.csv'?)`` where an unknown data set is a file or folder that is there.

    It may be called by a form that there is not, such as ``CSV:x.csv`` or ``image:photos``.

    >>> meant_source("no such thing")
    ''
    """
    path = dataset.partition(":")[2]
    if found := source_at(dataset) or (source_at(path) if path else ""):
        return f" (did you mean {found!r}?)"
    if dataset.lower().endswith(_SPREADSHEETS):
        return " (save a spreadsheet as CSV, and give csv:FILE)"
    return ""
