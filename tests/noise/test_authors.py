"""``variant="authors"``: their very labels, against their procedure written out."""

from __future__ import annotations

import numpy as np
import pytest

from noiseproof import noise
from noiseproof.noise import _authors

from . import twins

numpy_before_2_5 = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) >= "2.5.0",
    reason="from NumPy 2.5 on multinomial draws otherwise; test_frozen.py has the hashes",
)
RATES = [0.0, 0.1, 0.2, 0.29, 0.3, 0.4]
SEEDS = [0, 1, 123]


def labels_of(num_classes, count, seed=7):
    return np.random.RandomState(seed).randint(0, num_classes, count)


@pytest.mark.filterwarnings("ignore::noiseproof.noise.NoiseWarning")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rate", [*RATES, 0.6, 0.8])
@pytest.mark.parametrize("K", [2, 3, 10, 100])
def test_symmetric(K, rate, seed):
    labels = labels_of(K, 700) if K < 100 else np.random.RandomState(seed).permutation(700) % 100
    expected = twins.authors_symmetric(labels, rate, K, seed)
    noisy = noise.symmetric(labels, rate, num_classes=K, seed=seed, variant="authors")
    np.testing.assert_array_equal(noisy.labels, expected)
    each = int(int(rate * 700) / K)
    np.testing.assert_array_equal(np.bincount(labels[noisy.flipped], minlength=K), each)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rate", RATES)
def test_cifar10(rate, seed):
    labels = labels_of(10, 2000)
    noisy = noise.asymmetric(labels, rate, dataset="cifar10", seed=seed, variant="authors")
    np.testing.assert_array_equal(noisy.labels, twins.authors_cifar10(labels, rate, seed))


@numpy_before_2_5
@pytest.mark.filterwarnings("ignore::noiseproof.noise.NoiseWarning")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rate", [*RATES, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("dataset", ["mnist", "cifar100"])
def test_mnist_and_cifar100(dataset, rate, seed):
    matrix = (twins.mnist_matrix if dataset == "mnist" else twins.cifar100_matrix)(rate)
    labels = labels_of(len(matrix), 1500)
    noisy = noise.asymmetric(labels, rate, dataset=dataset, seed=seed, variant="authors")
    np.testing.assert_array_equal(noisy.labels, twins.authors_by_matrix(labels, matrix, seed))
    np.testing.assert_array_equal(noisy.requested_matrix, matrix)


@numpy_before_2_5
@pytest.mark.parametrize("spread", [0.05, 0.3, 2.0])
def test_any_matrix_label_by_label(spread):
    random = np.random.RandomState(0)
    for K in (2, 3, 10) * 10:
        matrix = random.dirichlet(np.full(K, spread), K) * (random.random_sample((K, K)) < 0.7)
        matrix[:, 0] += 1e-300  # no row is empty
        matrix /= matrix.sum(1, keepdims=True)
        labels, seed = random.randint(0, K, 200), random.randint(1000)
        np.testing.assert_array_equal(
            _authors.label_by_label(labels, matrix, seed),
            twins.authors_by_matrix(labels, matrix, seed),
        )


@pytest.mark.parametrize("rate", [0.1, 0.2, 0.3, 0.4])
@pytest.mark.parametrize("seed", SEEDS)
def test_cats_flip_back(rate, seed):
    labels = np.repeat(np.arange(10), 5000)
    theirs = noise.asymmetric(labels, rate, dataset="cifar10", seed=seed, variant="authors")
    cat, dog = 3, 5
    assert theirs.class_rates[cat] == pytest.approx(rate * (1 - rate), abs=0.02)
    assert theirs.rate == pytest.approx((4 * rate + rate * (1 - rate)) / 10, abs=0.003)
    assert theirs.matrix[dog, cat] == pytest.approx(rate, abs=0.02)
    disjoint = noise.asymmetric(labels, rate, dataset="cifar10", seed=seed)
    assert disjoint.class_rates[cat] == pytest.approx(rate)
    assert disjoint.rate == pytest.approx(rate / 2)  # 20 % at 0.4, against their 18.5 or so


def test_unequal_classes_have_unequal_rates():
    labels = np.repeat([0, 1], [100, 300])
    theirs = noise.symmetric(labels, 0.4, seed=0, variant="authors")
    np.testing.assert_allclose(theirs.class_rates, [0.8, 80 / 300])
    np.testing.assert_allclose(noise.symmetric(labels, 0.4, seed=0).class_rates, [0.4, 0.4])


def test_a_class_that_is_too_small():
    labels = np.repeat([0, 1, 2], [3, 100, 100])
    with pytest.raises(
        ValueError, match="takes 27 labels from every class, and class 0 has 3: give"
    ):
        noise.symmetric(labels, 0.4, variant="authors")
