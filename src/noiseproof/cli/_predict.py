"""``noiseproof predict``: the classes of images, by a trained model."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from noiseproof._errors import UsageError, require

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
    """Predict the class of images with a trained run: noiseproof predict runs/HASH photo.png.

    Writes a CSV line for each image: the file, the index in it, the class and its probability.

    Args:
        run: the folder of the run.
        files: images (any that Pillow reads; they are resized), or npz files, each with an array
            ``images`` or a single array.
        out: write the CSV here and not to the terminal.
        ema: use the moving average of the weights.
    """
    from noiseproof._files import write_atomically
    from noiseproof.train import load

    model = load(run, ema=ema)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["file", "index", "class", "probability"])
    for file in files:
        images = _npz(file) if file.suffix.lower() == ".npz" else _image(file, model)
        for i, row in enumerate(model.predict_proba(images)):
            best = int(row.argmax())
            writer.writerow([str(file), i, model.classes[best], f"{float(row[best]):.4f}"])
    if out is None:
        sys.stdout.write(text.getvalue())
    else:
        write_atomically(out, text.getvalue().encode())
        print(f"written to {out}")


def _npz(file: Path) -> Any:
    import numpy as np

    try:
        with np.load(file, allow_pickle=False) as arrays:
            names = list(arrays)
            name = "images" if "images" in names else names[0] if len(names) == 1 else None
            if name is None:
                raise UsageError(f"{file} holds {', '.join(names)}; call the images 'images'")
            return arrays[name]
    except (ValueError, OSError) as error:
        if isinstance(error, UsageError | FileNotFoundError):
            raise
        raise UsageError(f"{file} is no npz file that can be read") from None


def _image(file: Path, model: Model) -> Any:
    import numpy as np

    image = require("PIL.Image", "images", "an image file")
    channels, height, width = model.inputs.shape
    try:
        with image.open(file) as opened:
            picture = opened.convert("L" if channels == 1 else "RGB").resize((width, height))
    except (image.UnidentifiedImageError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise UsageError(f"{file} is no image that can be read") from None
    return np.asarray(picture)[None]
