"""The real data, where it is here: known labels, counts, means and rates of human error."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from noiseproof import catalogue, data
from noiseproof.data import _pickles

from .conftest import REAL

PREFIXES = {
    "mnist": ([5, 0, 4, 1, 9, 2, 1, 3, 1, 4], [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]),
    "fashion-mnist": ([9, 0, 0, 3, 0, 2, 7, 2, 5, 5], [9, 2, 1, 1, 6, 1, 4, 6, 5, 7]),
    "cifar10": ([6, 9, 9, 4, 1, 1, 2, 7, 8, 3], [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]),
    "cifar100": ([19, 29, 0, 11, 1, 86, 90, 28, 23, 31], [49, 33, 72, 51, 71, 92, 15, 14, 23, 0]),
}
MNIST_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
DEBIAN = Path("/usr/share/datasets/fashion-mnist")  # the package dataset-fashion-mnist


def check(found: data.Dataset) -> None:
    train, test = PREFIXES[found.name]
    assert found.train.labels[:10].tolist() == train
    assert found.test.labels[:10].tolist() == test
    for split in (found.train, found.test):
        counts = split.labels.bincount()
        assert len(counts) == found.num_classes
        if found.name != "mnist":
            assert (counts == len(split) / found.num_classes).all()
    mean, std = data.channel_statistics(found.train.images)
    assert found.mean == pytest.approx(mean, abs=6e-5)
    assert found.std == pytest.approx(std, abs=6e-5)


def test_mnist(real):
    mnist = data.load("mnist", root=real("mnist"), download=False)
    check(mnist)
    assert mnist.train.labels.bincount().tolist() == MNIST_COUNTS


def test_fashion_mnist():
    if not DEBIAN.is_dir():
        pytest.skip("Debian's package dataset-fashion-mnist is not installed")
    check(data.load("fashion-mnist", root=DEBIAN, download=False))


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_cifar(name, real):
    root = real(name)
    found = data.load(name, root=root, download=False)
    check(found)
    recorded = json.loads((REAL / name / "manifest.json").read_text())["sha256"]
    test = found.test.images.permute(0, 2, 3, 1).contiguous().numpy()
    assert hashlib.sha256(test).hexdigest() == recorded["x_test"]
    for labels, key in ((found.train.labels, "y_train"), (found.test.labels, "y_test")):
        assert hashlib.sha256(labels.to(torch.uint8).numpy()).hexdigest() == recorded[key]


@pytest.mark.parametrize(
    ("name", "file", "key"),
    [
        ("cifar10", "cifar-10-batches-py/batches.meta", "label_names"),
        ("cifar100", "cifar-100-python/meta", "fine_label_names"),
    ],
)
def test_class_names_are_those_of_the_archive(name, file, key, real):
    content = _pickles.read_pickle(real(name) / file, max_bytes=10_000, max_values=200)
    named = [c.decode() for c in content[key]]
    ours = catalogue.DATASETS[name].classes
    assert [c.removesuffix("_tree") for c in ours] == [c.removesuffix("_tree") for c in named]


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("cifar10n-worst", 0.40208),
        ("cifar10n-aggregate", 0.0901),
        ("cifar10n-random1", 0.17234),
        ("cifar10n-random2", 0.18122),
        ("cifar10n-random3", 0.1764),
        ("cifar100n", 0.402),
    ],
)
def test_human_noise(name, rate, real):
    noisy = data.human(name, root=real("cifar-n"), download=False)
    assert noisy.rate == pytest.approx(rate, abs=1e-9)
    assert noisy.num_classes == (100 if name == "cifar100n" else 10)
    assert torch.equal(noisy.flipped, noisy.labels != noisy.clean)
    np.testing.assert_allclose(np.asarray(noisy.matrix).sum(1), 1)
    images = "cifar100" if name == "cifar100n" else "cifar10"
    recorded = json.loads((REAL / images / "manifest.json").read_text())["sha256"]["y_train"]
    clean = noisy.clean.to(torch.uint8).numpy()
    assert hashlib.sha256(clean).hexdigest() == recorded  # in the order of the images


def test_the_published_files_have_the_published_checksums(real):
    root = real("mnist")
    for name, checksum in catalogue.DATASETS["mnist"].files.downloads.items():
        content = (root / "MNIST" / "raw" / name).read_bytes()
        assert f"md5:{hashlib.md5(content).hexdigest()}" == checksum
    root = real("cifar-n")
    for source in catalogue.HUMAN_FILES.values():
        for name, checksum in source.files.downloads.items():
            content = (root / "cifar-n" / name).read_bytes()
            assert f"sha256:{hashlib.sha256(content).hexdigest()}" == checksum
