"""A convolution or linear layer with batch norm, ReLU and pooling, plain or fused."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import kernels

_GROUP = 8  # tensor cores read channels in groups of 16 bytes: eight numbers of 16 bits
_WIDE = 64  # above this many channels, cuDNN is a fifth faster with multiples of two groups


def conv_norm(
    x: Tensor,
    conv: nn.Conv2d,
    norm: nn.BatchNorm2d,
    *,
    relu: bool = True,
    residual: Tensor | None = None,
    pool: bool = False,
) -> Tensor:
    """``max_pool2d(relu(norm(conv(x)) + residual), 2)``; ReLU, addition and pooling are optional.

    On a GPU, what follows the convolution is fused (:func:`noiseproof.kernels.norm_relu`).
    """
    if _can_fuse(x, norm):
        return fused_conv_norm(x, conv, norm, relu=relu, residual=residual, pool=pool)
    if x.shape[1] > conv.in_channels:  # a fused layer before this one padded them
        x = x[:, : conv.in_channels]
    x = norm(conv(x))
    if residual is not None:
        x = x + residual[:, : x.shape[1]]
    if relu:
        x = F.relu(x)
    return F.max_pool2d(x, 2) if pool else x


def _can_fuse(x: Tensor, norm: nn.BatchNorm1d | nn.BatchNorm2d) -> bool:
    """Whether the fused kernels can be used; they have no backward pass in eval mode."""
    default_options = norm.affine and norm.track_running_stats and norm.momentum is not None
    has_backward = norm.training or not torch.is_grad_enabled()
    if torch.compiler.is_compiling() or not kernels.available(x):
        return False
    return default_options and has_backward


def fused_conv_norm(
    x: Tensor,
    conv: nn.Conv2d,
    norm: nn.BatchNorm2d,
    *,
    relu: bool,
    residual: Tensor | None,
    pool: bool,
) -> Tensor:
    """The same outputs and gradients as :func:`conv_norm`, with fewer kernels and memory accesses.

    Channels are padded with zeros to whole groups, and stay padded for the next convolution: cuDNN
    would pad and cut 3 or 196 channels at every call. The convolution's bias is not added, because
    the norm subtracts it again.
    """
    x = _pad_channels(x)
    weight = conv.weight
    extra_in = x.shape[1] - conv.in_channels
    extra_out = padded_channels(conv.out_channels) - conv.out_channels
    if extra_in or extra_out:
        weight = F.pad(weight, (0, 0, 0, 0, 0, extra_in, 0, extra_out))
    y = F.conv2d(x, weight, None, conv.stride, conv.padding)
    fuse_pool = pool and not y.shape[2] % 2 and not y.shape[3] % 2
    out = kernels.norm_relu(
        y, norm, conv_bias=conv.bias, relu=relu, residual=residual, pool=fuse_pool
    )
    return F.max_pool2d(out, 2) if pool and not fuse_pool else out


def linear_norm(x: Tensor, linear: nn.Linear, norm: nn.BatchNorm1d) -> Tensor:
    """``relu(norm(linear(x)))``, fused on a GPU."""
    if not _can_fuse(x, norm):
        return F.relu(norm(linear(x)))
    y = F.linear(x, linear.weight).unsqueeze(-1).unsqueeze(-1)
    return kernels.norm_relu(y, norm, conv_bias=linear.bias).flatten(1)


class AcceptsPaddedChannels:
    """Mixin without methods: the network also takes images padded with channels of zeros.

    The trainer then gives it images of :func:`padded_channels` channels.
    """


def padded_channels(channels: int) -> int:
    """The number of channels after padding: a multiple of 8, or of 16 above 64 channels."""
    return channels + -channels % (_GROUP if channels <= _WIDE else 2 * _GROUP)


def _pad_channels(x: Tensor) -> Tensor:
    extra = padded_channels(x.shape[1]) - x.shape[1]
    return F.pad(x, (0, 0, 0, 0, 0, extra)) if extra else x
