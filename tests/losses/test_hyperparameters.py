"""At the ends of the ranges of the hyper-parameters: value and gradient against 60 digits."""

from __future__ import annotations

import math

import mpmath
import pytest
import torch

import noiseproof
from noiseproof.losses import Loss

from . import reference

TOLERANCE = {torch.float64: 1e-12, torch.float32: 3e-6}  # relative, and absolute below 1

ORDINARY = [
    [0.3, -0.2, 0.1],
    [3.0, 0.5, -2.0],
    [1.0, 1.0, 0.0],
    [9.0, 0.0, 1.0],
    [18.0, 0.0, -0.5],
    [40.0, 0.0, -40.0],
    [200.0, 0.0, 0.0],
    [0.0, 6400.0, 1.0],
    [1e4, -1e4, 0.0],
    [0.0, 0.0, 0.0],
]


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(60):
        yield


def check_against_exact(loss: Loss, rows: list[list[float]]) -> None:
    """Value, gradient and a finite second derivative at every row, label and precision."""
    for dtype, row in ((dtype, row) for dtype in TOLERANCE for row in rows):
        exact_logits = tuple(torch.tensor(row, dtype=dtype).tolist())
        for label in range(len(row)):
            where = f"{loss} at {row}, label {label}, {dtype}"
            logits = torch.tensor([row], dtype=dtype, requires_grad=True)
            value = loss(logits, torch.tensor([label]))
            expected = float(reference.exact(loss.expression, exact_logits, label))
            room = TOLERANCE[dtype]
            assert value.item() == pytest.approx(expected, rel=room, abs=room), where
            (gradient,) = torch.autograd.grad(value, logits, create_graph=True)
            slopes = reference.exact_slopes(loss.expression, exact_logits, label)
            for slope, sides in zip(gradient[0].tolist(), slopes, strict=True):
                around = 10 * room * max(1.0, *map(abs, sides))
                assert min(sides) - around <= slope <= max(sides) + around, where
            (second,) = torch.autograd.grad(gradient.square().sum(), logits)
            assert bool(torch.isfinite(second).all()), where


@pytest.mark.parametrize(
    ("lam", "c"),
    [
        (1, 17), (0.1, 2), (0.01, 0.37), (0.01, 1), (0.001, 0.1), (0.001, 1), (1e-20, 1),
        (1, 1000), (10, 0.1), (1e4, 0.1), (1e4, 0), (1e12, 1), (0.3, 0), (1e-45, 0.1),
    ],
)  # fmt: skip
def test_ldr(lam, c):
    # For a large lam the value is a difference of logits, and has the digits of the largest.
    rows = [row for row in ORDINARY if lam < 100 or max(row) - min(row) < 20]
    check_against_exact(noiseproof.LabelDistributionallyRobust(lam=lam, c=c), rows)


@pytest.mark.parametrize("lam", [1.0, 0.01, 100.0])
def test_ldr_of_many_classes(lam):
    """One class far above a thousand others, and all of them alike."""
    loss = noiseproof.LabelDistributionallyRobust(lam=lam, c=1, reduction="none")
    logits = torch.zeros(3, 1000)
    logits[0, 7], logits[1, 7] = 1e3, 3.0
    expected = [float(v) for row in logits for v in [exact_ldr_of_two(row, lam)]]
    labels = torch.tensor([7, 7, 7])
    assert loss(logits, labels).tolist() == pytest.approx(expected, rel=1e-6)


def exact_ldr_of_two(row: torch.Tensor, lam: float) -> object:
    """LDR at label 7, with c = 1, where all other classes have the logit 0."""
    others = (len(row) - 1) * mpmath.exp((1 - mpmath.mpf(row[7].item())) / lam)
    return lam * mpmath.log((1 + others) / len(row))


@pytest.mark.parametrize(
    ("t1", "t2"), [(0.8, 1.01), (0.8, 1.05), (0.999, 1.0001), (0.5, 1 + 1e-9), (0, 3), (0.8, 11)]
)
@pytest.mark.slow
def test_bitempered(t1, t2):
    loss = noiseproof.BiTempered(t1=t1, t2=t2)
    rows = [[3.0, 0.5, -2.0], [40.0, 0.0, -40.0], [200.0, 0.0, 0.0], [0.0, 6400.0, 1.0]]
    check_against_exact(loss, rows)


def bitempered_by_bisection(gaps: torch.Tensor, t1: float, t2: float) -> torch.Tensor:
    """The loss of every class from a normalizer found by halving, for the gaps to the top class."""

    def probabilities(m: torch.Tensor) -> torch.Tensor:
        return (torch.exp((t2 - 1) * m) + (t2 - 1) * gaps) ** (1 / (1 - t2))

    low = torch.zeros_like(gaps[:, :1])
    high = torch.full_like(low, math.log(gaps.shape[1]))
    for _ in range(60):
        middle = (low + high) / 2
        too_low = probabilities(middle).sum(1, keepdim=True) > 1
        low, high = torch.where(too_low, middle, low), torch.where(too_low, high, middle)
    p = probabilities(low)
    rest = (1 - (p ** (2 - t1)).sum(1, keepdim=True)) / (2 - t1)
    return (1 - p ** (1 - t1)) / (1 - t1) - rest


@pytest.mark.parametrize("t2", [1.2, 1.5, 2.0, 4.0, 11.0])
@pytest.mark.parametrize("num_classes", [10, 1000, 10_000])
def test_bitempered_of_many_classes(t2, num_classes):
    """The predictions that Newton's method takes longest for.

    One or a few classes before all others, with a gap near the one from which on the others are
    too many to be outweighed; and gaps that grow as a power of their rank.
    """
    rank = torch.arange(num_classes, dtype=torch.float64)
    edge = min(num_classes ** (t2 - 1) / (t2 - 1), 5e11)
    beyond = [(rank >= few).double() for few in (1, 2, 5)]
    rows = [edge * near * gap for near in (0.5, 0.9, 1, 1.01, 2) for gap in beyond]
    rows += [size * rank**power for size in (0.1, 10, 1e3, 1e4) for power in (0.3, 0.8, 1.9, 3.4)]
    gaps = torch.stack(rows).clamp(max=1e12)
    expected = bitempered_by_bisection(gaps, 0.8, t2)
    loss = noiseproof.BiTempered(t1=0.8, t2=t2)
    torch.testing.assert_close(loss.per_class(-gaps), expected, rtol=1e-12, atol=1e-12)
    # At the edge the loss itself turns one rounding of the logits into a thousand.
    single = loss.per_class(-gaps.float()).double()
    torch.testing.assert_close(single, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("pi", [1e-3, 1e-6, 1e-8, 1e-20, 0.5, 0.999999, 1 - 1e-12])
def test_js(pi):
    check_against_exact(noiseproof.JensenShannon(pi=pi), ORDINARY)


@pytest.mark.parametrize(
    ("a", "q"), [(1e-8, 0.6), (1e-8, 1e-8), (1e-6, 0.1), (1e-3, 2), (100, 0.6), (1e6, 1)]
)
def test_agce(a, q):
    check_against_exact(noiseproof.AsymmetricGeneralizedCrossEntropy(a=a, q=q), ORDINARY)


@pytest.mark.parametrize("pi", [1e-3, 1e-8, 0.5])
def test_js_of_one_view_twice_is_js(pi):
    logits, labels = torch.randn(8, 10), torch.randint(10, (8,))
    of_views = noiseproof.GeneralizedJensenShannon(pi=pi)(logits, logits.clone(), labels)
    torch.testing.assert_close(of_views, noiseproof.JensenShannon(pi=pi)(logits, labels))


@pytest.mark.parametrize("m", [0, 1e-12, 1e-9, 1e-8, 1e-4])
@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_epsilon_softmax_with_a_small_m(m, dtype):
    """Above its floor of 1e-8 it is the loss of p' = (p + m e_argmax) / (1 + m)."""
    loss = noiseproof.epsilon_softmax(noiseproof.CrossEntropy(), m=m)
    logits = torch.tensor([[9.0, 0.0, -3.0]] * 3 + [[18.0, 0.0, -60.0]] * 3, dtype=dtype)
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    ours, plain = logits.clone().requires_grad_(), logits.double().requires_grad_()
    p = plain.softmax(1)
    mixed = ((p + m * torch.tensor([1.0, 0, 0])) / (1 + m)).clamp(min=1e-8)
    expected = -mixed.gather(1, labels[:, None]).log().mean()
    value = loss(ours, labels)
    room = TOLERANCE[dtype]
    torch.testing.assert_close(value.double(), expected, rtol=room, atol=room)
    (gradient,) = torch.autograd.grad(value, ours, create_graph=True)
    (exact,) = torch.autograd.grad(expected, plain)
    torch.testing.assert_close(gradient.double(), exact, rtol=1e-5, atol=10 * room)
    (second,) = torch.autograd.grad(gradient.square().sum(), ours)
    assert bool(torch.isfinite(second).all())


@pytest.mark.parametrize(
    "text", ["softplus(ldr)", "softplus(nce + rce)", "softplus(ldr(lam=0.1, c=2))"]
)
def test_softplus_of_very_negative_logits(text):
    rows = [
        [-104.0, -103.5, -105.0],
        [-36.5, -37.0, -37.5],
        [-1e4, -1e4 + 1, -2e4],
        [-200.0, -30.0, -36.0],
        [30.0, 19.0, 21.0],
        [0.0, 6400.0, -1.0],
        [1e4, -1e4, 0.0],
        [0.3, -0.2, 0.1],
    ]
    check_against_exact(noiseproof.parse(text), rows)


T_WITH_ZEROS = torch.tensor([[0.7, 0.3, 0.0], [0.0, 0.6, 0.4], [0.5, 0.0, 0.5]])
T_OF_EIGHTHS = torch.tensor([[0.75, 0.25, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])


@pytest.mark.parametrize("text", ["ce", "nce + rce", "gce", "ldr"])
def test_forward_correction_of_a_matrix_with_zeros(text):
    loss = noiseproof.forward_correction(noiseproof.parse(text), T_OF_EIGHTHS)
    rows = [[87.0, 0.0, 0.0], [150.0, 0.0, -20.0], [-1e3, 1e3, 0.0], [0.3, -0.2, 0.1]]
    check_against_exact(loss, rows)


def test_forward_correction_pulls_from_any_distance():
    """Label 2 can be given, but not for class 0, of which the network is sure."""
    loss = noiseproof.forward_correction(noiseproof.CrossEntropy(), T_WITH_ZEROS)
    for gap in (80.0, 90.0, 1e3, 1e4):
        logits = torch.tensor([[gap, 0.0, 0.0]], requires_grad=True)
        value = loss(logits, torch.tensor([2]))
        assert value.item() == pytest.approx(gap, rel=0.01)
        value.backward()
        assert logits.grad is not None
        assert logits.grad[0, 0].item() == pytest.approx(1)


def test_forward_correction_of_a_label_that_is_never_given():
    T = torch.tensor([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    loss = noiseproof.forward_correction(noiseproof.parse("ce + nce"), T)
    logits = torch.randn(4, 3, requires_grad=True)
    value = loss(logits, torch.tensor([0, 1, 2, 2]))
    value.backward()
    assert bool(torch.isfinite(value))
    assert logits.grad is not None
    assert bool(torch.isfinite(logits.grad).all())


def test_forward_correction_without_zeros_is_the_same_in_both_ways():
    T = noiseproof.theory.symmetric_transition(5, 0.4)
    transition = noiseproof.losses._mapped.TransitionMatrix(T)
    logits = torch.randn(6, 5, 2, 3, dtype=torch.float64)
    product = transition.apply_over_classes(logits.softmax(1), T).log()
    torch.testing.assert_close(transition(logits, logits.log_softmax(1)), product)


@pytest.mark.parametrize("tau", [1e-3, 1.0, 100.0])
def test_logit_clip(tau):
    loss = noiseproof.parse(f"logit_clip(ce, tau={tau})")
    check_against_exact(loss, [[0.0, 0.0, 0.0], [0.3, -0.2, 0.1], [3.0, 0.5, -2.0], [1e4, -1e4, 0]])


def test_logit_clip_has_the_second_derivative_of_its_loss_at_zero():
    labels = torch.tensor([1])
    hessians = [
        torch.autograd.functional.hessian(
            lambda z, text=text: noiseproof.parse(text)(z, labels), torch.zeros(1, 3)
        )
        for text in ("logit_clip(ce, tau=1)", "ce")
    ]
    torch.testing.assert_close(*hessians)


@pytest.mark.parametrize("text", ["taylor(t=1e9)", "negative(taylor(t=1001))"])
def test_taylor_has_an_end(text):
    with pytest.raises(ValueError, match=r"taylor: t = .* is out of range, 1 <= t <= 1000"):
        noiseproof.parse(text)


def test_taylor_of_many_terms():
    check_against_exact(noiseproof.parse("taylor(t=1000)"), [[3.0, 0.5]])
