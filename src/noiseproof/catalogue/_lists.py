"""Images that have to be supplied: files with lists of their labels, in the published layout."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ._places import Root


@dataclass(frozen=True)
class ImageLists:
    """Images and their labels as their authors publish them.

    Attributes:
        title: of the images.
        folders: where they may lie inside a root; "" is the root itself.
        train: lists with a line ``FILE LABEL`` for each image to train on, and the folder that its
            files are relative to.
        test: likewise of the images to test on; empty where they are in synset folders.
        synsets: where a folder with one folder for each synset may lie inside a root, whose sorted
            order is that of the labels.
        labels: how many there are; images of others are left out.
        source: where the images come from and how large they are.
        synset_source: likewise of those in synset folders.
    """

    title: str
    folders: tuple[str, ...]
    train: tuple[tuple[str, str], ...]
    test: tuple[tuple[str, str], ...]
    labels: int
    source: str
    synsets: tuple[str, ...] = ()
    synset_source: str = ""

    def base(self, root: Root, is_file: Callable[[Path], bool] = os.path.isfile) -> Path | None:
        """The folder inside the root that has all lists."""
        lists = [name for name, _ in (*self.train, *self.test)]
        bases = [root.path / folder for folder in self.folders]
        return next((b for b in bases if all(is_file(b / name) for name in lists)), None)

    def synset_folder(self, root: Root) -> Path | None:
        """The folder inside the root that has a folder for each synset."""
        return next((p for s in self.synsets if (p := root.path / s).is_dir()), None)

    def missing(self, root: Root) -> str:
        """A line on what is not there, where from and how large; empty where all is there."""
        places = ", ".join(str(root.path / folder) for folder in self.folders)
        base = self.base(root)
        if base is None:
            lists = " and ".join(name for name, _ in (*self.train, *self.test))
            return f"{self.title} is not here: looked for {lists} in {places}; {self.source}"
        for _, folder in (*self.train, *self.test):
            if not (base / folder).is_dir():
                return f"{self.title} has its lists but no images in {base / folder}; {self.source}"
        if self.synsets and self.synset_folder(root) is None:
            places = ", ".join(str(root.path / folder) for folder in self.synsets)
            return (
                f"ILSVRC12's validation images are not here: looked for one folder a synset in "
                f"{places}; {self.synset_source}"
            )
        return ""


_WEBVISION_FROM = (
    "it has to be supplied: https://data.vision.ee.ethz.ch/cvl/webvision/dataset2017.html, its "
    "lists (info) and its images resized to 256 pixels; {used}"
)
_WEBVISION = ImageLists(
    "WebVision 1.0",
    ("webvision", "WebVision", "webvision1.0", ""),
    (("info/train_filelist_google.txt", ""),),
    (),
    50,
    _WEBVISION_FROM.format(used="65,944 of those from Google are used, 13 GB when decoded"),
    ("imagenet/val", "ILSVRC2012/val", "ilsvrc12/val", "webvision/imagenet/val"),
    "they have to be supplied: https://image-net.org, ILSVRC2012_img_val.tar, 50,000 images in "
    "6.3 GB, moved into one folder for each synset",
)
_OWN_TEST = (("info/val_filelist.txt", "val_images_256"),)
_OR_OWN = "; or test on WebVision's own with the data set {name}"

WEBVISION = replace(
    _WEBVISION, synset_source=_WEBVISION.synset_source + _OR_OWN.format(name="webvision-val")
)
WEBVISION_VAL = replace(_WEBVISION, test=_OWN_TEST, synsets=(), synset_source="")
_FULL = replace(
    _WEBVISION,
    train=(*_WEBVISION.train, ("info/train_filelist_flickr.txt", "")),
    labels=1000,
    source=_WEBVISION_FROM.format(used="2,439,574 of them are used, 480 GB when decoded"),
)
WEBVISION_FULL = replace(
    _FULL, synset_source=_FULL.synset_source + _OR_OWN.format(name="webvision-full-val")
)
WEBVISION_FULL_VAL = replace(_FULL, test=_OWN_TEST, synsets=(), synset_source="")
CLOTHING1M = ImageLists(
    "Clothing1M",
    ("clothing1m", "Clothing1M", "clothing1M", ""),
    (("annotations/noisy_train.txt", ""),),
    (("annotations/clean_test.txt", ""),),
    14,
    "it has to be supplied: its authors send it on request, "
    "https://github.com/Cysu/noisy_label; a million images, 199 GB when decoded to 256 pixels",
)
