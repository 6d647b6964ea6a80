"""Folders of images, one folder a class; and what can be known of images without decoding them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._errors import UsageError, require

SUFFIXES = frozenset(
    (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
)
_TEST_NAMES = ("test", "val", "valid", "validation")
_LOOKED_AT = 200  # images whose headers decide the size
_KEPT_SIDE = 96  # images of one size stay as they are up to this
_USUAL_SIDE = 64  # what larger ones, and those of several sizes, are brought to
GREY_MODES = ("1", "L", "LA")
MODES = (*GREY_MODES, "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
"""The modes of Pillow that hold 8 bits a channel."""


def parts_of(root: Path, test: Path | None) -> tuple[Path, Path | None]:
    """The folders to train and to test on: inside the root, if it has both, or the root itself."""
    if not root.is_dir():
        what = "is a file, and no folder" if root.exists() else "is not there"
        raise UsageError(f"{root} {what}; give the folder that has one folder for each class")
    if test is not None and not test.is_dir():
        raise UsageError(f"{test} is no folder; give the folder of the images to test on")
    inside = root / "train"
    if inside.is_dir():
        found = [root / name for name in _TEST_NAMES if (root / name).is_dir()]
        others = [p for p in _folders(root) if p != inside and p not in found]
        if not others and (found or _folders(inside)):
            return inside, test or (found[0] if found else None)
    return root, test


def images_by_class(root: Path) -> dict[str, list[Path]]:
    """The image files of each class, in order; every class is a folder."""
    found = {}
    for folder in _folders(root):
        files = images_in(folder)
        if not files:
            raise UsageError(
                f"{folder} has no images, which are {', '.join(sorted(SUFFIXES))}; "
                "remove the folder, or add some"
            )
        found[folder.name] = files
    if len(found) < 2:
        what = f"one folder, {next(iter(found))}" if found else "no folders"
        raise UsageError(f"{root} has {what}; a classifier needs a folder for each of two classes")
    return found


def images_in(folder: Path) -> list[Path]:
    """The image files in a folder and those inside it, in order; none that are hidden."""
    files = (p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    return sorted(
        p
        for p in files
        if not p.name.startswith(".") and not any(map(_hidden, p.relative_to(folder).parts[:-1]))
    )


def _folders(root: Path) -> list[Path]:
    return sorted(p for p in root.iterdir() if p.is_dir() and not _hidden(p.name))


def _hidden(folder: str) -> bool:
    """Whether a program made it: .ipynb_checkpoints, which has copies of images, or __MACOSX."""
    return folder.startswith((".", "__"))


def image_shape(files: Sequence[Path], image_size: int) -> tuple[int, int, int]:
    """Channels, height and width that images are brought to, from the headers of some of them."""
    pillow = require("PIL.Image", "images", "a folder of images")
    step = max(1, len(files) // _LOOKED_AT)
    seen = [s for s in (_look(file, pillow) for file in files[::step]) if s is not None]
    if not seen:
        raise UsageError(f"{files[0]} and all others looked at are no images that can be read")
    channels = 1 if all(mode in GREY_MODES for *_, mode in seen) else 3
    if image_size:
        return channels, image_size, image_size
    sizes = {(height, width) for height, width, _ in seen}
    if len(sizes) == 1 and max(next(iter(sizes))) <= _KEPT_SIDE:
        return channels, *next(iter(sizes))
    side = min(_USUAL_SIDE, round(statistics.median(min(size) for size in sizes)))
    return channels, side, side


def _look(file: Path, pillow: Any) -> tuple[int, int, str] | None:
    try:
        with pillow.open(file) as image:
            turned = image.getexif().get(0x0112, 1) >= 5  # orientation: rows are columns
            width, height = image.size[::-1] if turned else image.size
            return height, width, image.mode
    except Exception:  # whoever decodes it will say what is wrong
        return None
