"""The theory as numbers: bounds, symmetry, lemmas, the noise identity as a property."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import noiseproof
from noiseproof import theory
from noiseproof.losses import Loss
from noiseproof.losses._expression import Atom

from .subjects import APL, ROBUST


def checked(text: str, num_classes: int = 10) -> theory.Check:
    return theory.check(noiseproof.parse(text), num_classes)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("ce", 0, math.inf),
        ("fl(gamma=2)", 0, math.inf),
        ("gce", 0, 1 / 0.7),
        ("mae", 0, 2),
        ("rce", 0, 4),
        ("nce", 0, 1),
        ("nfl", 0, 1),
        ("ngce", 0, 0.12396),
        ("nmae", 0, 1 / 9),
        ("nnce", 0, 1),
        ("unhinged", -math.inf, math.inf),
        ("agce(a=6, q=1.5)", 0, (7**1.5 - 6**1.5) / 1.5),
        ("aul", 0, (5.5**3 - 4.5**3) / 3),
        ("ael", math.exp(-1 / 2.5), 1),
        ("amse(a=30)", 29**2 / 10, (30**2 + 1) / 10),
        ("js", 0, 2),
        ("taylor(t=3)", 0, 1 + 1 / 2 + 1 / 3),
        ("phuber(tau=10)", 0, math.log(10) + 1),
        ("tgce", 0, (1 - 0.5**0.7) / 0.7),
        ("ldr(lam=1, c=0)", -math.log(10), math.inf),
        ("bitempered", 0, 5),
    ],
)
def test_bounds(text, low, high):
    values = checked(text).values
    assert values.low == pytest.approx(low, abs=1e-4, rel=1e-4)
    assert values.high == pytest.approx(high, abs=1e-4, rel=1e-4)


@pytest.mark.parametrize(
    ("text", "constant"),
    [("mae", 18), ("rce", 36), ("nce", 1), ("nfl + nce", 2), ("nnce", 9), ("unhinged", 0)],
)
def test_constants(text, constant):
    found = checked(text)
    assert found.symmetric
    assert found.constant == pytest.approx(constant)
    assert found.max_symmetric_rate == 0.9


@pytest.mark.parametrize("text", ["ce", "fl", "gce", "sce", "js", "amse", "ldr", "nce + amse"])
def test_losses_that_are_not_symmetric(text):
    found = checked(text)
    assert not found.symmetric
    assert found.constant is None
    assert found.max_symmetric_rate is None
    assert "does not apply" in str(found)
    assert found.worst
    assert sum(found.worst) == pytest.approx(1)


def test_lemma_2_names_the_condition_that_fails():
    assert checked("mae").lemma_2.startswith("applies")
    assert checked("nnce").lemma_2.startswith("applies")
    assert "above the 0.1111" in checked("nce").lemma_2
    assert "not constant" in checked("ce").lemma_2
    assert "the least loss is -inf" in checked("unhinged").lemma_2


@pytest.mark.slow
def test_lemma_3_names_the_term_that_fails():
    for text in APL:
        assert checked(text, 4).lemma_3 == "applies: every term is symmetric, so the sum is"
    assert checked("nce + amse", 4).lemma_3 == "does not apply: amse is not symmetric"
    assert checked("nce", 4).lemma_3 is None


@pytest.mark.parametrize(
    ("text", "ratio"),
    [
        ("mae", 1),
        ("agce(a=0.6, q=0.6)", (0.6 / 1.6) ** 0.4),
        ("agce(a=6, q=1.5)", 1),
        ("aul(a=5.5, q=3)", (4.5 / 5.5) ** 2),
        ("aul(a=3, q=0.5)", 1),
        ("ael(a=2.5)", math.exp(-1 / 2.5)),
        ("taylor(t=2)", 0.5),
        ("phuber(tau=10)", 0.1),
        ("ce", 0),
        ("gce", 0),
        ("js", 0),
        ("nce", None),
        ("amse", None),
        ("tgce", None),
        ("unhinged", None),
    ],
)
def test_asymmetry_ratio(text, ratio):
    found = theory.asymmetry_ratio(noiseproof.parse(text))
    assert found == (ratio if ratio is None else pytest.approx(ratio, rel=1e-3))


logit_rows = st.lists(st.lists(st.floats(-50, 50), min_size=4, max_size=4), min_size=1, max_size=5)
rates = st.floats(0, 0.74)


@pytest.mark.parametrize("text", ROBUST)
@given(rows=logit_rows, rate=rates, seed=st.integers(0, 100))
@settings(max_examples=25, deadline=None)
def test_the_noise_identity(text, rows, rate, seed):
    logits = torch.tensor(rows, dtype=torch.float64)
    labels = torch.randint(4, (len(rows),), generator=torch.Generator().manual_seed(seed))
    noisy, predicted = theory.lemma_1(noiseproof.parse(text), logits, labels, rate)
    torch.testing.assert_close(noisy, predicted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("text", ["ce", "fl", "gce"])
def test_the_noise_identity_fails_without_symmetry(text):
    logits = torch.tensor([[0.0, 0.0, 0.0, 0.0], [9.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    labels = torch.tensor([0, 0])
    noisy, predicted = theory.lemma_1(noiseproof.parse(text), logits, labels, 0.4)
    assert abs(noisy - predicted) > 0.01


def test_noisy_risk_is_the_mean_over_given_labels():
    T = torch.tensor([[0.7, 0.2, 0.1], [0.0, 0.6, 0.4], [0.3, 0.3, 0.4]], dtype=torch.float64)
    logits, labels = torch.randn(6, 3, dtype=torch.float64), torch.tensor([0, 1, 2, 0, 1, 2])
    loss = noiseproof.parse("ce")
    matrix = loss.per_class(logits)
    expected = sum(T[y, j] * matrix[i, j] for i, y in enumerate(labels.tolist()) for j in range(3))
    torch.testing.assert_close(theory.noisy_risk(loss, logits, labels, T), expected / 6)


def test_backward_correction_undoes_the_noise():
    T = theory.symmetric_transition(5, 0.3)
    logits, labels = torch.randn(6, 5, dtype=torch.float64), torch.randint(5, (6,))
    loss = noiseproof.CrossEntropy()
    risk = theory.noisy_risk(noiseproof.backward_correction(loss, T), logits, labels, T)
    torch.testing.assert_close(risk, loss(logits, labels))


def test_prints_a_small_table():
    shown = str(checked("nce + rce"))
    assert shown.startswith("nce + rce, K = 10\n")
    for part in ("passive", "37, constant", "rates below 0.9", "Lemma 2", "Lemma 3"):
        assert part in shown


def test_a_loss_of_ones_own_can_be_checked():
    def squared(logits):
        p = logits.softmax(1)
        return 1 - 2 * p + p.square().sum(1, keepdim=True)

    found = theory.check(noiseproof.from_function(squared), 3)
    assert found.kind == "undetermined"
    assert not found.symmetric
    assert theory.check(noiseproof.normalize(squared), 3).symmetric
    with pytest.raises(ValueError, match="at least 2"):
        theory.check(noiseproof.parse("nce"), 1)


def test_a_text_is_checked_as_its_loss():
    assert theory.check("nce + rce", 4) == theory.check(noiseproof.parse("nce + rce"), 4)


def test_the_number_of_classes_has_a_bound():
    """It took 40 GB at 100,000 classes."""
    for text in ("nce", "nce + rce"):
        with pytest.raises(ValueError, match=r"at most 10000, .*; it was 100000; check .* fewer"):
            theory.check(text, 100_000)


@pytest.mark.slow
def test_many_classes_take_little_memory(monkeypatch):
    """No tensor has more than a few blocks, or the rows of a few probes, of logits."""
    largest = 0
    per_class, at_label = Loss.per_class, Atom.at_label

    def seen(size):
        nonlocal largest
        largest = max(largest, size)

    def watch_per_class(self, logits):
        seen(logits.numel())
        return per_class(self, logits)

    def watch_at_label(self, p):
        seen(p.logits.numel())
        return at_label(self, p)

    monkeypatch.setattr(Loss, "per_class", watch_per_class)
    monkeypatch.setattr(Atom, "at_label", watch_at_label)
    monkeypatch.setattr(theory, "_BLOCK", 1 << 16)
    assert theory.check("agce", 1000).asymmetry == pytest.approx((0.6 / 1.6) ** 0.4, rel=1e-3)
    assert largest <= 128 * 1000
    assert theory.probe_logits(10_000).numel() < 2e7


def test_probes_of_few_classes_saturate_each():
    for num_classes in (2, 3, 10, 32):
        rows = theory.probe_logits(num_classes)
        assert torch.unique(rows[rows.amax(1) == 1e4].argmax(1)).numel() == num_classes
