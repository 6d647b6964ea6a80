"""What every generator promises, for any labels, rate and seed."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noiseproof import noise
from noiseproof.noise import _draw, _instance

from .subjects import ALL, EXACT, labelled, rates, seeds, uneven

pytestmark = pytest.mark.filterwarnings("ignore::noiseproof.noise.NoiseWarning")

every = pytest.mark.parametrize("generator", ALL.values(), ids=ALL)
every_exact = pytest.mark.parametrize("generator", EXACT.values(), ids=EXACT)
few = settings(max_examples=40, deadline=None)


@every
@few
@given(labelled(), rates, seeds)
def test_the_object_is_consistent(generator, drawn, rate, seed):
    labels, K = drawn
    before = labels.copy()
    noisy = generator(labels, rate, num_classes=K, seed=seed)
    np.testing.assert_array_equal(labels, before)  # nothing is done in place
    np.testing.assert_array_equal(noisy.clean, before)
    assert not np.shares_memory(noisy.clean, labels)
    assert not np.shares_memory(noisy.clean, noisy.labels)
    np.testing.assert_array_equal(noisy.flipped, noisy.labels != before)
    assert noisy.num_classes == K
    assert len(noisy) == len(labels)
    assert noisy.rate == (np.mean(noisy.flipped) if len(labels) else 0)
    assert noisy.labels.size == 0 or 0 <= noisy.labels.min() <= noisy.labels.max() < K
    for matrix in (noisy.matrix, noisy.requested_matrix):
        assert matrix.shape == (K, K)
        assert matrix.dtype == np.float64
        np.testing.assert_allclose(matrix.sum(1), 1)
        assert matrix.min() >= 0
    for j in range(K):
        own = labels == j
        expected = np.mean(noisy.flipped[own]) if own.any() else 0
        assert noisy.class_rates[j] == expected


@every
@few
@given(labelled(), rates, seeds)
def test_what_was_not_asked_for_does_not_happen(generator, drawn, rate, seed):
    labels, K = drawn
    noisy = generator(labels, rate, num_classes=K, seed=seed)
    there = np.isin(np.arange(K), labels)
    assert not noisy.matrix[there][
        noisy.requested_matrix[there] == 0
    ].any()  # untouched, and impossible


@every
@few
@given(labelled(), rates, seeds)
def test_the_same_seed_gives_the_same_labels(generator, drawn, rate, seed):
    labels, K = drawn
    first, second = (generator(labels, rate, num_classes=K, seed=seed) for _ in range(2))
    np.testing.assert_array_equal(first.labels, second.labels)


@every
def test_another_seed_gives_other_labels(generator):
    labels = np.arange(600) % 3
    made = [generator(labels, 0.4, num_classes=3, seed=seed).labels for seed in range(4)]
    for i, j in ((0, 1), (0, 2), (1, 3)):
        assert (made[i] != made[j]).mean() > 0.1


@every_exact
@few
@given(labelled(), rates, seeds)
def test_exact_counts(generator, drawn, rate, seed):
    labels, K = drawn
    noisy = generator(labels, rate, num_classes=K, seed=seed)
    quotas = (1 - noisy.requested_matrix.diagonal()) * np.bincount(labels, minlength=K)
    flips = np.bincount(labels[noisy.flipped], minlength=K)
    assert (np.abs(flips - quotas) < 1).all()
    assert abs(flips.sum() - math.fsum(quotas)) <= 0.5 + 1e-6


@few
@given(labelled(), rates, seeds)
def test_a_matrix_is_met_as_nearly_as_counts_can(drawn, rate, seed):
    labels, K = drawn
    noisy = noise.from_matrix(labels, uneven(rate, K), seed=seed)
    counts = np.bincount(labels, minlength=K)[:, None]
    flips = np.bincount(labels[noisy.flipped], minlength=K)[:, None]
    others = noisy.requested_matrix * (1 - np.eye(K))
    quotas = others / np.maximum(others.sum(1, keepdims=True), 1e-300) * flips
    off = np.abs(noisy.matrix * counts - quotas) * (1 - np.eye(K)) * (counts > 0)
    assert off.max() < 1 + 1e-6


@few
@given(labelled(), seeds, st.floats(0, 1), st.floats(0, 1))
def test_a_higher_rate_flips_the_same_samples_and_more(drawn, seed, one, other):
    labels, K = drawn
    low, high = (
        noise.symmetric(labels, rate, num_classes=K, seed=seed) for rate in sorted((one, other))
    )
    lost = low.flipped & ~high.flipped
    assert np.bincount(labels[lost], minlength=K).max() <= 1  # the rounding of a class's count
    both = low.flipped & high.flipped
    np.testing.assert_array_equal(low.labels[both], high.labels[both])


@pytest.mark.parametrize("exact", [True, False])
@few
@given(labelled(), rates, seeds)
def test_a_matrix_of_one_target_is_the_mapping(exact, drawn, rate, seed):
    labels, K = drawn
    pairs = noise.pairflip(labels, rate, num_classes=K, seed=seed, exact=exact)
    T = noise.matrix("pairflip", rate, num_classes=K)
    same = noise.from_matrix(labels, T, seed=seed, exact=exact)
    np.testing.assert_array_equal(pairs.labels, same.labels)
    ring = noise.asymmetric(
        labels, rate, mapping=noise.circular([range(K)]), num_classes=K, seed=seed, exact=exact
    )
    np.testing.assert_array_equal(pairs.labels, ring.labels)


def within_sampling_error(noisy, sigmas=5.0):
    counts = np.bincount(noisy.clean, minlength=noisy.num_classes)[:, None]
    p = noisy.requested_matrix
    error = sigmas * np.sqrt(p * (1 - p) / counts) + 1.5 / counts
    assert (np.abs(noisy.matrix - p) < error).all()


@every
@pytest.mark.parametrize("seed", range(3))
def test_the_matrix_achieved_is_the_one_asked_for(generator, seed):
    noisy = generator(np.arange(20_000) % 5, 0.4, num_classes=5, seed=seed)
    within_sampling_error(noisy)
    assert noisy.rate == pytest.approx(1 - noisy.requested_matrix.diagonal().mean(), abs=0.02)


def test_symmetric_noise_is_what_was_asked_for():
    asked = noise.symmetric(np.arange(100) % 5, 0.4).requested_matrix
    np.testing.assert_allclose(asked, 0.1 + 0.5 * np.eye(5))


def test_the_coins_of_independent_draws_are_fair():
    flips = [
        noise.symmetric([0, 1] * 50, 0.3, seed=s, exact=False).flipped.sum() for s in range(400)
    ]
    assert np.mean(flips) == pytest.approx(30, abs=5 * math.sqrt(21 / 400))
    assert np.var(flips) == pytest.approx(21, rel=0.35)  # binomial; exact counts have none
    exact = [noise.symmetric([0, 1] * 50, 0.3, seed=s).flipped.sum() for s in range(5)]
    assert exact == [30] * 5


def test_every_sample_is_as_likely_to_be_flipped():
    flipped = sum(
        noise.symmetric(np.zeros(20, int), 0.4, num_classes=3, seed=s).flipped for s in range(2000)
    )
    assert (np.abs(flipped - 800) < 5 * math.sqrt(2000 * 0.24)).all()


@pytest.mark.parametrize("exact", [True, False])
def test_every_other_class_is_as_likely(exact):
    drawn = [
        noise.symmetric([1, 1, 1], 1, num_classes=4, seed=s, exact=exact).labels
        for s in range(2000)
    ]
    counts = np.bincount(np.concatenate(drawn), minlength=4)
    assert counts[1] == 0
    assert (np.abs(counts[[0, 2, 3]] - 2000) < 5 * math.sqrt(6000 * 2 / 9)).all()


@pytest.mark.parametrize("make", [noise.symmetric, noise.pairflip])
def test_classes_of_one_sample_take_turns(make):
    flipped = sum(make(np.arange(50), 0.3, seed=s).flipped for s in range(1000))
    assert flipped.sum() == 15 * 1000
    assert (np.abs(flipped - 300) < 5 * math.sqrt(1000 * 0.21)).all()  # no class is favoured


def test_equal_remainders_of_a_row_take_turns():
    T = noise.matrix("symmetric", 0.5, num_classes=9)  # of 2 samples one is flipped, to any of 8
    drawn = [noise.from_matrix([4, 4], T, seed=s) for s in range(2000)]
    counts = sum(np.bincount(n.labels[n.flipped], minlength=9) for n in drawn)
    assert counts[4] == 0
    assert (np.abs(np.delete(counts, 4) - 250) < 5 * math.sqrt(2000 * 7 / 64)).all()


@given(st.lists(st.floats(0, 50), min_size=1, max_size=30), seeds)
@settings(deadline=None)
def test_apportion(quotas, seed):
    quotas = np.array(quotas)
    whole = _draw.apportion(quotas, _draw.words(seed, "round", len(quotas)))
    assert (whole >= np.floor(quotas)).all()
    assert (whole <= np.ceil(quotas)).all()
    assert abs(whole.sum() - quotas.sum()) <= 0.5 + 1e-6


@pytest.mark.parametrize("draw", ["of a class", "of a sample"])
def test_a_draw_at_an_edge_has_a_weight(draw):
    weights = np.array([0.0, 0.0, 0.5, 0.0, 0.5, 0.0])
    u = np.array([0.0, 0.25, 0.5, 1 - 2.0**-53, 1.0])
    if draw == "of a class":
        drawn = _draw._first_above(weights.cumsum(), u)
    else:
        drawn = _instance._draw_by_row(np.tile(weights, (5, 1)), u)
    assert drawn.tolist() == [2, 2, 4, 4, 4]


def test_quotas_are_not_lost_to_rounding_errors():
    assert 0.29 * 100 < 29
    noisy = noise.symmetric(np.arange(1000) % 10, 0.29)
    np.testing.assert_array_equal(np.bincount(noisy.clean[noisy.flipped]), 29)


def test_two_classes():
    noisy = noise.symmetric([0, 1] * 10, 0.4)
    np.testing.assert_array_equal(noisy.labels[noisy.flipped], 1 - noisy.clean[noisy.flipped])
    np.testing.assert_array_equal(noisy.labels, noise.pairflip([0, 1] * 10, 0.4).labels)


def test_rates_of_0_and_1():
    labels = np.arange(40) % 4
    for generator in (noise.symmetric, noise.pairflip):
        for exact in (True, False):
            assert not generator(labels, 0, exact=exact).flipped.any()
            assert generator(labels, 1, exact=exact).flipped.all()


def test_too_many_for_one_key_is_said():
    with pytest.raises(ValueError, match="too many for exact counts: give exact=False"):
        _draw._sorted_within_classes(np.zeros(2**10, int), _draw.words(0, "which", 2**10), 2**40)


def test_nothing_touches_the_global_generator():
    np.random.seed(3)
    expected = np.random.RandomState(3).random_sample()
    with warnings.catch_warnings():
        noise.symmetric([0, 1, 2] * 9, 0.3)
        noise.symmetric([0, 1, 2] * 9, 0.3, variant="authors")
    assert np.random.random_sample() == expected
