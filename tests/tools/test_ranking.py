"""When noisy labels rank as true ones do: what docs/choose.md says of it, computed."""

from __future__ import annotations

import numpy as np
import pytest

K = 10


def noisy_accuracy(predicted: np.ndarray, true: np.ndarray, matrix: np.ndarray) -> float:
    """The expected accuracy on labels that are drawn by a transition matrix."""
    return float(matrix[true, predicted].mean())


def classifiers(n: int = 400) -> tuple[np.ndarray, list[np.ndarray]]:
    """Of the same samples answers that are right ever more often."""
    drawn = np.random.default_rng(0)
    true = drawn.integers(0, K, n)
    shares = np.linspace(0.2, 1, 9)
    return true, [np.where(drawn.random(n) < p, true, drawn.integers(0, K, n)) for p in shares]


@pytest.mark.parametrize("rate", [0.2, 0.6, 0.85])
def test_symmetric_noise_is_affine(rate):
    matrix = np.full((K, K), rate / (K - 1))
    np.fill_diagonal(matrix, 1 - rate)
    true, answers = classifiers()
    clean = np.array([(a == true).mean() for a in answers])
    noisy = np.array([noisy_accuracy(a, true, matrix) for a in answers])
    slope = 1 - rate * K / (K - 1)
    np.testing.assert_allclose(noisy, rate / (K - 1) + slope * clean)
    assert slope > 0
    if rate == 0.6:
        assert slope == pytest.approx(1 / 3)


def test_beyond_its_bound_the_ranking_turns_round():
    matrix = np.full((K, K), 0.95 / (K - 1))
    np.fill_diagonal(matrix, 0.05)
    true, answers = classifiers()
    assert noisy_accuracy(answers[-1], true, matrix) < noisy_accuracy(answers[0], true, matrix)


def test_asymmetric_noise_may_rank_wrongly_though_the_truth_is_best():
    rate = 0.4
    matrix = (1 - rate) * np.eye(K) + rate * np.roll(np.eye(K), 1, axis=1)
    true = np.arange(100) % K
    confused = np.where(np.arange(100) < 50, (true + 1) % K, true)  # makes the labels' mistake
    other = np.where(np.arange(100) < 40, (true + 2) % K, true)  # fewer mistakes, but its own
    assert (confused == true).mean() < (other == true).mean()
    assert noisy_accuracy(confused, true, matrix) > noisy_accuracy(other, true, matrix)
    best = noisy_accuracy(true, true, matrix)
    assert best > noisy_accuracy(confused, true, matrix)
