"""What is audited: the samples of a run, what to call them, and what to show of them."""

from __future__ import annotations

import contextlib
import dataclasses
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._errors import UsageError, require
from ..data import Dataset
from ..noise import NoisyLabels
from ..runs import Run
from ..runs._resolve import source_of
from ..sources import Content, Problems, Source
from ..sources._digest import bytes_of
from ..sources._tables import Table, read_table
from ..train._setup import Setup

_SIDE = 160  # pixels of an image on the page
_MAX_TOKENS = 200


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples of a run.

    Attributes:
        run: that names them.
        data: as tensors.
        labels: as given, and as they should be where that is known.
        content: of data of the user's own, what was read.
        names: of each sample; None for its index.
        annotators: of each sample who gave its label, where a column says so.
    """

    run: Run
    data: Dataset
    labels: NoisyLabels
    content: Content | None
    names: list[str] | None
    annotators: list[str] | None

    def show(self, index: int) -> Any:
        """A sample as `Audit.to_html` takes it."""
        part = None if self.content is None else self.content.train
        if self.data.kind == "text" and part is not None:
            return str(part.inputs[index])
        if self.data.kind == "image":
            if part is not None and isinstance(part.inputs, list):
                with contextlib.suppress(OSError, ValueError):
                    return thumbnail(Path(part.inputs[index]))
            return self.data.train.inputs[index : index + 1][0].numpy()
        values = self.data.train.images[index].flatten().tolist()
        if self.data.kind == "tokens":
            return "token ids " + " ".join(map(str, values[:_MAX_TOKENS]))
        columns = self.data.columns or [f"feature {i}" for i in range(len(values))]
        return {name: f"{value:g}" for name, value in zip(columns, values, strict=False)}


def samples_of(run: Run, *, annotator: str = "", data_root: Path | str | None = None) -> Samples:
    """What a run would be trained on.

    Args:
        run: its settings.
        annotator: the column of a table that says who gave each label.
        data_root: where data sets lie.
    """
    table = None
    if annotator:
        table = _table(run, annotator)
        if not run.text and not run.image and annotator not in run.ignore:
            run = dataclasses.replace(run, ignore=(*run.ignore, annotator))
    content = run.content()
    data, labels = Setup(data_root).samples(run.resolve())
    names = None if content is None else content.train.places
    if names is not None and len(names) != len(data.train):
        raise UsageError(
            f"{len(names) - len(data.train)} images cannot be decoded, and an audit needs to tell "
            "samples apart: take these out, or mend them"
        )
    people = None
    if table is not None and names is not None:
        by_place = {table.place(i): str(who) for i, who in enumerate(table.columns[annotator])}
        people = [by_place[name] for name in names]
    return Samples(run, data, labels, content, names, people)


def _table(run: Run, annotator: str) -> Table:
    if run.dataset.partition(":")[0] not in ("csv", "parquet"):
        raise UsageError(f"--annotator names a column of a table, and {run.dataset} is none")
    table = table_of(source_of(run))
    table.column(annotator, "--annotator")
    return table


def table_of(source: Source) -> Table:
    """All columns of a table, with those that no network reads."""
    problems = Problems(source.skip_unreadable)
    return read_table(source.path, source.form, bytes_of(source.path), problems)


def thumbnail(file: Path) -> bytes:
    """An image file as a small JPEG."""
    pillow = require("PIL.Image", "images", "an image")
    ops: Callable[..., Any] = require("PIL.ImageOps", "images", "an image").exif_transpose
    with pillow.open(file) as image:
        image.draft("RGB", (2 * _SIDE, 2 * _SIDE))  # of a JPEG, decode no more than is shown
        small = ops(image).convert("RGB")
    small.thumbnail((_SIDE, _SIDE))
    out = io.BytesIO()
    small.save(out, "JPEG", quality=80)
    return out.getvalue()
