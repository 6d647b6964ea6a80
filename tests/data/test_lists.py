"""WebVision and Clothing1M in the layouts that they are published in."""

from __future__ import annotations

import re

import pytest
import torch

from noiseproof import data
from noiseproof.catalogue import DATASETS
from noiseproof.data import Keeping, read_image
from noiseproof.data._stream import ImageFiles
from tests.data.trees import (
    truncate,
    write_clothing,
    write_image,
    write_imagenet,
    write_lines,
    write_webvision,
)

STREAM, RESIDENT = Keeping("yes"), Keeping("no")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Images of 16 pixels in place of 256."""
    import dataclasses

    for name, entry in DATASETS.items():
        if entry.lists is not None:
            monkeypatch.setitem(DATASETS, name, dataclasses.replace(entry, shape=(3, 16, 16)))


def test_webvision_mini(tmp_path):
    """Labels 0 to 49 of the list, tested on the first 50 synsets of ILSVRC12."""
    base = write_webvision(tmp_path)
    val = write_imagenet(tmp_path)
    found = data.load("webvision", tmp_path, keeping=RESIDENT)
    assert repr(found) == "Dataset('webvision', 100 + 50 images 3x16x16, 50 classes)"
    assert found.train.labels.tolist() == [i for i in range(50) for _ in range(2)]
    assert found.test.labels.tolist() == list(range(50))
    for images, at, file in (
        (found.train.images, 7, base / "google/q0003/1.jpg"),
        (found.test.images, 41, val / "n00000041/ILSVRC2012_val_00000041.JPEG"),
    ):
        expected = torch.from_numpy(read_image(file, (3, 16, 16)).copy()).permute(2, 0, 1)
        assert torch.equal(images[at], expected)
    streamed = data.load("webvision", tmp_path, keeping=STREAM)
    assert isinstance(streamed.train.inputs, ImageFiles)
    assert isinstance(streamed.test.inputs, ImageFiles)
    assert torch.equal(streamed.train.inputs[:], found.train.images)
    assert torch.equal(streamed.test.inputs[:], found.test.images)
    assert found.mean == (0.485, 0.456, 0.406)


def test_tested_on_its_own_validation_images_is_another_data_set(tmp_path):
    base = write_webvision(tmp_path)
    found = data.load("webvision-val", tmp_path, keeping=RESIDENT)
    assert (found.name, len(found.train), len(found.test)) == ("webvision-val", 100, 50)
    assert found.test.labels.tolist() == list(range(50))
    file = base / "val_images_256/val000007.jpg"
    expected = torch.from_numpy(read_image(file, (3, 16, 16)).copy()).permute(2, 0, 1)
    assert torch.equal(found.test.images[7], expected)


def test_the_whole_of_webvision_has_both_lists_and_all_labels(tmp_path):
    write_webvision(tmp_path, each=1, flickr=True)
    with pytest.raises(ValueError, match=r"google/q0050/0.jpg: there is no such file"):
        data.load("webvision-full-val", tmp_path, keeping=RESIDENT)
    with pytest.warns(UserWarning, match="left out .* and 3 more"):
        found = data.load("webvision-full-val", tmp_path, keeping=STREAM, skip_unreadable=True)
    assert (len(found.train), found.num_classes) == (100, 1000)


def test_clothing(tmp_path):
    write_clothing(tmp_path)
    found = data.load("clothing1m", tmp_path, keeping=STREAM)
    assert repr(found) == "Dataset('clothing1m', 28 + 14 images 3x16x16, 14 classes)"
    assert found.classes[8] == "Downcoat"
    assert torch.equal(
        found.train.inputs[:], data.load("clothing1m", tmp_path, keeping=RESIDENT).train.images
    )


@pytest.mark.parametrize("cached", [False, True])
def test_truncated_wrong_mode_and_not_there(tmp_path, cached):
    base = write_webvision(tmp_path)
    truncate(base / "google/q0001/0.jpg")
    write_image(base / "odd.png", 5, mode="I;16")
    (base / "odd.png").replace(base / "google/q0002/1.jpg")
    (base / "google/q0004/0.jpg").unlink()
    cache = tmp_path / "cache" if cached else None
    lines = [
        r"q0001.0.jpg: a damaged image .*--skip-unreadable", r"q0002.1.jpg: an image of mode I",
        r"q0004.0.jpg: there is no such file",
    ]  # fmt: skip
    for at, line in zip((2, 5, 8), lines, strict=True):
        streamed = data.load("webvision-val", tmp_path, keeping=STREAM)  # looks at none of them
        with pytest.raises(ValueError, match=line):
            streamed.train.inputs[torch.tensor([at])]
    with pytest.raises(ValueError, match=lines[0]):
        data.load("webvision-val", tmp_path, keeping=RESIDENT)
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"left out what cannot be read: .* and 2 more"):
            found = data.load(
                "webvision-val", tmp_path, keeping=Keeping("yes", cache), skip_unreadable=True
            )
        assert len(found.train) == 97
        assert found.train.labels[:8].tolist() == [0, 0, 1, 2, 3, 3, 4, 5]
        found.train.inputs[:]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("webvision", "WebVision 1.0 is not here: looked for info/train_filelist_google.txt in .* "
         "it has to be supplied: https://data.vision.ee.ethz.ch.* 13 GB when decoded; or name"),
        ("webvision-full", "train_filelist_google.txt and info/train_filelist_flickr.txt.* 480 GB"),
        ("webvision-val", "train_filelist_google.txt and info/val_filelist.txt"),
        ("clothing1m", "Clothing1M is not here: looked for annotations/noisy_train.txt and "
         "annotations/clean_test.txt in .* on request, .* 199 GB"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_one_line(tmp_path, name, line):
    with pytest.raises(data.MissingDataError, match=line) as said:
        data.load(name, tmp_path)
    assert "\n" not in str(said.value)


def test_parts_that_are_not_there(tmp_path):
    base = write_webvision(tmp_path, each=1)
    with pytest.raises(
        data.MissingDataError, match=r"ILSVRC12's.*6.3 GB.*the data set webvision-val"
    ):
        data.load("webvision", tmp_path)
    write_imagenet(tmp_path, synsets=49)
    with pytest.raises(ValueError, match="49 folders, and a folder for each of 50 synsets"):
        data.load("webvision", tmp_path)
    (base / "val_images_256").rename(base / "elsewhere")
    with pytest.raises(data.MissingDataError, match=r"has its lists but no images in .*256"):
        data.load("webvision-val", tmp_path)


@pytest.mark.parametrize("line", ["google/q0001/a.jpg", "a.jpg one", "a.jpg -1", " 3", "a.jpg ²"])
def test_a_line_that_is_no_file_and_label(tmp_path, line):
    base = write_webvision(tmp_path, each=1)
    write_lines(base / "info/train_filelist_google.txt", ["google/q0000/0.jpg 0", "", line])
    with pytest.raises(ValueError, match=r"google.txt, line 3: .*is no file with its label"):
        data.load("webvision-val", tmp_path)
    write_lines(base / "info/train_filelist_google.txt", ["a.jpg 50"])
    with pytest.raises(ValueError, match=re.escape("no image of the labels 0 to 49")):
        data.load("webvision-val", tmp_path)
