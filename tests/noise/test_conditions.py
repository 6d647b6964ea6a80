"""Matrices and rates of given labels, and the paper's conditions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseproof import noise
from noiseproof.noise import _conditions

from .subjects import ALL, labelled


@settings(deadline=None)
@given(labelled(), st.integers(0, 2**32 - 1))
def test_transition_matrix_counts(drawn, seed):
    clean, K = drawn
    noisy = np.random.RandomState(seed).randint(0, K, len(clean))
    expected = np.zeros((K, K))
    for a, b in zip(clean, noisy, strict=True):
        expected[a, b] += 1
    for j in range(K):
        if not expected[j].sum():
            expected[j, j] = 1
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(noise.transition_matrix(clean, noisy, K), expected)
    np.testing.assert_allclose(noise.class_rates(clean, noisy, K), 1 - expected.diagonal())
    made = noise.from_labels(clean, noisy, K)
    np.testing.assert_allclose(made.matrix, expected)
    assert made.requested_matrix is None
    assert made.num_classes == K


def test_from_labels():
    clean, noisy = torch.tensor([0, 1, 2, 2]), [0, 3, 1, 2]
    made = noise.from_labels(clean, noisy)
    assert made.labels.tolist() == noisy
    assert made.flipped.tolist() == [False, True, True, False]
    assert made.labels.dtype == torch.int64
    assert made.num_classes == 4
    assert made.rate == 0.5
    assert repr(made) == "NoisyLabels(4 labels of 4 classes, 50.00% wrong)"


@pytest.mark.parametrize(
    ("clean", "noisy", "K", "message"),
    [
        ([0, 1], [0, 1, 1], None, "must be the same samples; they were 2 and 3 labels"),
        ([0, 1], [0, 5], 3, "a label is 5, and num_classes = 3 allows 0 to 2"),
        ([0, -1], [0, 1], 3, "clean must be classes from 0"),
        ([0, 1], [0, -1], 3, "noisy must be classes from 0"),
        ([0, 0], [0, 0], None, "every label is 0: give num_classes"),
    ],
)
def test_from_labels_refused(clean, noisy, K, message):
    with pytest.raises(ValueError, match=message):
        noise.from_labels(clean, noisy, K)


@pytest.mark.parametrize("K", [2, 3, 10, 100])
def test_the_limit_of_symmetric_noise(K):
    limit = (K - 1) / K
    labels = np.arange(4 * K) % K
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        noisy = noise.symmetric(labels, limit - 0.01)
    assert noise.check(noisy)
    for rate in (limit, min(limit + 0.01, 1)):
        with pytest.warns(noise.NoiseWarning, match=r"is not below \(K - 1\) / K = "):
            noisy = noise.symmetric(labels, rate)
        found = noise.check(noisy)
        assert not found
        assert found.symmetric
        assert found.limit == limit
        assert len(found.violations) == K


@pytest.mark.parametrize("exact", [True, False])
def test_asymmetric_noise_must_leave_the_true_class_ahead(exact):
    labels = np.arange(30) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        noise.asymmetric(labels, 0.49, mapping={2: 0}, exact=exact)
    with pytest.warns(
        noise.NoiseWarning, match="class 2 is given as 0 no less often than as 2, so"
    ):
        noise.asymmetric(labels, 0.5, mapping={2: 0}, exact=exact)
    with pytest.warns(noise.NoiseWarning, match=r"class 0 is given as 1.*\(and 2 classes more\)"):
        noise.pairflip(labels, 0.6, exact=exact)
    with pytest.warns(noise.NoiseWarning, match="class 1 is given as 2"):
        noise.from_matrix(labels, [[1, 0, 0], [0, 0.3, 0.7], [0, 0, 1]], exact=exact)
    with pytest.warns(noise.NoiseWarning):
        noise.asymmetric(labels, 0.6, dataset="mnist", variant="authors")
    with pytest.warns(noise.NoiseWarning):
        noise.instance_dependent(np.ones((30, 2)), labels, 0.95)


def test_the_warning_points_at_the_caller():
    for ask in (
        lambda: noise.make("pairflip", [0, 1, 2], 0.6),
        lambda: noise.symmetric([0, 1], 0.6),
    ):
        with pytest.warns(noise.NoiseWarning) as caught:
            ask()
        assert caught[0].filename == __file__


def test_check_of_a_matrix():
    found = noise.check([[0.6, 0.4, 0.0], [0.3, 0.3, 0.4], [0.5, 0.0, 0.5]])
    assert not found
    assert found.violations == ((1, 2), (2, 0))
    assert found.rate == pytest.approx(0.7)
    assert not found.symmetric
    assert "class 1 is given as 2" in str(found)
    good = noise.check(torch.eye(3))
    assert good
    assert str(good).startswith("within")
    with pytest.raises(ValueError, match="row 0 sums to 2"):
        noise.check(np.ones((2, 2)))
    with pytest.warns(noise.NoiseWarning):
        swapped = noise.make("pairflip", [0, 1, 2, 2], 1.0)
    assert not noise.check(noise.from_labels(swapped.clean, swapped.labels))  # the one it has


@given(st.integers(2, 12), st.floats(0, 1), st.randoms())
@settings(deadline=None)
def test_conditions_without_the_matrix_are_those_of_it(K, rate, random):
    assert_same(
        _conditions.conditions_of_symmetric(rate, K), noise.matrix("symmetric", rate, num_classes=K)
    )
    order = random.sample(range(K), K)
    mapping = noise.circular([order])
    for source in order[: random.randrange(K)]:
        del mapping[source]
    T = np.eye(K)
    for source, target in mapping.items():
        T[source, source], T[source, target] = 1 - rate, rate
    assert_same(_conditions.conditions_of_mapping(mapping, rate, K), T)


def assert_same(short, T):
    long = noise.check(T)
    assert (short.violations, short.limit) == (long.violations, long.limit)
    assert short.rate == pytest.approx(long.rate)
    assert short.symmetric == long.symmetric or short.rate < 1e-8


@pytest.mark.parametrize("generator", ALL.values(), ids=ALL)
def test_ordinary_noise_does_not_warn(generator):
    generator(np.arange(60) % 4, 0.4, num_classes=4, seed=0)  # a warning is an error
