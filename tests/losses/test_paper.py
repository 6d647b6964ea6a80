"""What the paper states, as tests; and where a number shows that a statement slipped."""

from __future__ import annotations

import pytest
import torch

import noiseproof

from .subjects import APL, ROBUST

K = 10
LOGITS = 3 * torch.randn(64, K, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
P = LOGITS.softmax(1)


def matrix(text: str) -> torch.Tensor:
    return noiseproof.parse(text).per_class(LOGITS)


def same(a: str, b: str, factor: float = 1.0) -> None:
    torch.testing.assert_close(matrix(a), factor * matrix(b))


def test_table_1_active_and_passive():
    for name in ("ce", "nce", "fl", "nfl"):
        assert noiseproof.parse(name).kind == "active"
    for name in ("mae", "nmae", "rce", "nrce"):
        assert noiseproof.parse(name).kind == "passive"


def test_other_kinds_that_the_text_states():
    for name in ("gce", "ngce"):
        assert noiseproof.parse(name).kind == "active"
    for text in (*APL, "sce"):  # "APL losses can be considered as passive losses"
        assert noiseproof.parse(text).kind == "passive"


def test_limits_between_the_losses():
    same("fl(gamma=0)", "ce")
    same("gce(rho=1)", "mae", 0.5)
    same("rce(A=-2)", "mae")
    same("nmae", "nrce")
    same("nrce(A=-9.21)", "nrce(A=-1)")
    same("nfl(gamma=0)", "nce")
    same("ngce(rho=1)", "nmae")
    same("sce(alpha=3, beta=0.5, A=-6)", "3*ce + 0.5*rce(A=-6)")
    for near_zero in ("gce(rho=1e-9)", "ngce(rho=1e-9)"):
        exact = near_zero.replace("gce(rho=1e-9)", "ce")
        torch.testing.assert_close(matrix(near_zero), matrix(exact), rtol=1e-6, atol=1e-6)


def test_equations_of_the_normalized_losses():
    """Eq. 2 (change of base), Eq. 3, Eq. 4 with its sign, and NGCE of Section 4.3."""
    log_p = P.log()
    torch.testing.assert_close(matrix("nce"), log_p / log_p.sum(1, keepdim=True))
    same("nmae", "mae", 1 / (2 * (K - 1)))
    same("nrce", "rce", 1 / (4 * (K - 1)))
    rho = 0.7
    torch.testing.assert_close(matrix("ngce"), (1 - P**rho) / (K - (P**rho).sum(1, keepdim=True)))


@pytest.mark.parametrize("name", ["nce", "nfl", "ngce", "nmae", "nrce"])
def test_normalized_losses_lie_in_0_to_1_and_sum_to_1(name):
    values = matrix(name)
    assert bool(((values >= 0) & (values <= 1)).all())
    torch.testing.assert_close(values.sum(1), torch.ones(64, dtype=torch.float64))


@pytest.mark.parametrize(("name", "constant"), [("mae", 2 * (K - 1)), ("rce", 4 * (K - 1))])
def test_mae_and_rce_are_symmetric(name, constant):
    torch.testing.assert_close(matrix(name).sum(1), torch.full((64,), constant).double())


def noisy_risk(text: str, rate: float) -> torch.Tensor:
    """The expected loss of every prediction and true class under symmetric noise of this rate."""
    transition = torch.full((K, K), rate / (K - 1), dtype=torch.float64).fill_diagonal_(1 - rate)
    return matrix(text) @ transition.T


@pytest.mark.parametrize("rate", [0.2, 0.6, 0.8])
@pytest.mark.parametrize("text", ROBUST)
def test_lemma_1(text, rate):
    """The noisy risk is the clean risk, scaled by something positive, plus a constant."""
    constant = matrix(text).sum(1, keepdim=True)
    expected = (1 - rate * K / (K - 1)) * matrix(text) + rate / (K - 1) * constant
    torch.testing.assert_close(noisy_risk(text, rate), expected)


@pytest.mark.parametrize("text", ["ce", "fl", "gce", "sce", "ce + mae"])
def test_lemma_1_fails_for_losses_that_are_not_symmetric(text):
    low, high = noiseproof.losses.class_sum_range(noiseproof.parse(text), K)
    assert high > 1.1 * low


@pytest.mark.parametrize("text", ["unhinged", "symmetrize(fl)"])
def test_where_values_cancel_the_sum_is_zero(text):
    assert noiseproof.losses.class_sum_range(noiseproof.parse(text), K) == (0, 0)


class TestSlips:
    """Statements that a numeric check contradicts; docs/paper-notes.md lists them for readers."""

    def test_last_line_of_the_nfl_equation_is_another_function(self):
        gamma = 0.5
        inside = ((1 - P) ** gamma * P).log()
        as_printed = inside / inside.sum(1, keepdim=True)
        assert (as_printed - matrix("nfl")).abs().max() > 0.01

    def test_factor_of_nrce_needs_a_minus(self):
        same("nrce", "rce", -1 / (-4 * (K - 1)))
        assert bool((1 / (-4 * (K - 1)) * matrix("rce") <= 0).all())  # as printed: negative

    @pytest.mark.parametrize(("name", "supremum"), [("nce", 1.0), ("nfl", 1.0), ("ngce", 0.1238)])
    def test_bound_of_lemma_2_fails(self, name, supremum):
        """L_norm <= 1/(K - 1) is assumed; it fails as p_y goes to 0 with the rest spread evenly."""
        # log p_y = -1e6 for NCE: its share of the sum goes to 1 as 1 - O(1 / |log p_y|)
        logits = torch.zeros(1, K, dtype=torch.float64)
        logits[0, 0] = -1e7
        value = noiseproof.parse(name).per_class(logits)[0, 0].item()
        assert value == pytest.approx(supremum, abs=2e-4)
        assert value > 1 / (K - 1)
        assert matrix(name).max() < value  # random predictions do not show it

    @pytest.mark.parametrize("name", ["nmae", "nrce"])
    def test_bound_of_lemma_2_holds_for_these(self, name):
        low, high = 0.0, 1 / (K - 1)
        values = noiseproof.parse(name).per_class(torch.cat([LOGITS, 1e4 * torch.eye(K)]))
        assert bool(((values >= low) & (values <= high + 1e-15)).all())

    def test_cross_entropy_on_a_complementary_label(self):
        """Printed as -log(1 - RCE)/(K - 1) with A = -1; it is -log(RCE), with no factor."""
        complementary = -torch.log1p(-P)  # NLNL's: -log(1 - p) at the complementary label
        rce = matrix("rce(A=-1)")
        torch.testing.assert_close(complementary, -torch.log(rce))
        as_printed = -torch.log(1 - rce) / (K - 1)
        torch.testing.assert_close(as_printed, matrix("ce") / (K - 1))  # CE on the label itself
        assert (as_printed - complementary).abs().max() > 0.1
