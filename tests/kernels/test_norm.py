"""The fused batch norm against plain PyTorch in float64, forward and backward."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from noiseproof import kernels
from noiseproof.kernels import _norm


def plain(y, norm, bias, relu, residual, pool):
    real = norm.num_features
    z = norm(y[:, :real] + (0 if bias is None else bias.view(1, -1, 1, 1)))
    z = F.pad(z, (0, 0, 0, 0, 0, y.shape[1] - real))
    z = z if residual is None else z + residual
    z = F.relu(z) if relu else z
    return F.max_pool2d(z, 2) if pool else z


@pytest.mark.parametrize("blocks", [1, 256])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("shape", "real", "relu", "add", "pool"),
    [
        ((3, 16, 6, 4), 16, True, False, False),
        ((3, 16, 6, 4), 12, True, False, True),
        ((2, 72, 10, 10), 72, False, False, False),
        ((2, 24, 5, 7), 24, True, True, False),
        ((2, 8, 8, 8), 5, False, True, False),
        ((4, 80, 12, 12), 76, True, False, True),
        ((1, 8, 2, 2), 8, True, False, True),
    ],
)
def test_as_plain_pytorch(kernel_device, shape, real, relu, add, pool, bias, blocks, monkeypatch):
    """Few blocks have many tiles each, as those of large batches have."""
    monkeypatch.setattr(_norm, "_MAX_BLOCKS", blocks)
    torch.manual_seed(1)
    y = torch.randn(shape, device=kernel_device) * 2 + 1
    y[:, real:] = 0
    y = y.contiguous(memory_format=torch.channels_last)
    residual = torch.randn(shape, device=kernel_device) if add else None
    conv_bias = torch.randn(real, device=kernel_device) if bias else None
    single = nn.BatchNorm2d(real).to(kernel_device)
    with torch.no_grad():
        single.weight.copy_(torch.linspace(-1, 2, real))
        single.bias.copy_(torch.linspace(-0.5, 0.5, real))
        single.running_mean.fill_(0.3)
    exact = copy.deepcopy(single).double()
    results = []
    for norm in (exact, single):
        like = norm.weight.dtype
        at = y.to(like, copy=True, memory_format=torch.preserve_format).requires_grad_()
        extra = None if residual is None else residual.to(like, copy=True).requires_grad_()
        if norm is exact:
            offset = None if conv_bias is None else conv_bias.double()
            out = plain(at, norm, offset, relu, extra, pool)
        else:
            out = kernels.norm_relu(
                at, norm, conv_bias=conv_bias, relu=relu, residual=extra, pool=pool
            )
        upstream = torch.linspace(-1, 1, out.numel(), device=kernel_device).view(out.shape)
        leaves = [at, norm.weight, norm.bias, *([] if extra is None else [extra])]
        gradients = torch.autograd.grad(out, leaves, upstream.to(like))
        results.append(
            [out, gradients[0][:, :real], *gradients[1:], norm.running_mean, norm.running_var]
        )
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found.double(), expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("shape", "real", "relu", "add", "pool"),
    [
        ((3, 16, 6, 4), 12, True, False, True),
        ((2, 24, 5, 7), 24, True, True, False),
        ((2, 8, 8, 8), 5, False, False, False),
    ],
)
def test_eval_mode_normalizes_by_the_running_statistics(
    kernel_device, shape, real, relu, add, pool, bias
):
    torch.manual_seed(2)
    y = torch.randn(shape, device=kernel_device)
    y[:, real:] = 0
    residual = torch.randn(shape, device=kernel_device) if add else None
    conv_bias = torch.randn(real, device=kernel_device) if bias else None
    norm = nn.BatchNorm2d(real).to(kernel_device).eval()
    with torch.no_grad():
        norm.weight.copy_(torch.linspace(-1, 2, real))
        norm.bias.copy_(torch.linspace(-0.5, 0.5, real))
        norm.running_mean.copy_(torch.linspace(-2, 1, real))
        norm.running_var.copy_(torch.linspace(0.1, 3, real))
    before = {name: buffer.clone() for name, buffer in norm.named_buffers()}
    found = kernels.norm_relu(y, norm, conv_bias=conv_bias, relu=relu, residual=residual, pool=pool)
    expected = plain(y, norm, conv_bias, relu, residual, pool).detach()
    torch.testing.assert_close(found, expected, rtol=2e-5, atol=2e-5)
    for name, buffer in norm.named_buffers():
        assert torch.equal(buffer, before[name])


def test_the_first_of_equals_gets_the_gradient(kernel_device):
    norm = nn.BatchNorm2d(8).to(kernel_device)
    y = torch.zeros(1, 8, 2, 4, device=kernel_device)
    y[..., 2:] = 1  # one window of zeros, one of ones
    y = y.contiguous(memory_format=torch.channels_last).requires_grad_()
    twin = y.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    kernels.norm_relu(y, norm, pool=True).sum().backward()
    plain(twin, nn.BatchNorm2d(8).to(kernel_device), None, True, None, True).sum().backward()
    torch.testing.assert_close(y.grad, twin.grad, rtol=1e-5, atol=1e-6)


def test_far_from_zero_no_digits_are_lost(kernel_device):
    norm = nn.BatchNorm2d(8).to(kernel_device)
    y = (torch.randn(4, 8, 16, 16, device=kernel_device) + 3000).contiguous(
        memory_format=torch.channels_last
    )
    found = kernels.norm_relu(y, norm, relu=False)
    mean = y.double().mean((0, 2, 3), keepdim=True)
    expected = (y.double() - mean) / y.double().std((0, 2, 3), correction=0, keepdim=True)
    torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=2e-3)
