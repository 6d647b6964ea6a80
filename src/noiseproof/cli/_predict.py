"""``noiseproof predict``: the classes of images, by a trained model."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from noiseproof._errors import UsageError
from noiseproof._escape import csv_text

from ._tables import say

if TYPE_CHECKING:
    from noiseproof.train import Model


def predict(
    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    files: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILE ...")],
    /,
    *,
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    ema: tyro.conf.FlagCreatePairsOff[bool] = False,
) -> None:
    """Predict classes with a trained run: noiseproof predict runs/HASH photo.png new.csv.

    Writes a CSV line for each sample: the file, the index in it, the class and its probability.

    Args:
        run: the folder of the run.
        files: images (any that Pillow reads; they are brought to size), or folders of them; tables,
            .csv or .parquet, with the columns that the run was trained on; or npz files, each with
            an array ``images`` or ``x`` or a single array.
        out: write the CSV here and not to the terminal.
        ema: use the moving average of the weights.
    """
    from noiseproof._files import write_atomically
    from noiseproof.train import load

    model = load(run, ema=ema)
    rows: list[list[Any]] = [["file", "index", "class", "probability"]]
    for file in _without_folders(files):
        for i, row in enumerate(model.predict_proba(_read(file, model))):
            best = int(row.argmax())
            rows.append([str(file), i, model.classes[best], f"{float(row[best]):.4f}"])
    text = csv_text(rows)
    if out is None:
        sys.stdout.write(text)
    else:
        write_atomically(out, text.encode())
        say(f"written to {out}")


def _without_folders(files: Iterable[Path]) -> Iterator[Path]:
    """The files, and in place of a folder the images in it."""
    from noiseproof.sources import images_in

    for file in files:
        if not file.is_dir():
            yield file
            continue
        images = images_in(file)
        if not images:
            raise UsageError(f"{file} is a folder without images")
        yield from images


_TABLES = (".csv", ".tsv", ".gz", ".parquet")


def _read(file: Path, model: Model) -> Any:
    suffix = file.suffix.lower()
    if suffix == ".npz":
        return _npz(file)
    return _table(file, model) if suffix in _TABLES else _image(file, model)


def _table(file: Path, model: Model) -> Any:
    """The columns of a table that the run was trained on."""
    from noiseproof.sources import Problems, numeric_columns, read_table

    columns, kind = model.inputs.columns, model.inputs.kind
    if not columns:
        raise UsageError(f"{file} is a table, and the run was trained on none")
    problems = Problems(skip=False, remedy="mend it, or take it out")
    form = "parquet" if file.suffix.lower() == ".parquet" else "csv"
    table = read_table(file, form, file.read_bytes(), problems)
    values = [table.column(name, "") for name in columns]
    if kind == "features":
        return numeric_columns(table, columns, problems)
    if kind == "text":
        return [str(value) for value in values[0]]
    import numpy as np

    return np.concatenate([_image(file.parent / str(value), model) for value in values[0]])


def _npz(file: Path) -> Any:
    import numpy as np

    try:
        with np.load(file, allow_pickle=False) as arrays:
            names = list(arrays)
            known = [name for name in ("images", "x", "x_test", "test_images") if name in names]
            name = known[0] if known else names[0] if len(names) == 1 else None
            if name is None:
                raise UsageError(f"{file} holds {', '.join(names)}; call what is predicted 'x'")
            return arrays[name]
    except (ValueError, OSError) as error:
        if isinstance(error, UsageError | FileNotFoundError):
            raise
        raise UsageError(f"{file} is no npz file that can be read") from None


def _image(file: Path, model: Model) -> Any:
    """An image as it was read for training."""
    from noiseproof.data import UnreadableError, read_image

    if model.inputs.kind != "image":
        raise UsageError(f"{file} is no table, and the run was trained on {model.inputs.kind}")
    if not file.exists():
        raise FileNotFoundError(2, "No such file or directory", str(file))
    try:
        image = read_image(file, model.inputs.stored or model.inputs.shape)[None]
    except UnreadableError as error:
        raise UsageError(f"{file}: {error}") from None
    _, height, width = model.inputs.shape
    top, left = (image.shape[1] - height) // 2, (image.shape[2] - width) // 2
    return image[:, top : top + height, left : left + width]
