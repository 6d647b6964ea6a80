"""Images with a wrong label that a run keeps, and what its network says of them."""

from __future__ import annotations

import base64
import os
import struct
import zlib

import numpy as np
import pytest
import torch

from noiseproof import data
from noiseproof._png import png
from noiseproof.noise import symmetric
from noiseproof.results import read as read_results
from noiseproof.results import read_examples, write_bundle
from noiseproof.train import fit, fit_many
from noiseproof.train._examples import make_examples
from noiseproof.train._setup import Setup

from .subjects import tiny


def decoded(picture: bytes) -> np.ndarray:
    """The pixels [H, W, C] of a PNG without filters; every checksum is held against its chunk."""
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(picture):
        (length,) = struct.unpack(">I", picture[at : at + 4])
        name, content = picture[at + 4 : at + 8], picture[at + 8 : at + 8 + length]
        (checksum,) = struct.unpack(">I", picture[at + 8 + length : at + 12 + length])
        assert checksum == zlib.crc32(name + content)
        chunks[name] = content
        at += 12 + length
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    channels = {0: 1, 2: 3}[colour]
    assert (depth, list(chunks)) == (8, [b"IHDR", b"IDAT", b"IEND"])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, channels)


@pytest.mark.parametrize("shape", [(8, 8, 1), (5, 7, 3), (1, 1, 1)])
def test_a_png_holds_the_image(shape):
    image = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    assert (decoded(png(image)) == image).all()


def test_a_run_keeps_what_its_network_says_of_images_with_a_wrong_label(tmp_path):
    run = tiny(rate=0.6)
    result = fit(run, out=tmp_path)
    found = read_examples(result.folder)
    digits = data.load("digits")
    given = symmetric(digits.train.labels, 0.6, num_classes=10, seed=run.seed).labels
    assert len(found) == len({e.index for e in found}) == 6
    images = digits.train.images[[e.index for e in found]]
    with torch.no_grad():
        p = result.network((images / 255 - digits.mean[0]) / digits.std[0]).softmax(1)
    for example, image, row in zip(found, images, p, strict=True):
        assert example.true == str(int(digits.train.labels[example.index]))
        assert example.given == str(int(given[example.index]))
        assert example.given != example.true
        assert example.predicted == str(int(row.argmax()))
        assert example.probability == pytest.approx(float(row.max()), rel=1e-4)
        shown = decoded(base64.b64decode(example.picture))
        assert (shown == image.permute(1, 2, 0).numpy()).all()


def test_every_loss_is_asked_of_the_same_images(tmp_path):
    runs = [tiny(loss=loss, seed=s) for s in (0, 1) for loss in ("ce", "nce", "mae")]
    folders = [result.folder for result in fit_many(runs, out=tmp_path)]
    asked = [[(e.index, e.given, e.picture) for e in read_examples(f)] for f in folders]
    assert asked[0] == asked[1] == asked[2] != asked[3]
    assert asked[3] == asked[4] == asked[5]


def test_what_a_run_is_does_not_change(tmp_path):
    run = tiny(rate=0.6)
    alone, kept = fit(run), fit(run, out=tmp_path)
    for a, b in zip(alone.history, kept.history, strict=True):
        assert a | {"seconds": 0} == b | {"seconds": 0}
    assert kept.folder.name == run.resolve().hash


@pytest.mark.parametrize("settings", [{"noise": "none"}, {"rate": 0.0}])
def test_without_a_wrong_label_there_are_none(tmp_path, settings):
    result = fit(tiny(**settings), out=tmp_path)
    assert "examples.json" not in os.listdir(result.folder)
    assert read_examples(result.folder) == []


def own(images: torch.Tensor) -> data.Dataset:
    labels = torch.arange(len(images)) % 3
    names = ["a" * 200, "b", "c"]
    return data.from_arrays(
        images, labels, images, labels, classes=names, name="mine", layout="NCHW"
    )


def examples_of(dataset: data.Dataset, noise: str = "symmetric") -> list:
    run = tiny(noise=noise, rate=0.5, batch_size=16, model="mlp")
    resolved = run.resolve(overrides={"data": "mine"})
    return make_examples(Setup().trainer(resolved, data=dataset), None)


def test_large_images_are_thinned_and_long_names_are_cut():
    images = torch.randint(0, 256, (30, 3, 8, 150), dtype=torch.uint8)
    found = examples_of(own(images))
    assert len(found) == 6
    for example in found:
        shown = decoded(base64.b64decode(example.picture))
        kept = images[example.index, :, ::3, ::3].permute(1, 2, 0).numpy()
        assert (shown == kept).all()
        assert len(example.true) <= 100


def test_what_is_no_picture_is_left_out():
    assert examples_of(own(torch.randint(0, 256, (30, 2, 8, 8), dtype=torch.uint8))) == []


def test_a_network_that_says_nan_has_nothing_to_show():
    trainer = Setup().trainer(tiny().resolve())
    with torch.no_grad():
        trainer.state.weights.fill_(float("nan"))
    assert make_examples(trainer, None) == []


def test_an_output_beyond_the_classes_is_called_by_its_number():
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 12))
    with torch.no_grad():
        network[1].bias[11] = 1e3
    run = tiny().resolve(overrides={"network": "Sequential"})
    found = make_examples(Setup().trainer(run, network=network), None)
    assert {example.predicted for example in found} == {"11"}


def test_they_are_cleared_with_the_run_and_left_out_of_bundles(tmp_path):
    result = fit(tiny(), out=tmp_path / "runs")
    (record,) = read_results(tmp_path / "runs").records
    write_bundle(tmp_path / "all.jsonl", [record])
    assert "picture" not in (tmp_path / "all.jsonl").read_text()
    assert read_examples(tmp_path / "all.jsonl") == []
    (result.folder / "examples.json").write_text("{")
    fit(tiny(), out=tmp_path / "runs", force=True)
    assert len(read_examples(result.folder)) == 6
