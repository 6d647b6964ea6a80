"""A run is a value: its hash, what it takes from its protocol, and what it refuses."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from noiseproof.catalogue import DataSummary, Protocol, protocol_of
from noiseproof.runs import Run

OTHER = {  # for every field a value that is not the default
    "dataset": "mnist", "noise": "pairflip", "rate": 0.5, "variant": "authors", "loss": "ce",
    "model": "cnn4", "protocol": "authors", "epochs": 3, "batch_size": 64, "lr": 0.02,
    "schedule": "constant", "schedule_by": "step", "warmup": 2.5, "lr_floor": 0.001,
    "momentum": 0.8, "nesterov": True, "optimizer": "adamw", "weight_decay": 0.1,
    "decay_on": "matrices", "label_smoothing": 0.1, "mixup": 0.2, "clip": 1.0,
    "class_weight": "balanced", "crop": 1, "crop_size": 6, "jitter": 0.3,
    "flip": True, "rotate": 5.0, "l1": 1e-4,
    "ema": 0.9, "balance": 1.0, "holdout": 0.2, "precision": "bf16", "device": "cuda:1", "seed": 1,
    "freeze": ("layers.1.*",), "stream": "yes", "cache": "folder", "shrink": 2.0,
    "ema_horizon": 0.02, "choose_epoch": True,
}  # fmt: skip
NEED_FILES = {"imports", "weights"}  # which test_own writes
OF_SOURCES = {
    "test", "label", "text", "image", "truth", "ignore", "image_size", "skip_unreadable",
}  # fmt: skip


OF_ADAMW = {"beta1": 0.8, "beta2": 0.99, "eps": 1e-6}
NEED_OTHERS = {  # and what each needs beside it
    "fold": {"fold": 2, "holdout": 0.2},
    "crop_scale": {"crop_scale": 0.5, "crop_size": 6},
    "shrink_schedule": {"shrink_schedule": "linear", "shrink": 2.0},
    "shrink_limit": {"shrink_limit": 0.1, "shrink": 2.0},
}


def hash_of(**settings: object) -> str:
    return Run(**settings).resolve().hash


def test_the_hash_is_for_good():
    """Folders of results are named by it: if this fails, old results are not found again."""
    assert hash_of() == "ec764fec2afd8652"
    cifar = Run(dataset="cifar10", rate=0.8, loss="10*nce + 0.1*rce(A=-4)", ema=0.999, seed=1)
    assert cifar.resolve(on_gpu=True).hash == "512401a387bca5d9"


def test_every_field_but_where_it_runs_changes_the_hash():
    fields = {f.name for f in dataclasses.fields(Run)}
    assert fields == OTHER.keys() | OF_ADAMW.keys() | NEED_OTHERS.keys() | NEED_FILES | OF_SOURCES
    hashes = {name: hash_of(**{name: value}) for name, value in OTHER.items()}
    places = ("device", "stream", "cache")
    assert [hashes.pop(name) for name in places] == [hash_of()] * len(places)
    hashes |= {k: hash_of(optimizer="adamw", **{k: v}) for k, v in OF_ADAMW.items()}
    hashes |= {name: hash_of(**settings) for name, settings in NEED_OTHERS.items()}
    ours = len(OTHER) - len(places) + len(OF_ADAMW) + len(NEED_OTHERS)
    assert len({hash_of(), *hashes.values()}) == 1 + ours


def test_a_fold_is_one_of_those_that_the_holdout_makes():
    assert Run(holdout=0.2, fold=5).resolve().fold == 5
    for settings in ({"fold": 1}, {"holdout": 0.2, "fold": 6}, {"holdout": 0.5, "fold": 3}):
        with pytest.raises(ValueError, match="fold="):
            Run(**settings).resolve()


@pytest.mark.parametrize("dataset", ["digits", "mnist", "cifar100"])
@pytest.mark.parametrize("protocol", ["paper", "authors"])
def test_what_the_protocol_would_give_may_be_given(dataset, protocol):
    run = Run(dataset=dataset, protocol=protocol)
    values = dataclasses.asdict(protocol_of(protocol, dataset))
    for name, value in values.items():
        assert dataclasses.replace(run, **{name: value}).resolve() == run.resolve(), name
    everything = dataclasses.replace(run, **values, variant=protocol, l1=0.0)
    assert everything.resolve().hash == run.resolve().hash


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"loss": "nce+rce"}, {"loss": " NCE + RCE "}),
        ({"loss": "10*nce+0.1*rce(A=-4)"}, {"loss": "10*NCE + 0.1 * Rce(A = -4)"}),
        ({"loss": "nlnl"}, {"loss": "NLNL "}),
        ({"lr": 1}, {"lr": 1.0}),
        ({"rate": 0}, {"rate": 0.0}),
        ({"rate": 0}, {"noise": "none"}),
        ({"epochs": 3}, {"epochs": 3.0}),
        ({"dataset": "CIFAR-10"}, {"dataset": "cifar10"}),
        ({"noise": "none", "rate": 0.2}, {"noise": "none", "rate": 0.6}),
        ({"dataset": "cifar10", "noise": "cifar10n-worst", "rate": 0.2},
         {"dataset": "cifar10", "noise": "cifar10n-worst"}),
        ({"device": "cpu"}, {"device": "cuda"}),
        ({"optimizer": "AdamW"}, {"optimizer": "adamw"}),
        ({"optimizer": "SGD", "schedule": "Cosine"}, {"optimizer": "sgd", "schedule": "cosine"}),
        ({"dataset": "cifar10", "crop_size": 28},
         {"dataset": "cifar10", "crop_size": 28, "crop": 0}),
        ({"dataset": "cifar100", "crop_size": 28, "crop_scale": 0.3},
         {"dataset": "cifar100", "crop_size": 28, "crop_scale": 0.3, "crop": 0, "rotate": 0.0}),
        ({"noise": "Symmetric", "rate": 0.4}, {"noise": "symmetric", "rate": 0.4}),
    ],
)  # fmt: skip
def test_one_run_in_two_ways(one, other):
    assert hash_of(**one) == hash_of(**other)


def test_numbers_of_numpy_serve():
    found = hash_of(seed=np.int64(3), rate=np.float32(0.5), epochs=np.int32(2))
    assert found == hash_of(seed=3, rate=0.5, epochs=2)


def test_a_run_is_described_without_torch():
    code = (
        "import sys, noiseproof.train as t; r = t.Run(loss='nce', rate=0.2); str(r); "
        "r = r.resolve(); r.hash; r.lr_at(1); str(r); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rate": 1.1}, "rate goes from 0 to 1; it was 1.1"),
        ({"rate": -0.1}, "rate goes from 0 to 1; it was -0.1"),
        ({"rate": float("nan")}, "rate goes from 0 to 1; it was nan"),
        ({"lr": -1}, "lr goes from 0 to 1e+38; it was -1"),
        ({"lr": float("inf")}, "lr goes from 0 to 1e+38; it was inf"),
        ({"lr": 1e300}, "lr goes from 0 to 1e+38; it was 1e+300"),
        ({"epochs": 0}, "epochs goes from 1 to inf; it was 0"),
        ({"epochs": 1.5}, "epochs must be a whole number; it was 1.5"),
        ({"epochs": float("inf")}, "epochs must be a whole number; it was inf"),
        ({"batch_size": 1}, "batch_size goes from 2 to inf; it was 1"),
        ({"seed": -1}, "seed goes from 0 to"),
        ({"seed": 2**32}, "seed goes from 0 to"),
        ({"momentum": 1.5}, "momentum goes from 0 to 1"),
        ({"rotate": 181}, "rotate goes from 0 to 180"),
        ({"crop": -1}, "crop goes from 0 to inf"),
        ({"ema": 1}, "ema must be below 1"),
        ({"label_smoothing": 1}, "label_smoothing must be below 1"),
        ({"label_smoothing": -0.1}, "label_smoothing goes from 0 to 1; it was -0.1"),
        ({"mixup": -1}, "mixup goes from 0 to 1e+06; it was -1"),
        ({"warmup": -1}, "warmup goes from 0 to 1e+38; it was -1"),
        ({"optimizer": "adamw", "beta1": 1}, "beta1 must be below 1"),
        ({"optimizer": "adamw", "beta2": 1.1}, "beta2 goes from 0 to 1; it was 1.1"),
        ({"optimizer": "adamw", "eps": 0}, "eps must be above 0"),
        ({"optimizer": "adam"}, "optimizer is one of sgd, adamw; it was 'adam'"),
        ({"optimizer": "sgd", "beta1": 0.9}, "beta1 is a setting of adamw, and the optimizer is"),
        ({"optimizer": "adamw", "momentum": 0.9}, "momentum is a setting of sgd, and the"),
        ({"optimizer": "adamw", "nesterov": False}, "nesterov is a setting of sgd, and the"),
        ({"decay_on": "some"}, "decay_on is one of all, matrices; it was 'some'"),
        ({"schedule_by": "batch"}, "schedule_by is one of epoch, step; it was 'batch'"),
        ({"holdout": 1.0}, "holdout must be below 1"),
        ({"schedule": "cosin"}, "schedule is one of cosine, exponential, constant; it was 'cosin'"),
        ({"precision": "fp16"}, "precision is one of auto, bf16, tf32, fp32; it was 'fp16'"),
        ({"protocol": "mine"}, "protocol is one of paper, authors; it was 'mine'"),
        ({"variant": "mine"}, "variant is one of paper, authors; it was 'mine'"),
    ],
)
def test_what_is_out_of_range_is_named(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Run(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"crop": 4, "crop_size": 28},
         "crop=4 pads images and crop_size=28 cuts a part out of them: give one of them"),
        ({"dataset": "webvision", "crop": 4},
         "crop=4 pads images and crop_size=224, which webvision has by default, cuts a part out of "
         "them: leave crop out, or give crop_size=0"),
        ({"dataset": "webvision", "rotate": 5},
         "crop_scale=0.08, which webvision has by default, cuts parts out of images, and these"),
        ({"crop_scale": 0.5}, "crop_scale=0.5 says how large a part of an image is brought to"),
        ({"crop_scale": 0.5, "crop_size": 6, "rotate": 5}, "leave rotate out, or give crop_scale"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_with_images_is_said_before_they_are_read(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Run(**settings).resolve()


def test_what_is_refused_of_a_protocol_can_be_switched_off():
    run = Run(dataset="webvision", crop=4, crop_size=0).resolve()
    assert (run.crop, run.crop_size, run.crop_scale) == (4, 0, 0.0)


@pytest.mark.parametrize("name", ["crop", "crop_size", "flip", "rotate", "jitter"])
def test_what_is_for_images_is_refused_of_other_data(name):
    rows = DataSummary("features", (12,), 100, 3, tested=False)
    images = DataSummary("features", (3, 16, 16), 100, 3, tested=False)  # of floats
    value = {"flip": True, "jitter": 0.5, "rotate": 5.0}.get(name, 8)
    with pytest.raises(ValueError, match=f"{name}={value} is for images, and rows has none"):
        Run(**{name: value}).resolve(overrides={"data": "rows"}, data=rows)
    found = Run(**{name: value}).resolve(overrides={"data": "images"}, data=images)
    assert getattr(found, name) == value
    assert (
        not Run(**{name: 0 if name != "flip" else False})
        .resolve(overrides={"data": "rows"}, data=rows)
        .flip
    )


def test_settings_of_another_optimizer_than_the_protocol_s_are_refused():
    with pytest.raises(ValueError, match="beta1 is a setting of adamw, and the optimizer is sgd"):
        Run(beta1=0.9).resolve()


def test_every_number_of_a_protocol_has_a_range():
    for f in dataclasses.fields(Protocol):
        if f.type in ("int", "float"):
            with pytest.raises(ValueError, match=f"^{f.name} goes from"):
                Run(**{f.name: -1})


def test_a_run_as_a_line():
    assert str(Run(loss="nce", seed=2)) == "digits, symmetric 0.4, nce, seed 2"
    assert str(Run(noise="none")) == "digits, clean, nce+rce, seed 0"
    assert str(Run(loss="rce + nce").resolve()) == "digits, symmetric 0.4, NCE+RCE, seed 0"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rate": "0.4"}, "rate must be a number; it was '0.4'"),
        ({"epochs": True}, "epochs must be a number; it was True"),
        ({"flip": "no"}, "flip is true or false; it was 'no'"),
        ({"loss": 3}, r"loss must be a text; it was 3; a loss of your own goes to fit\(run, loss="),
        ({"model": 3}, r"it was 3; a network of your own goes to fit\(run, network="),
        ({"model": nn.Sequential(nn.Flatten())}, r"^model must be a text; it was Sequential\( .0"),
        ({"optimizer": "Adam"}, r"one of sgd, adamw; it was 'Adam' \(did you mean 'adamw'\?\)"),
        ({"seed": -1}, "seed goes from 0 to 4294967295; it was -1"),
        ({"noise": "symetric"}, r"noise is one of none, .*'symetric' \(did you mean 'symmetric'"),
    ],
)
def test_values_of_another_kind_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        Run(**settings)


def test_a_device_of_torch_serves():
    assert Run(device=torch.device("cuda:1")) == Run(device="cuda:1")


@pytest.mark.parametrize("name", ["device", "test", "label", "text", "weights", "cache"])
def test_none_is_the_default_of_what_need_not_be_named(name):
    assert Run(**{name: None}) == Run()
    assert getattr(Run(**{name: None}), name) == getattr(Run(), name)
