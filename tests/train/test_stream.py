"""Runs on images that are decoded as they are read: the numbers of resident ones, bit for bit."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch

from noiseproof import data, report, results, train
from noiseproof.catalogue import DATASETS
from noiseproof.data import ImageFiles, Keeping
from noiseproof.report._provenance import make_provenance
from noiseproof.runs import Run
from noiseproof.sources import Problems
from noiseproof.train._samples import read_samples
from noiseproof.train._setup import Setup
from tests.data.trees import (
    truncate,
    write_folder,
    write_image,
    write_imagenet,
    write_webvision,
)

from .subjects import StopError, stop_after


@pytest.fixture
def photos(tmp_path):
    root = tmp_path / "photos"
    write_folder(root / "train", each=12)
    write_folder(root / "test", each=5)
    return root


def run_on(folder, **settings) -> Run:
    given = {"epochs": 3, "model": "cnn4", "batch_size": 5, "device": "cpu", "image_size": 16}
    return Run(dataset=f"folder:{folder}", **given | settings)


def history(result):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in result.history]


@pytest.mark.parametrize(
    "settings",
    [
        {"crop": 2, "flip": True, "ema": 0.9},
        {"holdout": 0.25, "crop_size": 12, "crop": 0},
        {"noise": "symmetric", "rate": 0.4, "mixup": 0.2, "crop": 0},
    ],
)
def test_the_numbers_are_those_of_resident_images(photos, tmp_path, monkeypatch, settings):
    expected = train.fit(run_on(photos, stream="no", **settings))
    cache = tmp_path / "cache"
    monkeypatch.setattr(Keeping, "in_memory", lambda self: 0)
    for given in ({}, {"cache": str(cache)}, {"cache": str(cache)}):
        run = run_on(photos, stream="yes", **given, **settings)
        assert run.resolve().hash == expected.run.hash
        found = train.fit(run)
        assert history(found) == history(expected)
        ours, theirs = (r.network.state_dict() for r in (found, expected))
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_images_stay_in_their_files(photos):
    trainer = Setup().trainer(run_on(photos, stream="yes", holdout=0.25).resolve())
    for inputs in (trainer.loader.inputs, trainer.test.inputs, trainer.validation.inputs):
        assert isinstance(inputs, ImageFiles)
    assert trainer.evaluates_files
    assert not Setup().trainer(run_on(photos, stream="no").resolve()).evaluates_files


def test_resumed_in_the_middle(photos, tmp_path):
    """Streamed up to an epoch, resident from then on."""
    run = run_on(photos, crop=2)
    whole = train.fit(run)

    def stop(progress):
        if progress.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train.fit(dataclasses.replace(run, stream="yes"), out=tmp_path / "runs", on_epoch=stop)
    resumed = train.fit(dataclasses.replace(run, stream="no"), out=tmp_path / "runs")
    assert history(resumed) == history(whole)


def test_data_that_is_given_may_stream(photos, tmp_path):
    results = [
        train.fit(
            Run(epochs=2, model="mlp", batch_size=5, device="cpu"), out=tmp_path / stream,
            data=data.from_folder(photos, image_size=8, stream=stream), name="own",
        )
        for stream in ("yes", "no")
    ]  # fmt: skip
    assert history(results[0]) == history(results[1])


@pytest.mark.parametrize("cached", [False, True])
def test_data_that_is_given_goes_on_streamed_or_resident(photos, tmp_path, cached):
    """Its content is the same; if that changes, it is refused."""
    truncate(photos / "train/cat/2.png")
    cache = tmp_path / "cache" if cached else None

    def fit(stream, **given):
        with pytest.warns(UserWarning, match="left out"):
            found = data.from_folder(
                photos, image_size=8, stream=stream, skip_unreadable=True, cache=cache, name="own"
            )
        run = Run(epochs=3, model="mlp", batch_size=5, device="cpu")
        return train.fit(run, data=found, out=tmp_path / "runs", name="mine", **given)

    with pytest.raises(StopError):
        fit("yes", on_epoch=stop_after(1))
    with pytest.raises(StopError):
        fit("no", on_epoch=stop_after(2))
    ended = fit("yes")
    assert ended.network is not None
    assert len(ended.history) == 3
    assert fit("no").network is None, "it has ended"
    write_image(photos / "train/cat/0.png", 77, size=(14, 12))
    for stream in ("yes", "no"):
        with pytest.raises(ValueError, match=r"another run of this name \(the data differs\)"):
            fit(stream)


def test_pixels_that_nobody_has_seen_cannot_be_compared(tmp_path, small_webvision):
    write_webvision(tmp_path)
    run = Run(epochs=1, model="cnn4", batch_size=32, crop_size=16, device="cpu")

    def fit(stream):
        found = data.load("webvision-val", tmp_path, keeping=Keeping(stream))
        return train.fit(run, data=found, out=tmp_path / "runs", name="mine")

    assert fit("yes").network is not None
    assert fit("yes").network is None
    with pytest.raises(ValueError, match=r"the data cannot be compared: .* load them as before"):
        fit("no")


def test_noise_that_reads_all_images_says_so(photos):
    run = run_on(photos, stream="yes", noise="instance", rate=0.2)
    with pytest.raises(ValueError, match=r"instance noise needs all images in memory.*--stream no"):
        train.fit(run)


def test_a_model_is_trained_on_a_part_and_predicts_the_middle(photos, tmp_path, monkeypatch):
    result = train.fit(run_on(photos, crop_size=12, image_size=16), out=tmp_path)
    model = train.load(result.folder)
    assert (model.inputs.shape, model.inputs.stored) == ((3, 12, 12), (3, 16, 16))
    (samples,) = read_samples([photos / "test/cat/1.png"], model.inputs, Problems(skip=False))
    ((place, pixels),) = [(part.places, part.inputs) for part in samples.parts]
    whole = data.from_folder(photos, image_size=16).test.images[1]
    assert place == [(photos / "test/cat/1.png", 0)]
    assert torch.equal(torch.as_tensor(pixels[0]), whole)  # of which the model takes the middle
    tested = data.from_folder(photos, image_size=16, stream="yes").test
    streamed = model.predict_proba(tested.inputs, batch_size=3)
    resident = data.from_folder(photos, image_size=16, stream="no").test.images
    assert torch.equal(streamed, model.predict_proba(resident, batch_size=3))
    assert torch.equal(streamed, model.predict_proba(resident[:, :, 2:14, 2:14], batch_size=3))
    with pytest.raises(ValueError, match="crop_size=20 is larger than the images, 16x16"):
        train.fit(run_on(photos, crop_size=20, crop=0))


def test_a_part_is_cut_out_of_the_image_without_its_border(photos):
    """Which suits the data where whole images are trained on."""
    run = Run(dataset=f"folder:{photos}", image_size=16, epochs=1, device="cpu")
    assert run.resolve().crop == 2
    result = train.fit(dataclasses.replace(run, crop_size=12))
    assert (result.run.crop, result.run.crop_size) == (0, 12)
    with pytest.raises(ValueError, match="crop=2 pads images and crop_size=12 cuts a part"):
        train.fit(dataclasses.replace(run, crop_size=12, crop=2))


def test_settings():
    plain = Run(dataset="webvision", loss="ce").resolve()
    kept = Run(dataset="webvision", loss="ce", stream="yes", cache="x", skip_unreadable=True)
    assert kept.resolve().hash == plain.hash
    assert kept.resolve() == plain
    assert "stream" not in plain.settings()
    assert (plain.crop_size, plain.flip, plain.model) == (224, True, "resnet50-imagenet")
    assert (
        Run(dataset="cifar10", crop_size=0).resolve().hash == Run(dataset="cifar10").resolve().hash
    )
    whole = Run(dataset="webvision", loss="ce", crop_size=0).resolve()
    assert (whole.crop_size, whole.crop_scale) == (0, 0.0)
    with pytest.raises(ValueError, match="skip_unreadable is for data of your own"):
        Run(dataset="cifar10", skip_unreadable=True)
    with pytest.raises(ValueError, match="stream is one of auto, yes, no"):
        Run(stream="maybe")
    own = Run(dataset="webvision-val", loss="nce+rce").resolve()
    assert own.loss == Run(dataset="webvision", loss="nce+rce").resolve().loss
    assert own.method == "NCE+RCE"
    assert own.hash != Run(dataset="webvision", loss="nce+rce").resolve().hash


@pytest.fixture
def small_webvision(monkeypatch):
    """Images of 18 pixels in place of 256, of which parts of 16 are trained on."""
    for name in ("webvision", "webvision-val"):
        entry = DATASETS[name]
        protocols = {
            k: dataclasses.replace(p, crop_size=16, model="cnn4", batch_size=32)
            for k, p in entry.protocols.items()
        }
        small = dataclasses.replace(entry, shape=(3, 18, 18), protocols=protocols)
        monkeypatch.setitem(DATASETS, name, small)


@pytest.mark.parametrize("protocol", ["paper", "authors"])
def test_webvision_streamed_and_resident(tmp_path, small_webvision, protocol):
    write_webvision(tmp_path)
    write_imagenet(tmp_path)
    settings = {"dataset": "webvision", "loss": "nce+mae", "epochs": 2, "protocol": protocol}
    run = Run(**settings, device="cpu")
    results = [
        train.fit(dataclasses.replace(run, stream=stream), data_root=tmp_path)
        for stream in ("yes", "no")
    ]
    assert history(results[0]) == history(results[1])


def test_webvision_with_damaged_images(tmp_path, small_webvision):
    base = write_webvision(tmp_path)
    truncate(base / "google/q0001/0.jpg")
    run = Run(dataset="webvision-val", loss="ce", epochs=1, device="cpu", stream="yes")
    with pytest.raises(ValueError, match=r"q0001/0.jpg: a damaged image .* --skip-unreadable"):
        train.fit(run, data_root=tmp_path)
    without = dataclasses.replace(run, skip_unreadable=True)
    left_out = []
    for out in ("one", "two"):
        with pytest.warns(UserWarning, match="left out what cannot be read"):
            result = train.fit(without, data_root=tmp_path, out=tmp_path / out)
        assert len(result.history) == 1
        (record,) = results.read(tmp_path / out).records
        left_out.append(record.about["left_out"])
        (base / "val_images_256/val000007.jpg").unlink(missing_ok=True)
    first, second = left_out
    assert first["count"] == 1
    assert first["first"][0].startswith("webvision/google/q0001/0.jpg: a damaged image")
    assert second["count"] == 2
    assert second["first"][1] == "webvision/val_images_256/val000007.jpg: there is no such file"
    assert first["digest"] != second["digest"]


def test_what_is_left_out_of_own_data_is_kept_in_the_record_and_the_report(photos, tmp_path):
    for number in range(7):
        truncate(photos / f"train/cat/{number}.png")
    run = run_on(photos, epochs=1, skip_unreadable=True)
    with pytest.warns(UserWarning, match="and 6 more"):
        train.fit(run, out=tmp_path / "runs")
    (record,) = results.read(tmp_path / "runs").records
    left_out = record.about["left_out"]
    assert (left_out["count"], len(left_out["first"])) == (7, 5)
    results.write_bundle(tmp_path / "all.jsonl", [record])
    bundled = results.read(tmp_path / "all.jsonl")
    assert bundled.records[0].about["left_out"] == left_out
    (text,) = make_provenance(report.make_study(bundled)).settings
    assert f"left out 7 that cannot be read ({left_out['digest']})" in text
    train.fit(run_on(photos / "test", epochs=1), out=tmp_path / "whole")
    assert "left_out" not in results.read(tmp_path / "whole").records[0].about
    written = json.loads((tmp_path / "all.jsonl").read_text())
    for wrong in (7, {"count": "7", "digest": "a", "first": []}, {"count": 7, "digest": "a"}):
        written["about"]["left_out"] = wrong
        (tmp_path / "bad.jsonl").write_text(json.dumps(written) + "\n")
        (problem,) = results.read(tmp_path / "bad.jsonl").problems
        assert "left_out is" in problem
