"""Every loss against the summand of its paper in float64, and its derivatives."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import noiseproof
from noiseproof.losses._prediction import Prediction

from . import reference
from .subjects import ALL, EVERY, MAPPED, SUBJECTS


@pytest.mark.parametrize("text", ALL)
@pytest.mark.parametrize(("num_classes", "scale"), [(2, 1.0), (3, 5.0), (10, 1.0), (10, 0.0)])
def test_matrix_is_the_sum_of_the_papers_summands(text, num_classes, scale, device):
    loss = noiseproof.parse(text)
    logits = scale * torch.randn(16, num_classes, dtype=torch.float64)
    expected = reference.matrix(loss.expression, logits.softmax(1))
    torch.testing.assert_close(loss.per_class(logits.to(device)).cpu(), expected)


@pytest.mark.parametrize("text", EVERY)
def test_value_at_a_label_is_the_entry_of_the_matrix(text, backward, device):
    loss = noiseproof.parse(text, reduction="none")
    logits = (3 * torch.randn(16, 5, dtype=torch.float64, device=device)).requires_grad_()
    target = torch.randint(5, (16,), device=device)
    picked = loss.per_class(logits).gather(1, target[:, None]).squeeze(1)
    torch.testing.assert_close(loss(logits, target), picked)
    upstream = torch.randn(16, dtype=torch.float64, device=device)
    (ours,) = torch.autograd.grad(loss(logits, target), logits, upstream)
    (of_matrix,) = torch.autograd.grad(picked, logits, upstream)
    torch.testing.assert_close(ours, of_matrix)


@pytest.mark.parametrize("text", EVERY)
def test_sum_over_classes(text, device):
    loss = noiseproof.parse(text)
    logits = 3 * torch.randn(16, 5, dtype=torch.float64, device=device)
    prediction = Prediction(logits)
    total = torch.as_tensor(loss.expression.class_sum(prediction), dtype=torch.float64)
    expected = loss.per_class(logits).sum(1)
    torch.testing.assert_close(total.to(device).expand(16), expected)


@pytest.mark.parametrize("text", EVERY)
def test_first_and_second_derivative(text, backward):
    loss = noiseproof.parse(text, reduction="none")
    logits = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([0, 2])
    assert gradcheck(lambda z: loss(z, target), logits, check_forward_ad=True)
    assert gradgradcheck(lambda z: loss(z, target), logits)


@pytest.mark.parametrize("text", [*SUBJECTS, *MAPPED])
def test_derivatives_at_probabilities(text):
    loss = noiseproof.parse(text, weight=torch.tensor([0.5, 1.0, 2.0]), label_smoothing=0.1)
    logits = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    target = torch.rand(2, 3, dtype=torch.float64).softmax(1).requires_grad_()
    assert gradcheck(loss, (logits, target))
    assert gradgradcheck(loss, (logits, target))


@pytest.mark.parametrize("text", ALL)
def test_classes_can_be_permuted_and_logits_shifted(text):
    loss = noiseproof.parse(text, reduction="none")
    logits, target = torch.randn(16, 7, dtype=torch.float64), torch.randint(7, (16,))
    expected = loss(logits, target)
    order = torch.randperm(7)
    torch.testing.assert_close(loss(logits[:, order], order.argsort()[target]), expected)
    shift = 100 * torch.randn(16, 1, dtype=torch.float64)
    torch.testing.assert_close(loss(logits + shift, target), expected)


@pytest.mark.parametrize("text", [*SUBJECTS, *MAPPED])
def test_float32_is_as_exact_as_torch(text, backward, device):
    """Against float64: no further off than a few units in the last place of what is added up."""
    loss = noiseproof.parse(text, reduction="none")
    logits = 5 * torch.randn(64, 100, device=device)
    target = torch.randint(100, (64,), device=device)
    single, double = logits.clone().requires_grad_(), logits.double().requires_grad_()
    ours, exact = loss(single, target), loss(double, target)
    size = max(1.0, exact.abs().max().item())
    torch.testing.assert_close(ours.double(), exact, rtol=2e-5, atol=2e-6 * size)
    ours.sum().backward()
    exact.sum().backward()
    assert single.grad is not None
    assert double.grad is not None
    torch.testing.assert_close(single.grad.double(), double.grad, rtol=2e-4, atol=1e-6 * size)
