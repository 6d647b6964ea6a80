"""Random crops, flips and rotations of a whole batch at once, where the images are.

Each of them moves pixels and changes none, so they are computed as one question: which pixel of the
original does a pixel of the result come from? However many transforms there are, the images are
read once. What comes from outside the image is black.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Draws:
    """What was drawn for each of n images; None where a transform is not asked for."""

    shift: Tensor | None = None  # [n, 2], rows and columns, each from 0 to twice the padding
    flip: Tensor | None = None  # [n], bool
    angle: Tensor | None = None  # [n], degrees, counter-clockwise

    def __getitem__(self, part: slice | Tensor) -> Draws:
        return Draws(*(None if t is None else t[part] for t in (self.shift, self.flip, self.angle)))


@dataclass(frozen=True)
class Augment:
    """Which random transforms images undergo, in this order: crop, flip, rotation.

    Each has the distribution of torchvision's transform of that name.

    Args:
        crop: the padding of ``RandomCrop(size, padding=crop)``; 0 for none.
        flip: whether images are mirrored with probability one half, ``RandomHorizontalFlip()``.
        rotate: the largest angle of ``RandomRotation(rotate)`` in degrees; 0 for none.

    >>> augment = Augment(crop=4, flip=True)
    >>> images = torch.zeros(2, 3, 32, 32, dtype=torch.uint8)
    >>> augment(images, augment.draw(2, torch.Generator().manual_seed(0))).shape
    torch.Size([2, 3, 32, 32])
    """

    crop: int = 0
    flip: bool = False
    rotate: float = 0.0

    def __post_init__(self) -> None:
        if self.crop < 0 or self.crop != int(self.crop):
            raise ValueError(f"crop is a padding in pixels, 0 or more; got {self.crop}")
        if not 0 <= self.rotate <= 180:
            raise ValueError(f"rotate is an angle from 0 to 180 degrees; got {self.rotate}")

    def __bool__(self) -> bool:
        return bool(self.crop or self.flip or self.rotate)

    def draw(self, n: int, generator: torch.Generator) -> Draws:
        """The random numbers for n images, on the generator's device."""
        device = generator.device
        shift = flip = angle = None
        if self.crop:
            shift = torch.randint(2 * self.crop + 1, (n, 2), generator=generator, device=device)
        if self.flip:
            flip = torch.rand(n, generator=generator, device=device) < 0.5
        if self.rotate:
            unit = torch.rand(n, generator=generator, device=device)
            angle = (2 * unit - 1) * self.rotate
        return Draws(shift, flip, angle)

    def __call__(self, images: Tensor, draws: Draws, index: Tensor | None = None) -> Tensor:
        """The images [N, C, H, W] (those at ``index``, if given), transformed as drawn."""
        if index is None:
            index = torch.arange(len(images), device=images.device)
        if not self:
            return images[index]
        height, width = images.shape[-2:]
        row = torch.arange(height, device=images.device).view(1, -1, 1)
        column = torch.arange(width, device=images.device).view(1, 1, -1)
        inside = None
        if draws.angle is not None:  # the last transform is the first to be undone
            row, column = _turned(row, column, draws.angle)
            inside = _within(row, height) & _within(column, width)
        if draws.flip is not None:
            column = torch.where(draws.flip.view(-1, 1, 1), width - 1 - column, column)
        if draws.shift is not None:
            row = row + draws.shift[:, 0].view(-1, 1, 1) - self.crop
            column = column + draws.shift[:, 1].view(-1, 1, 1) - self.crop
            within = _within(row, height) & _within(column, width)
            inside = within if inside is None else inside & within
        if inside is not None:
            row, column = row.clamp(0, height - 1), column.clamp(0, width - 1)
        # Indices on both sides of the slice put the channels last, in memory too.
        moved = images[index.view(-1, 1, 1), :, row, column]
        if inside is not None:
            moved = moved.mul_(inside.unsqueeze(-1))
        return moved.permute(0, 3, 1, 2)


def _within(position: Tensor, size: int) -> Tensor:
    return (position >= 0) & (position < size)


def _turned(row: Tensor, column: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    """The pixel nearest to where each came from, about the centre of the image."""
    y = row - (row.shape[1] - 1) / 2
    x = column - (column.shape[2] - 1) / 2
    radians = (angle * (math.pi / 180)).view(-1, 1, 1)
    cos, sin = radians.cos(), radians.sin()
    from_x = cos * x - sin * y + (column.shape[2] - 1) / 2
    from_y = sin * x + cos * y + (row.shape[1] - 1) / 2
    return from_y.round().long(), from_x.round().long()
