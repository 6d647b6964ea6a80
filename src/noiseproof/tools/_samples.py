"""What is audited: the samples of a run, what to call them, and what to show of them."""

from __future__ import annotations

import contextlib
import dataclasses
import io
from collections.abc import Callable
from dataclasses import dataclass, field
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
        columns: of a table of features, what to show of them: first those that no network reads,
            which are for people, then those that it reads.
    """

    run: Run
    data: Dataset
    labels: NoisyLabels
    content: Content | None
    names: list[str] | None
    annotators: list[str] | None
    columns: dict[str, list[Any]] = field(default_factory=dict)

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
        if self.columns:
            return {name: _text_of(values[index]) for name, values in self.columns.items()}
        values = self.data.train.images[index].flatten().tolist()
        if self.data.kind == "tokens":
            return "token ids " + " ".join(map(str, values[:_MAX_TOKENS]))
        return {f"feature {i}": f"{value:g}" for i, value in enumerate(values)}


def _text_of(value: Any) -> str:
    """A value of a table: a fraction to seven digits, and nothing where there is none."""
    if isinstance(value, float) and abs(value) < 1e6:
        return f"{value:.7g}"
    return "" if value is None else str(value)


def samples_of(run: Run, *, annotator: str = "", data_root: Path | str | None = None) -> Samples:
    """What a run would be trained on.

    Args:
        run: its settings.
        annotator: the column of a table that says who gave each label.
        data_root: where data sets lie.
    """
    table = _table(run) if annotator or not (run.text or run.image) else None
    if annotator:
        if table is None:
            raise UsageError(f"--annotator names a column of a table, and {run.dataset} is none")
        table.column(annotator, "--annotator")
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
    people, columns = None, {}
    if table is not None and names is not None:
        row_at = {table.place(i): i for i in range(len(table))}
        rows = [row_at[name] for name in names]

        def column(name: str) -> list[Any]:
            values = table.columns[name]
            return [values[row] for row in rows]

        people = [str(who) for who in column(annotator)] if annotator else None
        if data.kind == "features":
            shown = [name for name in (*run.ignore, *data.columns) if name != annotator]
            columns = {name: column(name) for name in shown if not table.has_vectors(name)}
    return Samples(run, data, labels, content, names, people, columns)


def _table(run: Run) -> Table | None:
    is_table = run.dataset.partition(":")[0] in ("csv", "parquet")
    return table_of(source_of(run)) if is_table else None


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
