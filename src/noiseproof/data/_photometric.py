"""Augmentations that change pixels: parts brought to another size, and colours.

All is computed for each image by itself and rounded to uint8 in the end, so the numbers depend
neither on how many images are done together nor on the number of threads.
"""

from __future__ import annotations

import torch
from torch import Tensor

_TRIES = 10  # at a part that fits into the image, as torchvision has it
_NARROWEST, _WIDEST = 3 / 4, 4 / 3  # width by height of a part
_GREY = (299, 587, 114)  # thousandths of red, green and blue


def draw_boxes(n: int, scale: float, generator: torch.Generator) -> Tensor:
    """Parts of square images, of ``RandomResizedCrop(size, scale=(scale, 1))``.

    Returns:
        [n, 4]: top, left, height and width, all as fractions of the image.
    """
    device = generator.device
    unit = torch.rand(n, 2 * _TRIES + 2, generator=generator, device=device)
    area = scale + (1 - scale) * unit[:, :_TRIES]
    low, high = torch.tensor((_NARROWEST, _WIDEST), dtype=torch.float64).log().tolist()
    ratio = (low + (high - low) * unit[:, _TRIES : 2 * _TRIES]).exp()
    sides = torch.stack([(area / ratio).sqrt(), (area * ratio).sqrt()], 2)
    fits = (sides <= 1).all(2)
    first = fits.to(torch.uint8).argmax(1)
    chosen = sides[torch.arange(n, device=device), first]
    chosen = torch.where(fits.any(1, keepdim=True), chosen, 1.0)  # the whole image
    return torch.cat([unit[:, 2 * _TRIES :] * (1 - chosen), chosen], 1)


def resized(images: Tensor, index: Tensor, boxes: Tensor, size: int, flip: Tensor | None) -> Tensor:
    """Parts of the images [N, C, H, W] at ``index``, bilinear, uint8 [n, size, size, C]."""
    at = (torch.arange(size, device=images.device) + 0.5) / size
    row = _positions(at, boxes[:, 0], boxes[:, 2], images.shape[2])
    column = _positions(at, boxes[:, 1], boxes[:, 3], images.shape[3])
    if flip is not None:
        column = torch.where(flip.view(-1, 1), column.flip(1), column)
    top, left = row.long(), column.long()
    bottom = (top + 1).clamp(max=images.shape[2] - 1)
    right = (left + 1).clamp(max=images.shape[3] - 1)
    down, along = (row - top).view(-1, size, 1, 1), (column - left).view(-1, 1, size, 1)

    def line(rows: Tensor) -> Tensor:
        one, other = (
            images[index.view(-1, 1, 1), :, rows.unsqueeze(2), columns.unsqueeze(1)].float()
            for columns in (left, right)
        )
        return one * (1 - along) + other * along

    return (line(top) * (1 - down) + line(bottom) * down).round().to(torch.uint8)


def _positions(at: Tensor, start: Tensor, length: Tensor, size: int) -> Tensor:
    found = (start.view(-1, 1) + at * length.view(-1, 1)) * size - 0.5
    return found.clamp(0, size - 1)


def draw_jitter(n: int, strength: float, generator: torch.Generator) -> Tensor:
    """Factors of ``ColorJitter(s, s, s, s / 2)`` and the order in which they are applied.

    Returns:
        [n, 8]: of brightness, contrast and saturation the factor, of hue the turn, then the ranks.
    """
    device = generator.device
    unit = 2 * torch.rand(n, 4, generator=generator, device=device) - 1
    factors = torch.cat([(1 + strength * unit[:, :3]).clamp(min=0), strength / 2 * unit[:, 3:]], 1)
    order = torch.rand(n, 4, generator=generator, device=device).argsort(dim=1, stable=True)
    return torch.cat([factors, order], 1)


def jittered(images: Tensor, jitter: Tensor) -> Tensor:
    """Images uint8 [n, H, W, C] with other colours."""
    changes = (_brightness, _contrast, _saturation, _hue)[: 4 if images.shape[3] == 3 else 2]
    pixels = images.float() / 255
    factors, order = jitter[:, :4], jitter[:, 4:].long()
    for place in range(4):
        for number, change in enumerate(changes):
            rows = (order[:, place] == number).nonzero().flatten()
            factor = factors[rows, number].view(-1, 1, 1, 1)
            pixels[rows] = change(pixels[rows], factor).clamp(0, 1)
    return (pixels * 255).round().to(torch.uint8)


def _grey(pixels: Tensor) -> Tensor:
    """[n, H, W, 1], in 256 steps, so that sums of it are exact."""
    if pixels.shape[3] == 1:
        return (pixels * 255).round()
    red, green, blue = (share * (pixels[..., i] * 255).round() for i, share in enumerate(_GREY))
    return ((red + green + blue) / 1000).round().unsqueeze(3)


def _brightness(pixels: Tensor, factor: Tensor) -> Tensor:
    return pixels * factor


def _contrast(pixels: Tensor, factor: Tensor) -> Tensor:
    grey = _grey(pixels).long()
    total = grey.flatten(1).sum(1).float()
    mean = (total / (255 * grey[0].numel() if len(grey) else 1)).view(-1, 1, 1, 1)
    return pixels * factor + mean * (1 - factor)


def _saturation(pixels: Tensor, factor: Tensor) -> Tensor:
    return pixels * factor + _grey(pixels) / 255 * (1 - factor)


def _hue(pixels: Tensor, turn: Tensor) -> Tensor:
    value, least = pixels.amax(3), pixels.amin(3)
    spread = value - least
    red, green, blue = ((value - c) / torch.where(spread == 0, 1, spread) for c in pixels.unbind(3))
    hue = torch.where(
        pixels[..., 0] == value, blue - green,
        torch.where(pixels[..., 1] == value, 2 + red - blue, 4 + green - red),
    )  # fmt: skip
    hue = hue + 6 * turn.view(-1, 1, 1)
    channels = []
    for start in (5, 3, 1):
        k = (start + hue) % 6
        channels.append(value - spread * torch.minimum(k, 4 - k).clamp(0, 1))
    return torch.stack(channels, 3)
