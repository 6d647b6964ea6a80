"""The checks of inputs; results have the type of the labels that were given."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

from noiseproof import noise

from .subjects import ALL

LABELS = np.arange(60) % 4
INTEGERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]

every = pytest.mark.parametrize("generator", ALL.values(), ids=ALL)


@every
@pytest.mark.parametrize("dtype", [*INTEGERS, ">i4"])
def test_numpy_types(generator, dtype):
    expected = generator(LABELS, 0.3, num_classes=4, seed=1)
    noisy = generator(LABELS.astype(dtype), 0.3, num_classes=4, seed=1)
    for array in (noisy.labels, noisy.clean):
        assert type(array) is np.ndarray
        assert array.dtype == np.dtype(dtype)
    assert noisy.flipped.dtype == bool
    np.testing.assert_array_equal(noisy.labels, expected.labels)
    np.testing.assert_array_equal(noisy.matrix, expected.matrix)


@every
@pytest.mark.parametrize("dtype", INTEGERS)
def test_tensors(generator, dtype, device):
    expected = generator(LABELS, 0.3, num_classes=4, seed=1)
    labels = torch.from_numpy(LABELS.astype(dtype)).to(device)
    noisy = generator(labels, 0.3, num_classes=4, seed=1)
    for tensor in (noisy.labels, noisy.clean):
        assert isinstance(tensor, torch.Tensor)
        assert tensor.dtype == labels.dtype
        assert tensor.device == labels.device
    assert noisy.flipped.dtype == torch.bool
    assert noisy.flipped.device == labels.device
    np.testing.assert_array_equal(noisy.labels.cpu().numpy(), expected.labels)
    np.testing.assert_array_equal(noisy.flipped.cpu().numpy(), expected.flipped)
    np.testing.assert_array_equal(noisy.matrix, expected.matrix)
    assert type(noisy.matrix) is np.ndarray
    assert noisy.rate == expected.rate
    assert repr(noisy) == repr(expected)


@pytest.mark.parametrize("labels", [LABELS.tolist(), tuple(LABELS.tolist()), LABELS[::-1][::-1]])
def test_lists_and_views(labels):
    noisy = noise.symmetric(labels, 0.3)
    assert noisy.labels.dtype == np.int64
    np.testing.assert_array_equal(noisy.labels, noise.symmetric(LABELS, 0.3).labels)


@every
def test_a_noise_object_is_a_value(generator):
    noisy = generator(LABELS, 0.3, num_classes=4, seed=1)
    for again in (copy.deepcopy(noisy), pickle.loads(pickle.dumps(noisy))):
        np.testing.assert_array_equal(again.labels, noisy.labels)
        np.testing.assert_array_equal(again.requested_matrix, noisy.requested_matrix)
    with pytest.raises(AttributeError):
        noisy.labels = LABELS


@every
@pytest.mark.parametrize("labels", [[], np.zeros(0, np.uint8), torch.zeros(0, dtype=torch.int64)])
def test_no_labels(generator, labels):
    noisy = generator(labels, 0.3, num_classes=4, seed=1)
    assert len(noisy) == noisy.rate == 0
    assert type(noisy.labels) is (np.ndarray if isinstance(labels, list) else type(labels))
    np.testing.assert_array_equal(noisy.matrix, np.eye(4))


def test_the_number_of_classes_is_seen():
    assert noise.symmetric([0, 3, 1], 0.2).num_classes == 4
    assert noise.symmetric([0, 3, 1], 0.2, num_classes=np.int32(9)).num_classes == 9
    assert noise.asymmetric([0, 3, 1], 0.2, dataset="cifar100").num_classes == 100


BAD = {
    "floats": ([0.0, 1.0], {}, TypeError, r"must be integers.*float64: .*labels.astype\(int\)"),
    "float tensor": (torch.ones(3), {}, TypeError, r"were torch.float32: .*labels.long\(\)"),
    "booleans": (np.array([True, False]), {}, TypeError, "must be integers.*they were bool"),
    "words": (["cat", "dog"], {}, TypeError, "must be integers.*<U3: number the names"),
    "negative": ([0, -1, 2], {}, ValueError, "the smallest was -1: leave unlabelled samples out"),
    "huge": (np.array([2**64 - 1], np.uint64), {}, ValueError, "the largest was 1844674407"),
    "matrix": (np.eye(3, dtype=int), {}, ValueError, r"\[N\].*\[3, 3\]; .*labels.argmax\(1\)"),
    "one number": (3, {}, ValueError, r"their shape was \[\]"),
    "too large": ([0, 7], {"num_classes": 5}, ValueError, "a label is 7, and num_classes = 5"),
    "one class": ([0, 0], {}, ValueError, "every label is 0: give num_classes"),
    "none": ([], {}, ValueError, "there are no labels: give num_classes"),
    "K = 1": ([0, 0], {"num_classes": 1}, ValueError, "at least 2.*it was 1"),
    "K = 2.5": ([0, 1], {"num_classes": 2.5}, TypeError, "a whole number; it was 2.5"),
    "K of a small type": (
        np.zeros(3, np.uint8), {"num_classes": 300}, ValueError, "uint8 cannot hold class 299: give"
    ),
    "rate": ([0, 1], {"rate": 1.5}, ValueError, "from 0 to 1; it was 1.5: for 1.5 %, give 0.015"),
    "rate below 0": ([0, 1], {"rate": -0.1}, ValueError, "from 0 to 1; it was -0.1$"),
    "rate NaN": ([0, 1], {"rate": float("nan")}, ValueError, "from 0 to 1; it was nan"),
    "rate text": ([0, 1], {"rate": "0.4"}, TypeError, "rate must be a number.*'0.4'"),
    "seed": ([0, 1], {"seed": -1}, ValueError, r"seed must be from 0 to 2\^64 - 1; it was -1"),
    "seed 0.5": ([0, 1], {"seed": 0.5}, TypeError, "seed must be a whole number; it was 0.5"),
    "seed None": ([0, 1], {"seed": None}, TypeError, "seed must be a whole number; it was None"),
}  # fmt: skip


@pytest.mark.parametrize(("labels", "keywords", "error", "message"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("generator", [noise.symmetric, noise.pairflip])
def test_refused(generator, labels, keywords, error, message):
    with pytest.raises(error, match=message) as caught:
        generator(labels, **{"rate": 0.2, **keywords})
    assert "\n" not in str(caught.value)


def test_authors_seeds_are_of_32_bits():
    with pytest.raises(ValueError, match=r"seed must be from 0 to 2\^32 - 1; it was 4294967296"):
        noise.symmetric([0, 1], 0.2, seed=2**32, variant="authors")


@pytest.mark.parametrize(
    ("T", "error", "message"),
    [
        (np.ones((2, 3)) / 3, ValueError, r"T must be square.*shape was \[2, 3\]"),
        ([[1.0]], ValueError, "K at least 2"),
        ([[0.5, 0.4], [0, 1]], ValueError, "row 0 sums to 0.9: divide each row by its sum"),
        ([[0.5, 0.4], [0.5, 0.6]], ValueError, "row 1 sums to 1.1: its columns do: give T.T"),
        ([[1.5, -0.5], [0, 1]], ValueError, "finite and not negative"),
        ([[np.nan, 1], [0, 1]], ValueError, "finite and not negative"),
        ([["a", "b"], ["c", "d"]], TypeError, "T must be numbers"),
        (np.eye(2), ValueError, "a label is 2, and the size of T = 2 allows 0 to 1"),
    ],
)
def test_matrices_refused(T, error, message):
    with pytest.raises(error, match=message) as caught:
        noise.from_matrix([0, 1, 2], T)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("convert", [np.float32, torch.tensor, np.ndarray.tolist])
def test_matrices_of_any_kind(convert):
    T = noise.matrix("symmetric", 0.3, num_classes=4)
    noisy = noise.from_matrix(LABELS, convert(T))
    np.testing.assert_allclose(noisy.requested_matrix, T, atol=1e-7)
    np.testing.assert_array_equal(noisy.labels, noise.from_matrix(LABELS, T).labels)


def test_torch_is_not_imported():
    code = (
        "import sys, numpy; from noiseproof import noise; noise.symmetric([0, 1, 2] * 5, 0.4)\n"
        "noise.instance_dependent(numpy.ones((6, 2)), [0, 1, 2] * 2, 0.1)\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
