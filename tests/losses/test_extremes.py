"""Exact where others break: saturated predictions, in every precision, against 60 digits."""

from __future__ import annotations

import itertools

import mpmath
import pytest
import torch

import noiseproof
from noiseproof.losses import _prediction

from . import reference
from .subjects import ALL, EVERY, MAPPED, SUBJECTS

SATURATED = [
    [1e4, -1e4, 0.0],
    [-1e4, 1e4, 1e4],
    [1e4, 1e4, 1e4],
    [40.0, 0.0, -40.0],  # p_y = 1 to machine precision in float64
    [18.0, 0.0, 0.0],  # ... in float32
    [-18.0, 0.0, -0.5],
    [1e4, -1e4],
    [0.0, 30.0],
    [6e-4, -6e-4],
]
# Relative to the value, and to 1 where it is smaller. Logits are taken as rounded to the type, so
# all but float64 are computed in float32: the error is that of float32's log-softmax.
TOLERANCE = {
    torch.float64: 1e-12,
    torch.float32: 3e-6,
    torch.bfloat16: 3e-6,
    torch.float16: 3e-6,
}


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(60):
        yield


def _slow(text: str) -> bool:
    """The tempered softmax is found by iteration, which takes seconds at 60 digits."""
    return "bitempered" in text and text != "bitempered"


@pytest.mark.parametrize(
    "text", [pytest.param(t, marks=[pytest.mark.long] if _slow(t) else []) for t in ALL]
)
def test_value_and_gradient_are_right(text, monkeypatch, device):
    """In every precision and by both ways to the gradient, which share the exact numbers."""
    loss = noiseproof.parse(text, reduction="none")
    for dtype, smallest, row in itertools.product(TOLERANCE, (0, 1 << 60), SATURATED):
        monkeypatch.setattr(_prediction, "MIN_SIZE_CUSTOM_BACKWARD", smallest)
        exact_logits = tuple(torch.tensor(row, dtype=dtype).tolist())
        for label in range(len(row)):
            message = f"{text} at {row}, label {label}, {dtype}"
            logits = torch.tensor([row], dtype=dtype, device=device, requires_grad=True)
            value = loss(logits, torch.tensor([label], device=device))
            assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
            tolerance = TOLERANCE[dtype]
            expected = float(reference.exact(loss.expression, exact_logits, label))
            assert value.item() == pytest.approx(expected, rel=tolerance, abs=tolerance), message

            (gradient,) = torch.autograd.grad(value.sum(), logits)
            assert gradient.dtype == dtype
            slopes = reference.exact_slopes(loss.expression, exact_logits, label)
            unit = float(torch.finfo(dtype).eps) if dtype.itemsize == 2 else 0.0  # it is rounded
            for slope, sides in zip(gradient[0].tolist(), slopes, strict=True):
                room = 10 * tolerance + (10 * tolerance + unit) * max(map(abs, sides))
                assert min(sides) - room <= slope <= max(sides) + room, message


@pytest.mark.parametrize("text", EVERY)
def test_second_derivative_is_finite(text, backward):
    loss = noiseproof.parse(text)
    for row in SATURATED:
        logits = torch.tensor([row] * len(row), requires_grad=True)
        (gradient,) = torch.autograd.grad(
            loss(logits, torch.arange(len(row))), logits, create_graph=True
        )
        (second,) = torch.autograd.grad(gradient.square().sum(), logits)
        assert bool(torch.isfinite(second).all()), f"{text} at {row}"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("text", [*SUBJECTS, *MAPPED])
def test_half_precision_logits_are_computed_in_float32(text, dtype, backward, device):
    loss = noiseproof.parse(text)
    logits = (3 * torch.randn(16, 10, device=device)).to(dtype)
    target = torch.randint(10, (16,), device=device)
    half, single = logits.clone().requires_grad_(), logits.float().requires_grad_()
    value, expected = loss(half, target), loss(single, target)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, expected)
    value.backward()
    expected.backward()
    assert half.grad is not None
    assert half.grad.dtype == dtype
    torch.testing.assert_close(half.grad, single.grad.to(dtype))
    assert loss.per_class(logits).dtype == torch.float32


@pytest.mark.parametrize("text", [*SUBJECTS, *MAPPED])
@pytest.mark.parametrize("probabilities", [False, True])
def test_autocast_changes_nothing(text, probabilities, backward, device):
    loss = noiseproof.parse(text, label_smoothing=0.1).to(device)
    target = torch.randint(10, (16,), device=device)
    if probabilities:
        target = torch.rand(16, 10, device=device).softmax(1)
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        logits = (3 * torch.randn(16, 10, device=device)).to(dtype).requires_grad_()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            inside = loss(logits, target)
        outside = loss(logits, target)
        torch.testing.assert_close(inside, outside, rtol=0, atol=0)
        (a,) = torch.autograd.grad(inside, logits)
        (b,) = torch.autograd.grad(outside, logits)
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def test_masked_classes():
    """A logit of -inf takes its class out; the loss and its gradient stay finite."""
    logits = torch.randn(4, 5)
    logits[:, 3] = -torch.inf
    for text in ("ce", "gce", "mae", "rce", "fl", "nce + rce", "nmae"):
        masked = logits.clone().requires_grad_()
        value = noiseproof.parse(text)(masked, torch.tensor([0, 1, 2, 4]))
        value.backward()
        assert bool(torch.isfinite(value)), text
        assert masked.grad is not None
        assert bool(torch.isfinite(masked.grad).all()), text
