"""A convolution with its batch norm and ReLU, in two ways that compute the same function."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Tensor cores read channels in groups of 16 bytes: eight numbers of 16 bits.
_GROUP = 8


def conv_norm(x: Tensor, conv: nn.Conv2d, norm: nn.BatchNorm2d, *, relu: bool = True) -> Tensor:
    """``relu(norm(conv(x)))``, lean where the compiler sees it in training."""
    if torch.compiler.is_compiling() and norm.training and norm.track_running_stats:
        return lean_conv_norm(x, conv, norm, relu=relu)
    x = norm(conv(x))
    return F.relu(x) if relu else x


def pool(x: Tensor) -> Tensor:
    """``max_pool2d(x, 2)``, lean where the compiler sees it.

    As a choice among four pixels, the first of equals winning, it is fused with what is before it
    and passes gradients on without indices.
    """
    if not torch.compiler.is_compiling() or x.shape[2] % 2 or x.shape[3] % 2:
        return F.max_pool2d(x, 2)
    best = x[:, :, ::2, ::2]
    for other in (x[:, :, ::2, 1::2], x[:, :, 1::2, ::2], x[:, :, 1::2, 1::2]):
        best = torch.where(other > best, other, best)
    return best


def lean_conv_norm(
    x: Tensor, conv: nn.Conv2d, norm: nn.BatchNorm2d, *, relu: bool = True
) -> Tensor:
    """The same function and the same gradients, in fewer and better aligned kernels.

    Channels are padded to a multiple of eight with weights of zero, and stay padded for the next
    convolution: left to the convolution library, 3 or 196 channels are padded and cut again at
    every call. The convolution's bias is not added, since the norm takes it away again: it is felt
    in the running mean alone, and its gradient is exactly zero. The norm's count of batches, which
    nothing reads, is left alone: a kernel a layer.
    """
    width = conv.out_channels
    more = -width % _GROUP
    x = pad_channels(x)
    weight = F.pad(conv.weight, (0, 0, 0, 0, 0, x.shape[1] - conv.in_channels, 0, more))
    y = F.conv2d(x, weight, None, conv.stride, conv.padding)
    variance, mean = torch.var_mean(y.float(), dim=(0, 2, 3), correction=0)
    scale = F.pad(norm.weight, (0, more)) * torch.rsqrt(variance + norm.eps)
    shift = F.pad(norm.bias, (0, more)) - mean * scale
    if conv.bias is not None:
        shift = shift + 0 * F.pad(conv.bias, (0, more))  # so that it has a gradient, of zero
    out = y.float() * scale.view(1, -1, 1, 1) + shift.view(1, -1, 1, 1)
    _track(norm, conv, mean[:width].detach(), variance[:width].detach(), y.numel() // y.shape[1])
    return (F.relu(out) if relu else out).to(y.dtype)


def pad_channels(x: Tensor) -> Tensor:
    """Channels of zeros up to the next multiple of eight."""
    more = -x.shape[1] % _GROUP
    return F.pad(x, (0, 0, 0, 0, 0, more)) if more else x


def _track(norm: nn.BatchNorm2d, conv: nn.Conv2d, mean: Tensor, variance: Tensor, n: int) -> None:
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.momentum is not None
    if conv.bias is not None:
        mean = mean + conv.bias.detach()
    norm.running_mean.lerp_(mean, norm.momentum)
    norm.running_var.lerp_(variance * (n / max(n - 1, 1)), norm.momentum)
