"""A convolution, its batch norm and what follows, in two ways that compute the same function."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import kernels

_GROUP = 8  # tensor cores read channels in groups of 16 bytes: eight numbers of 16 bits
_WIDE = 64  # above so many channels, cuDNN's kernels for pairs of groups are a fifth faster


def conv_norm(
    x: Tensor,
    conv: nn.Conv2d,
    norm: nn.BatchNorm2d,
    *,
    relu: bool = True,
    residual: Tensor | None = None,
    pool: bool = False,
) -> Tensor:
    """``relu(norm(conv(x)) + residual)``, then a 2×2 pooling, with what of it is asked for.

    On a GPU, kernels of our own do what follows the convolution.
    """
    if _fusible(x, norm):
        return fused_conv_norm(x, conv, norm, relu=relu, residual=residual, pool=pool)
    x = norm(conv(x))
    if residual is not None:
        x = x + residual
    if relu:
        x = F.relu(x)
    return F.max_pool2d(x, 2) if pool else x


def _fusible(x: Tensor, norm: nn.BatchNorm1d | nn.BatchNorm2d) -> bool:
    """Whether our kernels serve: they have no gradient through running statistics."""
    usual = norm.affine and norm.track_running_stats and norm.momentum is not None
    known = norm.training or not torch.is_grad_enabled()
    return usual and known and kernels.available(x) and not torch.compiler.is_compiling()


def fused_conv_norm(
    x: Tensor,
    conv: nn.Conv2d,
    norm: nn.BatchNorm2d,
    *,
    relu: bool,
    residual: Tensor | None,
    pool: bool,
) -> Tensor:
    """The same function and the same gradients, in fewer kernels and fewer passes over memory.

    Channels are padded to whole groups with weights of zero, and stay padded for the next
    convolution: left to the convolution library, 3 or 196 channels are padded and cut again at
    every call. The convolution's bias is not added, since the norm takes it away again.
    """
    x = _pad(x)
    weight = conv.weight
    more_in, more_out = x.shape[1] - conv.in_channels, padded(conv.out_channels) - conv.out_channels
    if more_in or more_out:
        weight = F.pad(weight, (0, 0, 0, 0, 0, more_in, 0, more_out))
    y = F.conv2d(x, weight, None, conv.stride, conv.padding)
    within = pool and not y.shape[2] % 2 and not y.shape[3] % 2
    out = kernels.norm_relu(y, norm, conv_bias=conv.bias, relu=relu, residual=residual, pool=within)
    return F.max_pool2d(out, 2) if pool and not within else out


def linear_norm(x: Tensor, linear: nn.Linear, norm: nn.BatchNorm1d) -> Tensor:
    """``relu(norm(linear(x)))``, likewise."""
    if not _fusible(x, norm):
        return F.relu(norm(linear(x)))
    y = F.linear(x, linear.weight).unsqueeze(-1).unsqueeze(-1)
    return kernels.norm_relu(y, norm, conv_bias=linear.bias).flatten(1)


class Padding:
    """A mark: a network that also takes images with channels of zeros behind their own."""


def padded(channels: int) -> int:
    """The next multiple of eight, for wide layers of sixteen."""
    return channels + -channels % (_GROUP if channels <= _WIDE else 2 * _GROUP)


def _pad(x: Tensor) -> Tensor:
    more = padded(x.shape[1]) - x.shape[1]
    return F.pad(x, (0, 0, 0, 0, 0, more)) if more else x
