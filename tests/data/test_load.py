"""Data sets by name, from small files in every layout; and where they are looked for."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from noiseproof import catalogue, data

from . import writers

IMAGE_LAYOUTS = [k for k, (name, _, _) in writers.LAYOUTS.items() if name in writers.SIZES]
HUMAN_LAYOUTS = [k for k in writers.LAYOUTS if k not in IMAGE_LAYOUTS]

IMAGES = {name: entry for name, entry in catalogue.DATASETS.items() if entry.files is not None}
HUMAN = {
    name: (entry.file, entry.column)
    for name, entry in catalogue.NOISES.items()
    if entry.group == "human"
}


@pytest.mark.parametrize("layout", IMAGE_LAYOUTS)
def test_layout_is_read(layout, tmp_path, small):
    name = writers.write(layout, tmp_path)
    source = small(name)
    found = data.load(name, root=tmp_path, download=False)
    for split, (images, labels) in zip(
        (found.train, found.test), writers.arrays(name), strict=True
    ):
        assert split.images.dtype == torch.uint8
        assert split.labels.dtype == torch.int64
        np.testing.assert_array_equal(split.images.numpy(), images)
        np.testing.assert_array_equal(split.labels.numpy(), labels)
    assert found.name == name
    assert found.classes == source.classes
    assert (found.mean, found.std) == (source.mean, source.std)
    found.train.images.zero_()  # the tensors are the user's to change
    assert data.load(name, root=tmp_path, download=False).train.images.any()


@pytest.mark.parametrize("layout", HUMAN_LAYOUTS)
def test_human_labels_are_read(layout, tmp_path, small):
    name = writers.write(layout, tmp_path)
    small(name)
    for human, (file, column) in HUMAN.items():
        if file == name:
            found = data.human(human, root=tmp_path, download=False)
            np.testing.assert_array_equal(found.labels.numpy(), writers.columns(name)[column])
            clean = writers.columns(name)["clean_label"]
            np.testing.assert_array_equal(found.clean.numpy(), clean)
            assert found.labels.dtype == torch.int64
            assert found.num_classes == catalogue.HUMAN_FILES[name].num_classes
            assert found.rate == pytest.approx(np.mean(writers.columns(name)[column] != clean))


def test_human_labels_as_tensors_are_read(tmp_path, small):
    small("cifar100n")
    columns = {k: torch.from_numpy(v) for k, v in writers.columns("cifar100n").items()}
    torch.save(columns, tmp_path / "CIFAR-100_human.pt")
    found = data.human("cifar100n", root=tmp_path, download=False)
    assert torch.equal(found.labels, columns["noisy_label"])


@pytest.mark.parametrize(
    ("spelt", "name"),
    [("MNIST", "mnist"), ("FashionMNIST", "fashion-mnist"), ("fashion_mnist", "fashion-mnist")],
)
def test_names_may_be_spelt_otherwise(spelt, name, tmp_path, small):
    folder = tmp_path / "here"
    folder.mkdir()
    writers.write_idx(name, folder)
    small(name)
    assert data.load(spelt, root=folder, download=False).name == name


def test_unknown_names_are_named():
    with pytest.raises(ValueError, match=r"data set 'cifra10' \(did you mean 'cifar10'\?\); the"):
        data.load("cifra10")
    with pytest.raises(ValueError, match=r"unknown human labels 'worst'.*cifar10n-random3"):
        data.human("worst")


def test_names_and_sizes():
    supplied = [name for name in data.names() if name.startswith(("webvision", "clothing"))]
    assert list(data.names()) == ["digits", *IMAGES, *supplied]
    assert data.names()["digits"] == "1,437 + 360 images 1x8x8, 10 classes"
    assert set(data.human_names()) == set(HUMAN)


def test_the_root_comes_from_the_variable_or_the_cache(tmp_path, small, monkeypatch):
    small("cifar100")
    home = tmp_path / "cache" / "noiseproof"
    assert catalogue.find_root(None) == catalogue.Root(home, home)
    writers.write("cifar100 python 2", home)
    data.load("cifar100", download=False)
    monkeypatch.setenv("NOISEPROOF_DATA", str(tmp_path / "data"))
    with pytest.raises(data.MissingDataError, match=str(tmp_path / "data")):
        data.load("cifar100", download=False)
    writers.write("cifar100 python 2", tmp_path / "data")
    data.load("cifar100", download=False)


def test_the_cache_is_where_each_system_has_it(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/u")
    for system, expected in [
        ("linux", "/home/u/.cache/noiseproof"),
        ("darwin", "/home/u/Library/Caches/noiseproof"),
        ("win32", "/home/u/AppData/Local/noiseproof"),
    ]:
        monkeypatch.setattr(sys, "platform", system)
        monkeypatch.delenv("LOCALAPPDATA", raising=False)
        assert catalogue.find_root(None).path == Path(expected)


def test_a_tilde_is_the_home_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/u")
    assert catalogue.find_root("~/data").path == Path("/home/u/data")


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(data.MissingDataError) as error:
        data.load("cifar10", root=tmp_path, download=False)
    for part in ("data_batch_1 to test_batch", "cifar-10-batches-py", "download=True"):
        assert part in str(error.value)
    assert str(tmp_path / "noiseproof" / "cifar10") in str(error.value)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())  # looking leaves no trace


def test_an_incomplete_folder_counts_as_missing(tmp_path, small):
    small(writers.write("cifar10 python 2", tmp_path))
    (tmp_path / "cifar-10-batches-py" / "data_batch_3").unlink()
    with pytest.raises(data.MissingDataError):
        data.load("cifar10", root=tmp_path, download=False)


def test_every_source_is_complete():
    for table in (IMAGES, catalogue.HUMAN_FILES):
        for source in table.values():
            published = source.files
            assert all(len(digest) == 64 for digest in published.digests.values())
            assert all(c.startswith(("md5:", "sha256:")) for c in published.downloads.values())
            assert published.folders[-1] == ""
    for name, source in IMAGES.items():
        assert source.files.name == name
        assert len(source.mean) == len(source.std) == source.shape[0]
        assert len(set(source.classes)) == len(source.classes)
