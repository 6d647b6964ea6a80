"""Random crops, flips and rotations of a whole batch at once, on the device of the images.

These move pixels without changing them, so all are computed together: for every pixel of the
result, the position in the original that it comes from. The images are then read once, however many
there are. Pixels from outside the image are black. What changes pixels is in `_photometric.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .._errors import UsageError
from ._photometric import draw_boxes, draw_jitter, jittered, resized


@dataclass(frozen=True)
class AugmentParams:
    """The random parameters of the transforms of n images; None for a transform not in use."""

    offset: Tensor | None = None  # of the crop, [n, 2]: row and column, 0 to twice the padding
    flip: Tensor | None = None  # [n], bool
    angle: Tensor | None = None  # [n], degrees, counter-clockwise
    position: Tensor | None = None  # of the part that is cut out, [n, 2], from 0 to 1
    box: Tensor | None = None  # the part that is brought to size, [n, 4]
    jitter: Tensor | None = None  # of colours, [n, 8]

    def __getitem__(self, part: slice | Tensor) -> AugmentParams:
        return AugmentParams(*(None if t is None else t[part] for t in vars(self).values()))


@dataclass(frozen=True)
class Augment:
    """Random transforms of images, in this order: crop, flip, rotation, colours.

    Each has the distribution of the torchvision transform that is named below.

    Args:
        crop: the padding of ``RandomCrop(size, padding=crop)``; 0 for none.
        flip: whether images are mirrored with probability one half, ``RandomHorizontalFlip()``.
        rotate: the largest angle of ``RandomRotation(rotate)`` in degrees; 0 for none.
        size: the side of a square that is cut out of larger images, ``RandomCrop(size)``, in place
            of the padded crop; `center` cuts out the middle instead. 0 for the whole image.
        scale: the smallest share of a square image that is brought to that size,
            ``RandomResizedCrop(size, scale=(scale, 1))``; 0 cuts without resizing.
        jitter: by how much brightness, contrast and saturation change at most, and hue by half of
            it, ``ColorJitter(jitter, jitter, jitter, jitter / 2)``; 0 for none.

    >>> augment = Augment(crop=4, flip=True)
    >>> images = torch.zeros(2, 3, 32, 32, dtype=torch.uint8)
    >>> augment(images, augment.sample_params(2, torch.Generator().manual_seed(0))).shape
    torch.Size([2, 3, 32, 32])
    """

    crop: int = 0
    flip: bool = False
    rotate: float = 0.0
    size: int = 0
    scale: float = 0.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        if self.crop < 0 or self.crop != int(self.crop):
            raise UsageError(f"crop is a padding in pixels, 0 or more; got {self.crop}")
        if not 0 <= self.rotate <= 180:
            raise UsageError(f"rotate is an angle from 0 to 180 degrees; got {self.rotate}")
        if self.size and self.crop:
            raise UsageError(
                f"crop={self.crop} pads images and crop_size={self.size} cuts them: give one"
            )

        if self.scale and (not self.size or self.rotate or not 0 < self.scale <= 1):
            raise UsageError(
                f"crop_scale={self.scale:g} is a share of the image, from 0 to 1, that is brought "
                f"to crop_size={self.size}; it goes with a crop_size and without rotate"
            )
        if not 0 <= self.jitter <= 1:
            raise UsageError(f"jitter goes from 0 to 1; got {self.jitter}")

    def __bool__(self) -> bool:
        return bool(self.crop or self.flip or self.rotate or self.size or self.jitter)

    def output_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Of an image of this shape, that which comes out."""
        if not self.size:
            return tuple(shape)
        if self.size > min(shape[-2:]):
            smaller = "x".join(map(str, shape[-2:]))
            raise UsageError(f"crop_size={self.size} is larger than the images, {smaller}")
        return (*shape[:-2], self.size, self.size)

    def center(self, images: Tensor) -> Tensor:
        """The middle of images [N, C, H, W] in the size that comes out, as it is tested on."""
        height, width = self.output_shape(images.shape[1:])[-2:] if self.size else images.shape[-2:]
        top, left = (images.shape[-2] - height) // 2, (images.shape[-1] - width) // 2
        return images[..., top : top + height, left : left + width] if self.size else images

    def sample_params(self, n: int, generator: torch.Generator) -> AugmentParams:
        """Draw the parameters for n images, on the generator's device."""
        device = generator.device
        offset = flip = angle = None
        if self.crop:
            offset = torch.randint(2 * self.crop + 1, (n, 2), generator=generator, device=device)
        if self.flip:
            flip = torch.rand(n, generator=generator, device=device) < 0.5
        if self.rotate:
            unit = torch.rand(n, generator=generator, device=device)
            angle = (2 * unit - 1) * self.rotate
        position = box = jitter = None
        if self.scale:
            box = draw_boxes(n, self.scale, generator)
        elif self.size:
            position = torch.rand(n, 2, generator=generator, device=device)
        if self.jitter:
            jitter = draw_jitter(n, self.jitter, generator)
        return AugmentParams(offset, flip, angle, position, box, jitter)

    def __call__(
        self, images: Tensor, params: AugmentParams, index: Tensor | None = None
    ) -> Tensor:
        """Transform the images [N, C, H, W], or those at ``index``, by the given parameters."""
        if not self:
            return images if index is None else images[index]
        if index is None:
            index = torch.arange(len(images), device=images.device)
        if params.box is not None:
            moved = resized(images, index, params.box, self.size, params.flip)
        else:
            moved = self._moved(images, params, index)
        if params.jitter is not None:
            moved = jittered(moved, params.jitter)
        return moved.permute(0, 3, 1, 2)

    def _moved(self, images: Tensor, params: AugmentParams, index: Tensor) -> Tensor:
        """The images with their pixels at other places, [N, H, W, C]."""
        height, width = self.output_shape(images.shape[1:])[-2:]
        row = torch.arange(height, device=images.device).view(1, -1, 1)
        column = torch.arange(width, device=images.device).view(1, 1, -1)
        inside = None
        if params.angle is not None:  # the last transform is inverted first
            row, column = _before_rotation(row, column, params.angle)
            inside = _within(row, height) & _within(column, width)
        if params.flip is not None:
            column = torch.where(params.flip.view(-1, 1, 1), width - 1 - column, column)
        if params.offset is not None:
            row = row + params.offset[:, 0].view(-1, 1, 1) - self.crop
            column = column + params.offset[:, 1].view(-1, 1, 1) - self.crop
            within = _within(row, height) & _within(column, width)
            inside = within if inside is None else inside & within
        if inside is not None:
            row, column = row.clamp(0, height - 1), column.clamp(0, width - 1)
        if params.position is not None:
            spans = (images.shape[-2] - height, images.shape[-1] - width)
            top, left = (
                (params.position[:, i] * (span + 1)).long().clamp(max=span).view(-1, 1, 1)
                for i, span in enumerate(spans)
            )
            row, column = row + top, column + left
        # Indices on both sides of the slice put the channels last, also in memory.
        moved = images[index.view(-1, 1, 1), :, row, column]
        if inside is not None:
            moved = moved.mul_(inside.unsqueeze(-1))
        return moved


def _within(position: Tensor, size: int) -> Tensor:
    return (position >= 0) & (position < size)


def _before_rotation(row: Tensor, column: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    """The pixel that a rotation about the centre moves to each position, by nearest neighbour."""
    y = row - (row.shape[1] - 1) / 2
    x = column - (column.shape[2] - 1) / 2
    radians = (angle * (math.pi / 180)).view(-1, 1, 1)
    cos, sin = radians.cos(), radians.sin()
    from_x = cos * x - sin * y + (column.shape[2] - 1) / 2
    from_y = sin * x + cos * y + (row.shape[1] - 1) / 2
    return from_y.round().long(), from_x.round().long()
