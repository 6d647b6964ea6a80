"""Noise by sample, against its definition written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from noiseproof import noise
from noiseproof.noise import _instance, _stream

FEATURES = np.round(np.random.RandomState(0).standard_normal((400, 6)), 3)
LABELS = np.arange(400) % 5


def probabilities(features, labels, rate, K, seed):
    """Where each sample goes, with what probability: Xia et al.'s procedure, a sample at a time."""
    N, D = features.shape
    rates = _stream.truncated_normal(_stream.words(seed, "rate", N), rate, 0.1)
    rows = []
    for x, y, q in zip(features, labels, rates, strict=True):
        W = _stream.normal(_stream.words(seed, "project", D * K, part=int(y))).reshape(D, K)
        scores = np.array([sum(x[d] * W[d, k] for d in range(D)) for k in range(K)])
        weights = np.exp(scores - scores.max())
        weights[y] = 0
        row = q * weights / weights.sum()
        row[y] = 1 - q
        rows.append(row)
    return np.array(rows)


def test_the_matrix_asked_for_is_the_mean_of_the_samples():
    noisy = noise.instance_dependent(FEATURES, LABELS, 0.4, seed=3)
    rows = probabilities(FEATURES, LABELS, 0.4, 5, 3)
    for j in range(5):
        np.testing.assert_allclose(noisy.requested_matrix[j], rows[j == LABELS].mean(0))


def test_samples_go_where_their_features_say():
    x, y = np.repeat(FEATURES[:8], 3000, axis=0), np.repeat(LABELS[:8], 3000)
    noisy = noise.instance_dependent(x, y, 0.4, num_classes=5, seed=3)
    rows = probabilities(FEATURES[:8], LABELS[:8], 0.4, 5, 3)
    for i in range(8):  # copies of a sample differ by their rates, not by their destinations
        own = y[i * 3000]
        counts = np.bincount(noisy.labels[i * 3000 : (i + 1) * 3000], minlength=5) / 3000
        assert counts[own] == pytest.approx(0.6, abs=0.05)
        shares = np.delete(counts, own) / (1 - counts[own])
        expected = np.delete(rows[i], own) / (1 - rows[i][own])
        np.testing.assert_allclose(shares, expected, atol=0.075)


def test_alike_samples_are_mistaken_alike():
    towards = noise.instance_dependent(10 * FEATURES, LABELS, 0.4, seed=3)
    again = noise.instance_dependent(10 * FEATURES[::-1], LABELS[::-1], 0.4, seed=3)
    both = towards.flipped & again.flipped[::-1]
    assert both.sum() > 30
    assert np.mean(towards.labels[both] == again.labels[::-1][both]) > 0.8  # by chance: 0.25


def test_a_class_absent_and_two_classes():
    noisy = noise.instance_dependent(FEATURES[:100], np.arange(100) % 2 * 2, 0.3, num_classes=3)
    np.testing.assert_array_equal(noisy.requested_matrix[1], [0, 1, 0])
    two = noise.instance_dependent(FEATURES[:100], np.arange(100) % 2, 0.3)
    np.testing.assert_array_equal(two.labels[two.flipped], 1 - two.clean[two.flipped])


def test_a_rate_of_0_flips_nothing():
    assert not noise.instance_dependent(FEATURES, LABELS, 0).flipped.any()


def test_blocks_are_only_for_the_memory(monkeypatch):
    whole = noise.instance_dependent(FEATURES, LABELS, 0.4)
    monkeypatch.setattr(_instance, "_BLOCK", 64)
    blocks = noise.instance_dependent(FEATURES, LABELS, 0.4)
    np.testing.assert_array_equal(whole.labels, blocks.labels)
    np.testing.assert_allclose(whole.requested_matrix, blocks.requested_matrix)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.uint8])
def test_features_of_any_kind(dtype, device):
    x = torch.arange(400 * 12).remainder(13).reshape(400, 3, 2, 2) - (dtype != torch.uint8) * 6
    expected = noise.instance_dependent(x.reshape(400, 12).numpy(), LABELS, 0.3)
    x = x.to(device, dtype).requires_grad_(dtype.is_floating_point)
    np.testing.assert_array_equal(noise.instance_dependent(x, LABELS, 0.3).labels, expected.labels)


def test_huge_features():
    noisy = noise.instance_dependent(FEATURES * 1e6, LABELS, 0.4)
    assert np.isfinite(noisy.requested_matrix).all()
    assert noisy.rate == pytest.approx(0.4, abs=0.1)


@pytest.mark.parametrize(
    ("features", "error", "message"),
    [
        (FEATURES[:5], ValueError, r"for the N = 400 labels; their shape was \[5, 6\]$"),
        (FEATURES[:, 0], ValueError, r"shape was \[400\]: give features\[:, None\]"),
        (FEATURES * np.nan, ValueError, "some are NaN or infinite"),
        (FEATURES.astype(str), TypeError, "features must be numbers"),
    ],
)
def test_refused(features, error, message):
    with pytest.raises(error, match=message):
        noise.instance_dependent(features, LABELS, 0.3)
