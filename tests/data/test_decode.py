"""An image file as pixels of one size."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageOps

from noiseproof.data import read_image


def photo(width: int, height: int) -> Image.Image:
    """Smooth, as photographs are."""
    coarse = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def fitted(file, side: int) -> np.ndarray:
    with Image.open(file) as image:
        upright = ImageOps.exif_transpose(image).convert("RGB")
    return np.asarray(ImageOps.fit(upright, (side, side), Image.Resampling.BILINEAR))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("size", [(60, 40), (60, 63), (640, 400), (90, 700)])
def test_a_large_jpeg_is_decoded_to_fewer_pixels_and_looks_the_same(tmp_path, size, turned):
    exif = Image.Exif()
    if turned:
        exif[0x0112] = 6
    photo(*size).save(tmp_path / "a.jpg", quality=90, exif=exif)
    found, whole = read_image(tmp_path / "a.jpg", (3, 16, 16)), fitted(tmp_path / "a.jpg", 16)
    apart = np.abs(found.astype(int) - whole)
    assert apart.mean() < 1
    assert apart.max() <= 4
    assert (apart.max() == 0) == (min(size) < 64)  # half of it would be less than 32


def test_other_files_are_decoded_whole(tmp_path):
    photo(640, 400).save(tmp_path / "a.png")
    found = read_image(tmp_path / "a.png", (3, 16, 16))
    assert np.array_equal(found, fitted(tmp_path / "a.png", 16))
