"""The update and the taking of a batch against plain PyTorch."""

from __future__ import annotations

import pytest
import torch

from noiseproof import kernels
from noiseproof.kernels import _sgd
from noiseproof.train import _state


@pytest.mark.parametrize("shares", [1024, 2])  # of the sum of squares: a tile each, or several
@pytest.mark.parametrize("wide", [0, 1500])
@pytest.mark.parametrize(
    ("nesterov", "decay", "clip", "l1"),
    [(False, 0.0, 0.0, 0.0), (True, 1e-2, 5.0, 0.0), (False, 1e-3, 1e3, 1e-2)],
)
def test_sgd_as_plain_pytorch(place, wide, nesterov, decay, clip, l1, shares, monkeypatch):
    monkeypatch.setattr(_sgd, "_SHARE", 512)
    monkeypatch.setattr(_sgd, "_SHARES", shares)
    size = 2500
    torch.manual_seed(0)
    start = [torch.randn(size, device=place) for _ in range(2)]
    low_gradient = torch.randn(wide, device=place).bfloat16()
    gradient = torch.randn(size - wide, device=place)
    rate = torch.tensor(0.1, device=place)
    results = []
    for sgd in (_state.sgd, kernels.sgd):
        weights, momenta = (t.clone() for t in start)
        low = torch.zeros(wide, device=place).bfloat16()
        norm = sgd(
            weights, momenta, low_gradient, gradient, rate, low, 0.9, nesterov, decay, clip, l1
        )
        results.append([weights, momenta, low, norm])
    for expected, found in zip(*results, strict=True):
        # Triton's interpreter cuts digits off where a GPU rounds.
        loose = {"rtol": 1e-2, "atol": 1e-2} if found.dtype == torch.bfloat16 else {}
        torch.testing.assert_close(found, expected, **({"rtol": 1e-5, "atol": 1e-6} | loose))


def test_take_as_plain_pytorch(place):
    pixels = torch.randint(256, (20, 3, 5, 7), dtype=torch.uint8, device=place)
    pixels = pixels.contiguous(memory_format=torch.channels_last)
    scale, shift = torch.rand(3, device=place), torch.rand(3, device=place)
    found = kernels.take(
        pixels, torch.tensor(4, device=place), 9, scale, shift, torch.float32, channels=8
    )
    expected = pixels[4:13].float() * scale.view(1, 3, 1, 1) + shift.view(1, 3, 1, 1)
    assert found.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(found[:, :3], expected)
    assert not found[:, 3:].any()
