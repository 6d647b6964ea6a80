"""Parts that are brought to size, and colours: beside plain definitions, an image at a time."""

from __future__ import annotations

import colorsys
import math

import pytest
import torch
from torch.nn.functional import interpolate

from noiseproof.data import Augment, Loader
from noiseproof.data._photometric import draw_boxes, draw_jitter, jittered, resized


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def images() -> torch.Tensor:
    return torch.randint(0, 256, (6, 3, 16, 16), dtype=torch.uint8, generator=generator())


def test_parts_are_within_the_image_and_of_the_shares_asked_for():
    boxes = draw_boxes(20000, 0.08, generator())
    top, left, height, width = boxes.double().unbind(1)
    assert boxes.min() >= 0
    assert (top + height).max() <= 1 + 1e-6
    assert (left + width).max() <= 1 + 1e-6
    area, ratio = height * width, width / height
    assert area.min() >= 0.08 - 1e-6
    assert 3 / 4 - 1e-5 <= ratio.min() <= ratio.max() <= 4 / 3 + 1e-5
    # uniform areas, less those that do not fit: half of them is a little below the middle
    assert 0.45 < area.median() < 0.54
    assert abs(ratio.log().mean()) < 0.01
    assert area.max() > 0.98


def test_a_part_is_interpolated_as_torch_does(images):
    whole = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
    index = torch.tensor([4])
    assert torch.equal(resized(images, index, whole, 16, None)[0], images[4].permute(1, 2, 0))
    larger = resized(images, index, whole, 40, None)[0].permute(2, 0, 1)
    expected = interpolate(images[4:5].float(), size=40, mode="bilinear")[0]
    assert (larger.float() - expected).abs().max() <= 0.5 + 1e-3  # rounded
    part = torch.tensor([[2 / 16, 5 / 16, 8 / 16, 8 / 16]])
    found = resized(images, index, part, 24, None)[0].permute(2, 0, 1)
    expected = interpolate(images[4:5, :, 2:10, 5:13].float(), size=24, mode="bilinear")[0]
    inner = (slice(None), slice(2, -2), slice(2, -2))  # at its edge ours reads beyond the part
    assert (found.float() - expected)[inner].abs().max() <= 0.5 + 1e-3
    flipped = resized(images, index, part, 24, torch.tensor([True]))[0].permute(2, 0, 1)
    assert torch.equal(flipped, found.flip(2))


def one_after_the_other(pixel, factors, order, mean):
    """ColorJitter of one pixel, by the definitions; ``mean`` is that of grey before contrast."""
    for change in order:
        factor = factors[change]
        grey = 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]
        if change == 0:
            pixel = [c * factor for c in pixel]
        elif change == 1:
            pixel = [c * factor + mean * (1 - factor) for c in pixel]
        elif change == 2:
            pixel = [c * factor + grey * (1 - factor) for c in pixel]
        else:
            hue, saturation, value = colorsys.rgb_to_hsv(*pixel)
            pixel = colorsys.hsv_to_rgb((hue + factor) % 1, saturation, value)
        pixel = [min(1.0, max(0.0, c)) for c in pixel]
    return pixel


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1), (1, 3, 0, 2)])
def test_colours_by_their_definitions(order):
    """Images of one colour, whose mean is their grey."""
    colours = torch.randint(0, 256, (32, 3), generator=generator(1))
    images = colours.view(32, 1, 1, 3).expand(32, 2, 2, 3).to(torch.uint8)
    jitter = draw_jitter(32, 0.4, generator(2))
    jitter[:, 4:] = torch.tensor(order)
    found = jittered(images, jitter)
    for colour, factors, image in zip(colours.tolist(), jitter.tolist(), found, strict=True):
        pixel = [c / 255 for c in colour]
        before = order[: order.index(1)]
        at = one_after_the_other(pixel, factors, before, math.nan)
        grey = 0.299 * at[0] + 0.587 * at[1] + 0.114 * at[2]
        expected = one_after_the_other(pixel, factors, order, grey)
        for ours, theirs in zip(image[0, 0].tolist(), expected, strict=True):
            assert abs(ours - 255 * theirs) <= 2  # grey is rounded to 256 steps


def test_the_strength_and_the_order_of_colours():
    factors = draw_jitter(5000, 0.4, generator())
    assert 0.6 <= factors[:, :3].min() < 0.61
    assert 1.39 < factors[:, :3].max() <= 1.4
    assert factors[:, 3].abs().max() <= 0.2
    orders = {tuple(row) for row in factors[:, 4:].long().tolist()}
    assert len(orders) == 24
    grey = torch.randint(0, 256, (3, 4, 4, 1), dtype=torch.uint8, generator=generator())
    assert jittered(grey, draw_jitter(3, 0.4, generator())).shape == grey.shape
    same = draw_jitter(3, 0.0, generator())
    colour = torch.randint(0, 256, (3, 4, 4, 3), dtype=torch.uint8, generator=generator())
    assert torch.equal(jittered(colour, same), colour)


def test_an_image_does_not_depend_on_those_beside_it(images):
    augment = Augment(flip=True, size=9, scale=0.1, jitter=0.4)
    params = augment.sample_params(6, generator())
    together = augment(images, params)
    assert together.shape == (6, 3, 9, 9)
    for i in range(6):
        alone = augment(images[i : i + 1], params[i : i + 1])
        assert torch.equal(alone[0], together[i])
    index = torch.tensor([3, 1])
    assert torch.equal(augment(images, params[index], index), together[index])


def test_a_loader_has_the_size_that_comes_out(images):
    augment = Augment(size=9, scale=0.1, jitter=0.4)
    loader = Loader(images, torch.arange(6), mean=[0.5] * 3, std=[0.5] * 3, augment=augment)
    assert next(iter(loader)).images.shape == (6, 3, 9, 9)
    assert torch.equal(loader.evaluated(images), loader.normalize(images[:, :, 3:12, 3:12]))


@pytest.mark.parametrize(
    "settings", [{"scale": 0.1}, {"scale": 0.1, "size": 4, "rotate": 3.0}, {"scale": 2, "size": 4}]
)
def test_what_does_not_go_together(settings):
    with pytest.raises(ValueError, match="crop_scale="):
        Augment(**settings)
    with pytest.raises(ValueError, match="jitter goes from 0 to 1"):
        Augment(jitter=2)
