"""Batches on the device: each sample once, repeatable, normalized, augmented as by torchvision."""

from __future__ import annotations

import pytest
import torch

from noiseproof.data import Augment, Loader
from noiseproof.data._augment import AugmentParams

N, C, H, W = 37, 3, 12, 10


@pytest.fixture
def images() -> torch.Tensor:
    return torch.randint(1, 256, (N, C, H, W), dtype=torch.uint8)


def loader(images: torch.Tensor, **keywords) -> Loader:
    settings = {"mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.4], "batch_size": 8} | keywords
    return Loader(images, torch.arange(len(images)), **settings)


def test_every_sample_once_an_epoch_with_its_label(images):
    batches = loader(images)
    assert len(batches) == 5
    seen = list(batches)
    assert [len(b.images) for b in seen] == [8, 8, 8, 8, 5]
    index = torch.cat([b.index for b in seen])
    assert sorted(index.tolist()) == list(range(N))
    assert index.tolist() != list(range(N))
    assert torch.equal(index, torch.cat([b.labels for b in seen]))


def test_normalized(images):
    for batch in loader(images):
        raw = images[batch.index].double() / 255
        mean, std = torch.tensor([0.4, 0.5, 0.6]), torch.tensor([0.2, 0.3, 0.4])
        expected = (raw - mean.view(1, 3, 1, 1)) / std.view(1, 3, 1, 1)
        torch.testing.assert_close(batch.images.double(), expected, rtol=0, atol=2e-6)
        assert batch.images.dtype == torch.float32


def test_the_seed_and_the_epoch_decide(images):
    def fingerprint(**keywords):
        batches = loader(images, augment=Augment(crop=2, flip=True, rotate=20), **keywords)
        return lambda epoch: torch.cat([b.images for b in batches.epoch(epoch)])

    one, same, other = fingerprint(seed=1), fingerprint(seed=1), fingerprint(seed=2)
    assert torch.equal(one(3), same(3))
    assert not torch.equal(one(3), one(4))
    assert not torch.equal(one(3), other(3))
    batches = loader(images, seed=1)
    first, second = ([b.index.tolist() for b in batches] for _ in range(2))
    assert first != second
    assert first == [b.index.tolist() for b in batches.epoch(0)]


def test_order_depends_neither_on_the_augmentation_nor_on_the_chunk_size(images, monkeypatch):
    plain, moved = loader(images), loader(images, augment=Augment(crop=2))
    assert torch.equal(plain.order(5), moved.order(5))
    together = torch.cat([b.images for b in moved.epoch(1)])
    monkeypatch.setattr("noiseproof.data._loader._CHUNK_PIXELS", {"cpu": 1})
    assert torch.equal(together, torch.cat([b.images for b in moved.epoch(1)]))


def test_no_shuffle(images):
    assert torch.cat([b.index for b in loader(images, shuffle=False)]).tolist() == list(range(N))


def test_global_generator_is_left_alone(images):
    before = torch.get_rng_state()
    list(loader(images, augment=Augment(crop=1, flip=True, rotate=5)))
    assert torch.equal(before, torch.get_rng_state())


def test_a_crop_is_a_window_of_the_padded_image(images):
    augment = Augment(crop=3)
    params = augment.sample_params(N, torch.Generator().manual_seed(0))
    moved = augment(images, params)
    padded = torch.nn.functional.pad(images, (3, 3, 3, 3))
    for i in range(N):
        y, x = params.offset[i].tolist()
        assert torch.equal(moved[i], padded[i, :, y : y + H, x : x + W])


def test_a_flip_mirrors(images):
    augment = Augment(flip=True)
    params = augment.sample_params(N, torch.Generator().manual_seed(0))
    moved = augment(images, params)
    assert 5 < int(params.flip.sum()) < N - 5
    for i in range(N):
        assert torch.equal(moved[i], images[i].flip(-1) if params.flip[i] else images[i])


def test_the_transforms_follow_each_other(images):
    """One reading of the images does what crop, then flip, then rotation do one after another."""
    augment = Augment(crop=2, flip=True, rotate=30)
    params = augment.sample_params(N, torch.Generator().manual_seed(0))
    cropped = Augment(crop=2)(images, AugmentParams(offset=params.offset))
    flipped = Augment(flip=True)(cropped, AugmentParams(flip=params.flip))
    rotated = Augment(rotate=30)(flipped, AugmentParams(angle=params.angle))
    assert torch.equal(augment(images, params), rotated)


def test_what_is_drawn_is_uniform():
    params = Augment(crop=4, flip=True, rotate=20).sample_params(
        90_000, torch.Generator().manual_seed(0)
    )
    for axis in (0, 1):
        counts = torch.bincount(params.offset[:, axis], minlength=9)
        assert len(counts) == 9
        assert bool(((counts - 10_000).abs() < 500).all())
    assert abs(float(params.flip.float().mean()) - 0.5) < 0.01
    assert -20 <= float(params.angle.min()) < -19.9
    assert 19.9 < float(params.angle.max()) <= 20
    assert abs(float(params.angle.mean())) < 0.2
    assert abs(float(params.angle.var()) - 400 / 3) < 2


def test_as_torchvision_moves(vision):
    """Against torchvision's own functions, for what was drawn."""
    images = torch.randint(1, 256, (40, 3, 32, 32), dtype=torch.uint8)
    augment = Augment(crop=4, flip=True, rotate=20)
    params = augment.sample_params(40, torch.Generator().manual_seed(0))
    moved = augment(images, params)
    wrong = 0
    for i in range(40):
        y, x = params.offset[i].tolist()
        image = vision.crop(vision.pad(images[i], [4]), y, x, 32, 32)
        image = vision.hflip(image) if params.flip[i] else image
        image = vision.rotate(image, float(params.angle[i]))
        wrong += int((image != moved[i]).any(0).sum())
    assert wrong <= 40 * 32 * 32 * 0.001  # a pixel half-way between two may go to either


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": torch.zeros(34)}, r"uint8 tensor \[N, C, H, W\]; got torch.float32 \[34\]"),
        ({"labels": torch.zeros(5)}, r"37 inputs need as many labels, a tensor \[N\]; got \[5\]"),
        ({"mean": [0.5]}, "one number for each of 3 channels; got 1 and 3"),
        ({"batch_size": 0}, "batch_size must be at least 1; got 0"),
    ],
)
def test_mistakes_are_named(images, change, message):
    settings = {"images": images, "labels": torch.zeros(N), "mean": [0.5] * 3, "std": [0.5] * 3}
    settings |= change
    with pytest.raises(ValueError, match=message):
        Loader(settings.pop("images"), settings.pop("labels"), **settings)


def test_mistakes_in_an_augmentation_are_named():
    with pytest.raises(ValueError, match="crop is a padding in pixels, 0 or more; got -1"):
        Augment(crop=-1)
    with pytest.raises(ValueError, match="rotate is an angle from 0 to 180 degrees; got 200"):
        Augment(rotate=200)


def test_images_of_one_colour_and_an_empty_set():
    batches = Loader(
        torch.zeros(0, 1, 8, 8, dtype=torch.uint8), torch.zeros(0), mean=[0.0], std=[1.0]
    )
    assert list(batches) == []
