"""Relations between the later losses and the paper's, and the forms that any loss can take."""

from __future__ import annotations

import itertools
import math
import pickle

import pytest
import torch

import noiseproof

K = 10
LOGITS = 3 * torch.randn(64, K, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
TARGET = torch.randint(K, (64,), generator=torch.Generator().manual_seed(1))
P = LOGITS.softmax(1)


def matrix(text: str) -> torch.Tensor:
    return noiseproof.parse(text).per_class(LOGITS)


def same(a: str, b: str, factor: float = 1.0, **tolerance: float) -> None:
    torch.testing.assert_close(matrix(a), factor * matrix(b), **tolerance)


def test_limits_between_families():
    same("taylor(t=1)", "mae", 0.5)
    mild = 0.1 * LOGITS  # the series converges as (1 - p_y)^t does
    torch.testing.assert_close(
        matrix_of("taylor(t=300)", mild), matrix_of("ce", mild), rtol=1e-4, atol=1e-4
    )
    same("agce(a=2, q=1)", "mae", 0.5)
    same("aul(a=3, q=1)", "mae", 0.5)
    torch.testing.assert_close(
        matrix_of("js(pi=1e-7)", mild), matrix_of("ce", mild), rtol=1e-4, atol=1e-4
    )
    same("js(pi=0.9999999999999999)", "mae", 0.5, rtol=0.05, atol=0.05)
    same("tgce(k=1e-9)", "gce")
    same("phuber(tau=1e9)", "ce")
    torch.testing.assert_close(matrix("ldr(lam=1, c=0)"), matrix("ce") - math.log(K))
    same("bitempered(t1=0.99999, t2=1.00001)", "ce", rtol=1e-3, atol=1e-3)
    same("nnfl(gamma=0)", "nnce")
    same("symmetrize(ce)", "unhinged")


def test_amse_is_its_expansion():
    a = 30.0
    expected = (a**2 - 2 * a * P + (P**2).sum(1, keepdim=True)) / K
    torch.testing.assert_close(matrix("amse(a=30)"), expected)


def test_unhinged_is_linear_in_the_logits():
    torch.testing.assert_close(matrix("unhinged"), LOGITS.mean(1, keepdim=True) - LOGITS)


def test_phuber_is_smooth_where_its_parts_meet():
    loss = noiseproof.parse("phuber(tau=4)")
    edge = torch.tensor([[0.0, math.log(3)]], dtype=torch.float64)  # p of class 0 is 1/4
    shift = torch.tensor([[1e-7, 0.0]], dtype=torch.float64)
    gradients = []
    for logits in (edge - shift, edge + shift):
        logits.requires_grad_()
        value = loss(logits, torch.tensor([0]))
        gradients += torch.autograd.grad(value, logits)
        assert value.item() == pytest.approx(math.log(4), abs=1e-6)
    torch.testing.assert_close(*gradients, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("text", ["nnce", "nnfl", "negative(gce)", "negative(taylor)"])
def test_negative_losses_sum_to_k_minus_1(text):
    torch.testing.assert_close(matrix(text).sum(1), torch.full((64,), K - 1.0).double())
    assert noiseproof.parse(text).kind == "passive"


def test_nnce_as_its_paper_writes_it():
    a = -math.log(1e-7)
    log_p = P.clamp(min=1e-7).log()
    torch.testing.assert_close(matrix("nnce"), 1 - (a + log_p) / (a + log_p).sum(1, keepdim=True))


@pytest.mark.parametrize("text", ["ce", "fl", "gce", "amse", "bitempered", "nce + rce"])
def test_symmetrize_is_exactly_symmetric(text):
    total = matrix(f"symmetrize({text})").sum(1)
    torch.testing.assert_close(total, torch.zeros_like(total), rtol=0, atol=1e-11)


@pytest.mark.parametrize("text", ["ce", "nce + rce", "amse", "bitempered"])
def test_forms_that_change_nothing(text):
    same(f"logit_clip({text}, tau=1e6)", text)
    same(f"bootstrap({text}, beta=1)", text)
    same(f"epsilon_softmax({text}, m=0)", text, rtol=1e-6, atol=1e-6)


def test_logit_clip_bounds_the_logits():
    loss = noiseproof.parse("logit_clip(ce, tau=2)")
    clipped = LOGITS * (2 / LOGITS.norm(dim=1, keepdim=True)).clamp(max=1)
    torch.testing.assert_close(loss.per_class(LOGITS), matrix_of("ce", clipped))
    zero = torch.zeros(1, K, requires_grad=True)
    loss(zero, torch.tensor([3])).backward()
    assert zero.grad is not None
    assert bool(torch.isfinite(zero.grad).all())


def matrix_of(text: str, logits: torch.Tensor) -> torch.Tensor:
    return noiseproof.parse(text).per_class(logits)


def test_epsilon_softmax_has_no_gradient_below_its_floor():
    logits = torch.tensor([[5.0, 0.0, -9.0]], requires_grad=True)
    loss = noiseproof.parse("epsilon_softmax(ce, m=1e5)")
    value = loss(logits, torch.tensor([2]))
    assert value.item() == pytest.approx(-math.log(1e-8))
    value.backward()
    assert logits.grad is not None
    assert logits.grad.abs().max() == 0
    assert loss(logits, torch.tensor([0])).item() == pytest.approx(0, abs=1e-6)


def test_soft_bootstrap_of_cross_entropy_is_reeds():
    q = torch.nn.functional.one_hot(TARGET, K).double()
    expected = -((0.8 * q + 0.2 * P) * P.log()).sum(1).mean()
    loss = noiseproof.bootstrap(noiseproof.CrossEntropy(), 0.8)
    torch.testing.assert_close(loss(LOGITS, TARGET), expected)
    hard = noiseproof.bootstrap(noiseproof.CrossEntropy(), 0.8, hard=True)
    own = noiseproof.CrossEntropy()(LOGITS, P.argmax(1))
    torch.testing.assert_close(
        hard(LOGITS, TARGET), 0.8 * noiseproof.CrossEntropy()(LOGITS, TARGET) + 0.2 * own
    )


def test_python_and_text_make_the_same_forms():
    ce = noiseproof.CrossEntropy(label_smoothing=0.1)
    for made, text in (
        (noiseproof.symmetrize(ce), "unhinged"),
        (noiseproof.negative(ce), "nnce"),
        (noiseproof.epsilon_softmax(ce, m=100), "epsilon_softmax(ce, m=100)"),
        (noiseproof.logit_clip(ce, tau=2), "logit_clip(ce, tau=2)"),
        (noiseproof.bootstrap(ce, 0.8, hard=True), "bootstrap(ce, beta=0.8, hard=1)"),
    ):
        assert made == noiseproof.parse(text, label_smoothing=0.1)
        assert str(made) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("logit_clip(ce, tau=0)", r"logit_clip: tau = 0 is out of range, tau > 0"),
        ("epsilon_softmax(ce, n=2)", r"epsilon_softmax has no hyper-parameter 'n'"),
        (
            "epsilon_softmax(m=2)",
            r"takes one loss, as in epsilon_softmax\(fl\(gamma=2\), m=1",
        ),
        ("bootstrap(ce, hard=0.5)", r"hard = 0.5 must be a whole number"),
        ("negative(mae)", r"negative takes one active loss"),
        ("negative(nce + ce)", r"negative takes one active loss"),
        ("negative(tgce)", r"tgce has no negative form: .* would be divided by 0"),
        ("taylor(t=1.5)", r"taylor: t = 1.5 must be a whole number"),
        ("normalize(symmetrize(ce))", r"unhinged cannot be normalized: it can be negative"),
        ("forward_correction(ce)", r"a text holds no matrix T; use noiseproof.forward_correction"),
    ],
)
def test_forms_refuse_what_they_cannot_take(text, message):
    with pytest.raises((ValueError, TypeError), match=message):
        noiseproof.parse(text)


TRANSITIONS = [
    torch.tensor([[0.7, 0.2, 0.1], [0.0, 0.6, 0.4], [0.3, 0.3, 0.4]], dtype=torch.float64),
    torch.full((3, 3), 0.2, dtype=torch.float64).fill_diagonal_(0.6),
]


@pytest.mark.parametrize("T", TRANSITIONS)
@pytest.mark.parametrize("text", ["ce", "nce + rce", "amse", "bitempered"])
def test_backward_correction_is_unbiased(T, text):
    """Enumerated: over the labels that each true class may be given, the mean is the clean loss."""
    plain = noiseproof.parse(text)
    corrected = noiseproof.backward_correction(plain, T)
    logits = torch.randn(5, 3, dtype=torch.float64)
    for true in range(3):
        values = [corrected(logits, torch.full((5,), given)) for given in range(3)]
        mean = sum(T[true, given] * value for given, value in enumerate(values))
        torch.testing.assert_close(mean, plain(logits, torch.full((5,), true)))


@pytest.mark.parametrize("T", TRANSITIONS)
def test_forward_correction_has_the_clean_minimum(T):
    """Enumerated: the network that minimizes it on given labels predicts the true classes."""
    prior = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)  # of the true class at one input
    given = prior @ T
    loss = noiseproof.forward_correction(noiseproof.CrossEntropy(), T)
    logits = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=200, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        value = loss(logits, given[None])
        value.backward()
        return value

    optimizer.step(closure)
    torch.testing.assert_close(logits.detach().softmax(1)[0], prior, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("correct", [noiseproof.forward_correction, noiseproof.backward_correction])
def test_corrections_are_losses_like_any_other(correct):
    T = TRANSITIONS[0]
    loss = correct(noiseproof.parse("ce", label_smoothing=0.1), T) + noiseproof.parse(
        "rce", label_smoothing=0.1
    )
    assert "correction(ce, T) + rce" in str(loss)
    assert list(loss.state_dict()) == ["functions.0.T"]
    again = pickle.loads(pickle.dumps(loss))
    assert again == loss
    logits, target = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    assert torch.equal(again(logits, target), loss(logits, target))
    pixels = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: loss(z, torch.randint(3, (2, 4)) * 0), pixels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(loss(logits, target), again(logits, target), rtol=0, atol=0)
    torch._dynamo.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(logits, target), loss(logits, target))
    assert correct(noiseproof.parse("ce"), T) == correct(noiseproof.parse("ce"), T.clone())
    assert correct(noiseproof.parse("ce"), T) != correct(noiseproof.parse("ce"), TRANSITIONS[1])


@pytest.mark.parametrize(
    ("T", "message"),
    [
        (torch.ones(2, 3), r"T must be \[K, K\]; its shape was \[2, 3\]"),
        (torch.ones(3, 3), r"rows of probabilities"),
        (torch.tensor([[1.5, -0.5], [0.0, 1.0]]), r"rows of probabilities"),
    ],
)
def test_transition_matrices_are_checked(T, message):
    for correct in (noiseproof.forward_correction, noiseproof.backward_correction):
        with pytest.raises(ValueError, match=message):
            correct(noiseproof.parse("ce"), T)


def test_transition_matrix_must_fit_and_have_an_inverse():
    with pytest.raises(ValueError, match="T has no inverse"):
        noiseproof.backward_correction(noiseproof.parse("ce"), torch.full((4, 4), 0.25))
    loss = noiseproof.forward_correction(noiseproof.parse("ce"), torch.eye(4))
    with pytest.raises(ValueError, match="T has 4 classes, and the logits have 10"):
        loss(LOGITS, TARGET)


def test_identity_corrects_nothing():
    for correct, text in itertools.product(
        (noiseproof.forward_correction, noiseproof.backward_correction), ("ce", "nce + mae")
    ):
        loss = correct(noiseproof.parse(text), torch.eye(K))
        torch.testing.assert_close(loss.per_class(LOGITS), matrix(text))
