"""Damaged files of each kind end in the named error, and nothing in them is run."""

from __future__ import annotations

import contextlib
import gzip
import os
import pickle
import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from noiseproof import data
from noiseproof.data import _pickles

from . import writers

# One layout for each kind of file, and the file that is damaged.
KINDS = {
    "mnist gz": "MNIST/raw/train-images-idx3-ubyte.gz",
    "mnist plain": "MNIST/raw/t10k-labels-idx1-ubyte",
    "fashion-mnist": "FashionMNIST/raw/train-labels-idx1-ubyte.gz",
    "cifar10 python 2": "cifar-10-batches-py/data_batch_4",
    "cifar10 protocol 4": "cifar-10-batches-py/test_batch",
    "cifar100 python 2": "cifar-100-python/train",
    "cifar10n": "cifar-n/CIFAR-10_human.pt",
}


def read(name: str, root: Path) -> Any:
    if name.endswith("n"):
        return data.human(f"{name}-worst", root=root, download=True).labels
    found = data.load(name, root=root, download=True)
    return torch.cat([found.train.images.flatten(), found.train.labels, found.test.labels])


@pytest.fixture(params=KINDS)
def kind(request, tmp_path, small):
    name = writers.write(request.param, tmp_path)
    small(name)
    return name, tmp_path, tmp_path / KINDS[request.param]


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


def emptied(content: bytes) -> bytes:
    return b""


def a_web_page(content: bytes) -> bytes:
    return b"<!DOCTYPE html><html><body>Sign in to the network</body></html>"


@pytest.mark.parametrize("damage", [cut, flipped, emptied, a_web_page])
def test_damage_is_named_and_left_alone(kind, damage):
    name, root, path = kind
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    with pytest.raises(data.DamagedFileError) as error:
        read(name, root)
    assert str(error.value).startswith(f"{path} is damaged: ")
    assert "delete it" in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.path == path
    assert path.read_bytes() == damaged  # it is the user's, and stays


def test_damage_anywhere_is_found_or_harmless(kind):
    name, root, path = kind
    sound, content = read(name, root), path.read_bytes()
    draw = random.Random(0)
    for i in range(60):
        at = draw.randrange(min(len(content), 200) if i % 2 else len(content))
        byte = content[at] ^ (1 << draw.randrange(8))
        path.write_bytes(content[:at] + bytes([byte]) + content[at + 1 :])
        with contextlib.suppress(data.DamagedFileError):
            assert torch.equal(read(name, root), sound)
    for _ in range(20):
        path.write_bytes(content[: draw.randrange(len(content))])
        with pytest.raises(data.DamagedFileError):
            read(name, root)


class Runs:
    """A pickle of it calls a function when it is read as pickles usually are."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def attacks(proof: Path) -> dict[str, Runs]:
    return {
        "posix.system": Runs(os.system, f"touch {proof}"),
        "builtins.exec": Runs(exec, f"open({str(proof)!r}, 'w').close()"),
        "subprocess.check_call": Runs(subprocess.check_call, ["touch", str(proof)]),
        "builtins.open": Runs(open, str(proof), "w"),
    }


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("attack", ["posix.system", "builtins.exec", "subprocess.check_call"])
def test_pickles_run_nothing(attack, protocol, tmp_path, small):
    small(writers.write("cifar10 python 2", tmp_path))
    proof, path = tmp_path / "proof", tmp_path / "cifar-10-batches-py" / "data_batch_1"
    content = {b"data": np.ones((10, 3072), np.uint8), b"labels": [attacks(proof)[attack]] * 10}
    path.write_bytes(pickle.dumps(content, protocol))
    name = attack.split(".")[1]  # of a module that had another name in Python 2
    with pytest.raises(data.DamagedFileError, match=rf"asks to run \w+\.{name}, which was not run"):
        data.load("cifar10", root=tmp_path)
    assert not proof.exists()
    pickle.loads(path.read_bytes())  # it is a real attack
    assert proof.exists()


@pytest.mark.parametrize("attack", ["posix.system", "builtins.exec", "builtins.open"])
def test_label_files_run_nothing(attack, tmp_path, small):
    small("cifar10n")
    proof, path = tmp_path / "proof", tmp_path / "CIFAR-10_human.pt"
    torch.save({**writers.columns("cifar10n"), "worse_label": attacks(proof)[attack]}, path)
    with pytest.raises(data.DamagedFileError, match=r"CIFAR-10_human\.pt is damaged"):
        data.human("cifar10n-worst", root=tmp_path)
    assert not proof.exists()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([1, 2], "it holds a list, not a dictionary"),
        ({b"data": np.zeros((10, 3072), np.uint8)}, "it has no 'labels', only data"),
        ({b"labels": [0] * 10}, "it has no 'data', only labels"),
        (
            {b"data": np.zeros((10, 3071), np.uint8), b"labels": [0] * 10},
            r"images are uint8 \[10, 3071\], not uint8 \[10, 3072\]",
        ),
        (
            {b"data": np.zeros((10, 3072), np.int32), b"labels": [0] * 10},
            r"images are int32 \[10, 3072\]",
        ),
        (
            {b"data": np.zeros((10, 3072), np.uint8), b"labels": [0] * 9},
            r"labels are int64 \[9\], not 10 integers",
        ),
        (
            {b"data": np.zeros((10, 3072), np.uint8), b"labels": [10] * 10},
            "labels go from 10 to 10, not from 0 to 9",
        ),
        (
            {b"data": np.zeros((10, 3072), np.uint8), b"labels": [0.5] * 10},
            "labels are float64",
        ),
        (
            {b"data": np.zeros((10, 3072), np.uint8), b"labels": [[0], 0]},
            "a list in it is not one of numbers",
        ),
        (
            {b"data": np.array([object()]), b"labels": [0] * 10},
            "its arrays are of type O8, not numbers",
        ),
        (
            {b"data": np.zeros((10, 3072), np.uint8), b"labels": [0] * 10},
            "its content is not what was published",
        ),
    ],
)
def test_what_is_in_a_pickle_is_checked(content, problem, tmp_path, small):
    small(writers.write("cifar10 python 2", tmp_path))
    path = tmp_path / "cifar-10-batches-py" / "data_batch_2"
    path.write_bytes(pickle.dumps(content, 4))
    with pytest.raises(data.DamagedFileError, match=problem):
        data.load("cifar10", root=tmp_path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\x00\x00\x0d\x01\x00\x00\x00\x01\x00", "it begins with 00000d, an idx file with 000008"),
        (b"\x00\x00\x08\x01\x00\x00", "it ends within its header, after 6 bytes"),
        (b"\x00\x00\x08\x03\x00\x00", "it has 3 dimensions, not 1"),
        (writers.idx(np.zeros(20, np.uint8))[:-1], "19 bytes follow its header, not 20"),
        (writers.idx(np.zeros(20, np.uint8)) + b"x", "it holds more than 28 bytes"),
        (writers.idx(np.zeros(19, np.uint8)), r"labels are uint8 \[19\], not 20 integers"),
        (writers.idx(np.full(20, 10, np.uint8)), "labels go from 10 to 10, not from 0 to 9"),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_what_is_in_an_idx_file_is_checked(content, problem, compressed, tmp_path, small):
    layout = "mnist gz" if compressed else "mnist plain"
    small(writers.write(layout, tmp_path))
    path = tmp_path / "MNIST" / "raw" / ("train-labels-idx1-ubyte" + ".gz" * compressed)
    path.write_bytes(gzip.compress(content) if compressed else content)
    with pytest.raises(data.DamagedFileError, match=problem):
        data.load("mnist", root=tmp_path)


def test_labels_missing_from_a_label_file(tmp_path, small):
    small("cifar100n")
    torch.save({"clean_label": np.zeros(40, np.int64)}, tmp_path / "CIFAR-100_human.pt")
    with pytest.raises(data.DamagedFileError, match="it has no 'noisy_label', only clean_label"):
        data.human("cifar100n", root=tmp_path)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_and_numbers_of_any_protocol(protocol, order, tmp_path):
    array = np.arange(6, dtype=">i4").reshape(2, 3).copy(order=order)
    path = tmp_path / "file"
    path.write_bytes(pickle.dumps({"a": array, "b": np.float32(1.5), "c": "text"}, protocol))
    found = _pickles.read_pickle(path, max_bytes=1000, max_values=10)
    np.testing.assert_array_equal(found["a"], array)
    assert float(found["b"]) == 1.5
    assert found["c"] == "text"


def test_the_error_travels_between_processes():
    error = pickle.loads(pickle.dumps(data.DamagedFileError("/a/b", "it is cut", "do c")))
    assert str(error) == "/a/b is damaged: it is cut; do c"
    assert isinstance(error, data.DataError)
    assert isinstance(error, ValueError)


def test_a_folder_in_place_of_a_file_is_no_file(tmp_path, small):
    small("cifar100")
    for name in ("train", "test"):  # as image folders are called
        (tmp_path / name).mkdir()
    with pytest.raises(data.MissingDataError):
        data.load("cifar100", root=tmp_path, download=False)
