"""The updates and the normalized batch against plain PyTorch."""

from __future__ import annotations

import pytest
import torch

from noiseproof import kernels
from noiseproof.kernels import _update
from noiseproof.train.optimizers._adamw import adamw as plain_adamw
from noiseproof.train.optimizers._sgd import sgd as plain_sgd

SHRINK = [None, 0.4]  # what weights, which are about 1, are brought closer to zero by


@pytest.mark.parametrize("max_partials", [1024, 2])  # one block of the gradient each, or several
@pytest.mark.parametrize("num_compute", [0, 1500])
@pytest.mark.parametrize(
    ("nesterov", "decay", "clip", "l1", "num_decayed"),
    [
        (False, 0.0, 0.0, 0.0, None), (True, 1e-2, 5.0, 0.0, None), (False, 1e-3, 1e3, 1e-2, None),
        (True, 1e-1, 5.0, 0.0, 1500), (False, 1e-1, 0.0, 1e-2, 0), (False, 1e-1, 0.0, 0.0, 2500),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shrink", SHRINK)
def test_sgd_as_plain_pytorch(
    kernel_device, num_compute, nesterov, decay, clip, l1, num_decayed, shrink, max_partials,
    monkeypatch,
):  # fmt: skip
    monkeypatch.setattr(_update, "_NORM_BLOCK", 512)
    monkeypatch.setattr(_update, "_MAX_PARTIALS", max_partials)
    size = 2500
    torch.manual_seed(0)
    start = [torch.randn(size, device=kernel_device) for _ in range(2)]
    compute_grad = torch.randn(num_compute, device=kernel_device).bfloat16()
    grad = torch.randn(size - num_compute, device=kernel_device)
    lr = torch.tensor(0.1, device=kernel_device)
    threshold = None if shrink is None else torch.tensor([shrink], device=kernel_device)
    results = []
    for sgd in (plain_sgd, kernels.sgd):
        weights, momentum_buffer = (t.clone() for t in start)
        compute_weights = torch.zeros(num_compute, device=kernel_device).bfloat16()
        norm = sgd(
            weights, momentum_buffer, compute_grad, grad, lr, compute_weights,
            0.9, nesterov, decay, clip, l1, num_decayed=num_decayed, shrink=threshold,
        )  # fmt: skip
        assert_shrunk(weights, shrink)
        results.append([weights, momentum_buffer, compute_weights, norm])
    assert_all_close(*results)


@pytest.mark.parametrize("num_compute", [0, 1500])
@pytest.mark.parametrize(
    ("beta1", "decay", "clip", "l1", "num_decayed"),
    [
        (0.9, 0.0, 0.0, 0.0, None), (0.9, 0.1, 5.0, 0.0, None), (0.0, 0.1, 1e3, 1e-2, None),
        (0.9, 0.1, 5.0, 1e-2, 1500), (0.9, 0.1, 0.0, 0.0, 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shrink", SHRINK)
def test_adamw_as_plain_pytorch(
    kernel_device, num_compute, beta1, decay, clip, l1, num_decayed, shrink
):
    size, steps = 2500, 3  # of which the first is corrected most
    torch.manual_seed(0)
    start = torch.randn(size, device=kernel_device)
    gradients = [
        (torch.randn(num_compute, device=kernel_device).bfloat16(),
         torch.randn(size - num_compute, device=kernel_device))
        for _ in range(steps)
    ]  # fmt: skip
    lr = torch.tensor([0.01], device=kernel_device)
    threshold = None if shrink is None else torch.tensor([shrink], device=kernel_device)
    results = []
    for adamw in (plain_adamw, kernels.adamw):
        weights, exp_avg, exp_avg_sq = start.clone(), *torch.zeros(2, size, device=kernel_device)
        step = torch.zeros((), device=kernel_device)
        compute_weights = torch.zeros(num_compute, device=kernel_device).bfloat16()
        norms = [
            adamw(
                weights, exp_avg, exp_avg_sq, step, compute_grad, grad, lr, compute_weights,
                beta1, 0.999, 1e-8, decay, clip, l1, num_decayed=num_decayed, shrink=threshold,
            )
            for compute_grad, grad in gradients
        ]  # fmt: skip
        assert float(step) == steps
        assert_shrunk(weights, shrink)
        results.append([weights, exp_avg, exp_avg_sq, compute_weights, *norms])
    assert_all_close(*results)


def assert_shrunk(weights: torch.Tensor, shrink: float | None) -> None:
    """Some weights, and not all, are exactly zero if and only if they were shrunk."""
    zeros = int((weights == 0).sum())
    assert 100 < zeros < 2400 if shrink else not zeros


def assert_all_close(expected: list[torch.Tensor], found: list[torch.Tensor]) -> None:
    for one, other in zip(expected, found, strict=True):
        # Triton's interpreter cuts digits off where a GPU rounds.
        loose = {"rtol": 1e-2, "atol": 1e-2} if one.dtype == torch.bfloat16 else {}
        torch.testing.assert_close(other, one, **({"rtol": 1e-5, "atol": 1e-6} | loose))


def test_normalized_batch_as_plain_pytorch(kernel_device):
    pixels = torch.randint(256, (20, 3, 5, 7), dtype=torch.uint8, device=kernel_device)
    pixels = pixels.contiguous(memory_format=torch.channels_last)
    scale, shift = torch.rand(3, device=kernel_device), torch.rand(3, device=kernel_device)
    found = kernels.normalized_batch(
        pixels, torch.tensor(4, device=kernel_device), 9, scale, shift, torch.float32, channels=8
    )
    expected = pixels[4:13].float() * scale.view(1, 3, 1, 1) + shift.view(1, 3, 1, 1)
    assert found.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(found[:, :3], expected)
    assert not found[:, 3:].any()
