"""Images in files with lists of their labels, as WebVision and Clothing1M are published."""

from __future__ import annotations

import hashlib
import os
import warnings
from pathlib import Path

import torch

from .._errors import UsageError
from ..catalogue import DatasetEntry, ImageLists, find_root
from ..sources import Problems, left_out_note
from ..sources._folders import SUFFIXES
from ._dataset import Dataset, Split
from ._errors import OTHER_ROOT, MissingDataError
from ._keep import Keeping, keep

_Listed = tuple[list[str], list[int]]


def load_lists(
    name: str,
    entry: DatasetEntry,
    lists: ImageLists,
    root: str | os.PathLike[str] | None,
    keeping: Keeping,
    skip_unreadable: bool = False,
) -> Dataset:
    """A data set of images that have to be supplied.

    Which images there are is read from the lists; an image itself is first looked at when it is
    decoded. With ``skip_unreadable`` all are decoded once before.

    Raises:
        MissingDataError: the lists or the images are not there; it says where from and how large.
    """
    dirs = find_root(root)
    if line := lists.missing(dirs):
        raise MissingDataError(f"{line}; or {OTHER_ROOT}")
    base = lists.base(dirs)
    assert base is not None
    parts = [_read_lists(base, lists.train, lists.labels)]
    synsets = lists.synset_folder(dirs)
    if lists.test or synsets is None:
        parts.append(_read_lists(base, lists.test, lists.labels))
    else:
        parts.append(_read_synsets(synsets, lists.labels))
    problems = Problems(skip_unreadable)
    streams = keeping.streams(entry.title, [len(files) for files, _ in parts], entry.shape)
    splits = []
    for files, numbers in parts:
        kept = keep(
            files, entry.shape, None, problems, digest=_digest(files, base), streams=streams,
            how=keeping, look_at_all=skip_unreadable,
        )  # fmt: skip
        labels = torch.tensor(numbers, dtype=torch.int64)
        splits.append(
            Split(kept.inputs, labels if kept.readable is None else labels[kept.readable])
        )
    for note in left_out_note(problems.lines):
        warnings.warn(note, stacklevel=2)
    here = f"{base.parent}{os.sep}"
    left_out = tuple(line.removeprefix(here) for line in problems.lines)
    return Dataset(
        name, splits[0], splits[1], entry.classes, entry.mean, entry.std, left_out=left_out
    )


def _read_lists(base: Path, lists: tuple[tuple[str, str], ...], labels: int) -> _Listed:
    """The files of all lists, and their labels; those of other labels are left out."""
    files, found = [], []
    for name, folder in lists:
        path = base / name
        try:
            lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        except OSError as error:
            raise UsageError(f"{path} cannot be read ({error.strerror})") from None
        prefix = base / folder
        for number, line in enumerate(lines, 1):
            file, _, label = line.strip().rpartition(" ")
            if not line.strip():
                continue
            if not file.strip() or not (label.isascii() and label.isdigit()) or len(label) > 9:
                raise UsageError(f"{path}, line {number}: {line!r:.60} is no file with its label")
            if int(label) < labels:
                files.append(os.path.join(prefix, file.strip()))
                found.append(int(label))
    if not files:
        raise UsageError(f"{base / lists[0][0]} has no image of the labels 0 to {labels - 1}")
    return files, found


def _read_synsets(folder: Path, labels: int) -> _Listed:
    """The images of the first synsets in sorted order, whose position is their label."""
    synsets = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    if len(synsets) < labels:
        raise UsageError(
            f"{folder} has {len(synsets)} folders, and a folder for each of {labels} synsets is "
            "needed"
        )
    files: list[str] = []
    found: list[int] = []
    for label, synset in enumerate(synsets[:labels]):
        images = sorted(p for p in synset.iterdir() if p.suffix.lower() in SUFFIXES)
        if not images:
            raise UsageError(f"{synset} has no images")
        files += map(str, images)
        found += [label] * len(images)
    return files, found


def _digest(files: list[str], base: Path) -> str:
    """Of the names of the files; with that of their contents all would have to be read."""
    names = "\0".join(os.path.relpath(file, base.parent) for file in files)
    return hashlib.sha256(names.encode(errors="surrogateescape")).hexdigest()
