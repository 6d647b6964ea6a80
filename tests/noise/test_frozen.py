"""The labels of a seed never change: their hashes, and the stream they are drawn from.

A hash here may only change with a new name for the variant: results are compared by seed.
"""

from __future__ import annotations

import hashlib
import statistics

import numpy as np
import pytest

from noiseproof import noise
from noiseproof.noise import _stream

from . import twins
from .subjects import ALL

SIZES = {"small": (60, 4), "large": (50_000, 10)}


def digest(labels):
    return hashlib.sha256(np.asarray(labels, dtype="<i8").tobytes()).hexdigest()[:16]


def labels_of(count, num_classes):
    return np.arange(count) * 7919 % 104_729 % num_classes


GOLDEN = {
    ("symmetric", "small"): "6fe2b86a59541df5",
    ("symmetric", "large"): "60498ef8d3979ca3",
    ("pairflip", "small"): "6faaee20f12f53c8",
    ("pairflip", "large"): "0e8c6edfe601ab0b",
    ("asymmetric", "small"): "368ca59f82bb01db",
    ("asymmetric", "large"): "d4fb5076b9d68a22",
    ("from_matrix", "small"): "79b962ea600fe2cf",
    ("from_matrix", "large"): "2ff375f823bc252a",
    ("symmetric, independent", "small"): "21b1add6221933b3",
    ("symmetric, independent", "large"): "f3c9e9848ac97021",
    ("pairflip, independent", "small"): "d89b9f4c6e678216",
    ("pairflip, independent", "large"): "77cb724860b2516b",
    ("asymmetric, independent", "small"): "c931c7d611a0ada5",
    ("asymmetric, independent", "large"): "f922de11f312bef4",
    ("from_matrix, independent", "small"): "1374cff0b47edf4d",
    ("from_matrix, independent", "large"): "5d089f98fbab399f",
    ("instance", "small"): "c568717b46674577",
    ("instance", "large"): "3941f591c04f00ec",
}

AUTHORS = {
    "symmetric": "65e5cad105b3de1d",
    "mnist": "a82e3dc1e2c11e67",
    "cifar10": "2fe4d5980989f19b",
    "cifar100": "835d20e7bcf4b1af",
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ALL)
def test_golden(name, size):
    count, K = SIZES[size]
    noisy = ALL[name](labels_of(count, K), 0.4, num_classes=K, seed=2024)
    assert digest(noisy.labels) == GOLDEN[name, size]


@pytest.mark.parametrize("dataset", ["symmetric", "mnist", "cifar10", "cifar100"])
def test_golden_authors(dataset):
    labels = labels_of(20_000, 100 if dataset == "cifar100" else 10)
    if dataset == "symmetric":
        noisy = noise.symmetric(labels, 0.4, seed=123, variant="authors")
    else:
        noisy = noise.asymmetric(labels, 0.4, dataset=dataset, seed=123, variant="authors")
    assert digest(noisy.labels) == AUTHORS[dataset]


def test_labels_one_can_read():
    noisy = noise.symmetric([0, 1, 2, 3, 4] * 4, 0.4, seed=0)
    assert noisy.labels.tolist() == [0, 3, 3, 3, 4, 2, 2, 0, 3, 4, 3, 1, 2, 1, 2, 0, 1, 2, 3, 4]


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
@pytest.mark.parametrize(("purpose", "part"), [("which", 0), ("project", 5)])
def test_the_stream_is_philox(seed, purpose, part):
    key = (seed, int.from_bytes(purpose.encode(), "little"))
    expected = twins.philox(key, (0, 0, 0, part), 11)
    assert _stream.words(seed, purpose, 11, part).tolist() == expected
    assert _stream.words(seed, purpose, 3, part).tolist() == expected[:3]  # a prefix


def test_streams_differ_by_purpose_seed_and_part():
    drawn = [
        _stream.words(seed, purpose, 4, part).tobytes()
        for seed in (0, 1)
        for purpose in ("which", "where", "round", "spread", "rate", "project")
        for part in (0, 1)
    ]
    assert len(set(drawn)) == len(drawn)


def test_words_to_numbers():
    ends = np.array([0, 2**64 - 1], dtype=np.uint64)
    assert _stream.uniform(ends).tolist() == [0, 1 - 2.0**-53]
    assert _stream.integers_below(ends, 7).tolist() == [0, 6]
    assert _stream.integers_below(ends, 2**31).tolist() == [0, 2**31 - 1]
    assert np.isfinite(_stream.normal(ends)).all()
    assert (np.bincount(_stream.integers_below(_stream.words(0, "where", 70_000), 7)) > 9_500).all()


def test_normal_numbers():
    exact = statistics.NormalDist().inv_cdf
    p = np.concatenate(
        [np.linspace(0.001, 0.999, 999), [1e-4, 1e-9, 1e-13, 1 - 1e-9, 0.075, 0.925]]
    )
    np.testing.assert_allclose(
        _stream.normal_quantile(p), [exact(x) for x in p], rtol=2e-6, atol=1e-7
    )
    z = _stream.normal(_stream.words(0, "project", 100_000))
    np.testing.assert_allclose([z.mean(), z.std()], [0, 1], atol=0.015)


@pytest.mark.parametrize("mean", [0.0, 0.05, 0.4, 0.97, 1.0])
def test_truncated_normal(mean):
    drawn = _stream.truncated_normal(_stream.words(1, "rate", 20_000), mean, 0.1)
    assert 0 <= drawn.min() <= drawn.max() <= 1
    whole = mean + 0.1 * np.random.RandomState(0).standard_normal(200_000)
    kept = whole[(whole >= 0) & (whole <= 1)]
    for q in (0.05, 0.5, 0.95):
        assert np.quantile(drawn, q) == pytest.approx(np.quantile(kept, q), abs=0.005)
