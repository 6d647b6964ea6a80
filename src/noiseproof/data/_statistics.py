"""Means and standard deviations of the channels of images and of features."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from ._stream import ImageFiles, Inputs, parts_of

_BLOCK = 1024  # images whose pixels are counted at a time, as int64


def channel_statistics(inputs: Inputs) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel of uint8 images, scaled to 0..1, or of features.

    Those of images are computed from the counts of the 256 values, so they are exact. A channel
    that is constant has a standard deviation of 1, so that one can divide by it.

    >>> channel_statistics(torch.tensor([0, 255], dtype=torch.uint8).reshape(2, 1, 1, 1))
    ((0.5,), (0.5,))
    """
    if isinstance(inputs, ImageFiles):
        return _image_statistics(parts_of(inputs, _BLOCK), inputs.shape[1])
    if inputs.dtype == torch.int64:
        return (), ()
    if inputs.is_floating_point():
        values = inputs.double().transpose(0, 1).flatten(1)
        mean, deviation = values.mean(1), values.std(1, correction=0)
        deviation[deviation < 1e-12] = 1
        return tuple(mean.tolist()), tuple(deviation.tolist())
    return _image_statistics(torch.split(inputs, _BLOCK), inputs.shape[1])


def _image_statistics(
    blocks: Iterable[Tensor], channels: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    counts = torch.zeros(channels, 256, dtype=torch.int64, device="cpu")
    for block in blocks:
        for channel in range(channels):
            counts[channel] += torch.bincount(block[:, channel].flatten(), minlength=256).cpu()
    return statistics_of(counts)


def statistics_of(counts: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of each channel from the counts of its 256 values, int64 [C, 256]."""
    value = torch.arange(256, dtype=torch.float64, device=counts.device) / 255
    share = counts.double() / counts.sum(1, keepdim=True)
    mean = share @ value
    deviation = (share * (value - mean[:, None]).square()).sum(1).sqrt()
    deviation[deviation == 0] = 1
    return tuple(mean.tolist()), tuple(deviation.tolist())
