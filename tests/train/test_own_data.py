"""Data of one's own, trained on: from the command line, from Python, in a bench."""

from __future__ import annotations

import csv
import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from noiseproof import bench, catalogue, cli, data, results, train
from noiseproof._errors import UsageError
from noiseproof.bench._worker import _warn
from noiseproof.runs import Run
from noiseproof.train import fit
from noiseproof.train._job import Job
from noiseproof.train._setup import Setup

from .subjects import StopError

CLASSES = ("ant", "bee", "cow", "dog")


def blobs(n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, their true classes, and labels of which two in five are wrong."""
    rng = np.random.default_rng(seed)
    centres = 3 * np.random.default_rng(7).normal(size=(4, 6))
    true = rng.integers(0, 4, n)
    given = np.where(rng.random(n) < 0.4, (true + rng.integers(1, 4, n)) % 4, true)
    return (centres[true] + rng.normal(size=(n, 6))).astype(np.float32), true, given


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, seed in (("train", 0), ("test", 1)):
        x, true, given = blobs(seed=seed)
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*"abcdef", "label", "real"])
            for row, t, g in zip(x.tolist(), true, given, strict=True):
                writer.writerow([*row, CLASSES[g], CLASSES[t]])
    return tmp_path


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch):
    """Run a command as a user types it; one that fails ends the test."""

    def run(*arguments: object) -> None:
        monkeypatch.setattr(sys, "argv", ["noiseproof", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "120")
        cli.main()

    return run


def only(folder: Path) -> results.Record:
    (record,) = results.read(folder).records
    return record


def test_a_table_with_wrong_labels_by_one_command(tables, capsys, command):
    command("train", "--dataset", "csv:train.csv", "--test", "test.csv", "--truth", "real",
            "--epochs", 20, "--device", "cpu")  # fmt: skip
    said = capsys.readouterr().out
    about = "train.csv: 600 rows of 6 numbers, 600 to test on, 4 classes; mlp, 20 epochs, adamw"
    assert about in said
    assert "csv:train.csv, labels as given, nce+rce, seed 0" in said
    record = only(tables / "runs")
    assert record.accuracy > 0.9  # of labels that are 40 % wrong
    assert record.run.noise == "given"
    assert 0.3 < record.about["noise_rate"] < 0.5
    assert record.column("wrong_accuracy")[-1] > 0.5 > record.column("memorised")[-1]
    (given, said_, number), *_ = record.about["disbelieved"]
    assert given != said_
    assert {given, said_} <= set(CLASSES)
    assert number > 10
    command("train", "--dataset", f"csv:{tables}/train.csv", "--test", tables / "test.csv",
            "--truth", "real", "--epochs", 20, "--device", "cpu")  # fmt: skip
    assert "this run has ended before" in capsys.readouterr().out  # another path, one content


def test_what_the_network_did_not_believe_is_kept_with_its_last_epoch(tables, monkeypatch):
    """A run that is killed at writing the rest does not predict its training set again."""
    run = Run(dataset="csv:train.csv", truth="real", epochs=3, device="cpu")
    whole = fit(run, out=tables / "whole")

    def killed(*_):
        raise StopError

    with monkeypatch.context() as patch:
        patch.setattr(Job, "_finish", killed)
        with pytest.raises(StopError):
            fit(run, out=tables / "runs")
    fit(run, out=tables / "runs")
    expected = only(whole.folder).about["disbelieved"]
    assert only(tables / "runs").about["disbelieved"] == expected != []


def test_without_truth_and_test_set_no_column_needs_them(tables, capsys, command):
    command("train", "--dataset", "csv:train.csv", "--ignore", "real", "--epochs", 3,
            "--device", "cpu")  # fmt: skip
    assert "accuracy on the given labels of what was held out" in capsys.readouterr().out
    record = only(tables / "runs")
    unknown = {"test_accuracy", "memorised", "wrong_accuracy", "train_accuracy_clean"}
    assert not unknown & set(record.history.columns)
    assert record.accuracy_column == "validation_accuracy"
    assert record.run.holdout == 0.2
    assert record.about["noise_rate"] is None
    assert 0 < record.accuracy < 1


def test_noise_is_added_on_request_alone(tables):
    run = Run(dataset="csv:train.csv", ignore=("real",))
    assert run.resolve().noise == "given"
    noisy = Run(dataset="csv:train.csv", ignore=("real",), noise="symmetric", rate=0.3)
    assert (noisy.resolve().noise, noisy.resolve().rate) == ("symmetric", 0.3)
    assert run.resolve().hash != noisy.resolve().hash


def test_a_changed_file_is_another_run(tables):
    before = Run(dataset="csv:train.csv", ignore=("real",)).resolve()
    with (tables / "train.csv").open("a") as file:
        file.write("0,0,0,0,0,0,ant,ant\n")
    after = Run(dataset="csv:train.csv", ignore=("real",)).resolve()
    assert before.hash != after.hash
    assert catalogue.dataset_title(after.dataset) == "train.csv"
    assert str(after).startswith("train.csv, labels as given, ")


def test_a_trained_model_reads_tables(tables, capsys, command):
    command("train", "--dataset", "csv:train.csv", "--ignore", "real", "--epochs", 10, "--device",
            "cpu", "--loss", "gce")  # fmt: skip
    folder = only(tables / "runs").source
    capsys.readouterr()
    command("predict", folder, "test.csv")
    header, *rows = csv.reader(capsys.readouterr().out.splitlines())
    assert header == ["file", "index", "class", "probability"]
    with (tables / "test.csv").open() as file:
        true = [row["real"] for row in csv.DictReader(file)]
    assert np.mean([row[2] == t for row, t in zip(rows, true, strict=True)]) > 0.8
    model = train.load(folder)
    assert model.predict(blobs(seed=1)[0]).shape == (600,)
    with pytest.raises(UsageError, match=r"inputs must be \[N, 6\], as in training"):
        model.predict(np.ones((2, 7)))


def test_texts_from_a_table(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    words = {"good": ["fine", "great", "nice"], "bad": ["poor", "awful", "dull"]}
    with (tmp_path / "t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["label", "review"])
        for at in range(300):
            label = ("good", "bad")[at % 2]
            writer.writerow([label, " ".join(rng.choice([*words[label], "film", "the"], 6))])
    command("train", "--dataset", "csv:t.csv", "--text", "review", "--epochs", 8, "--device", "cpu")
    assert "bag, 8 epochs, adamw" in capsys.readouterr().out
    record = only(tmp_path / "runs")
    assert record.accuracy > 0.9
    model = train.load(record.source)
    found = model.predict(["a great and nice film", "poor, dull"])
    assert [model.classes[k] for k in found] == ["good", "bad"]


class Transformer(nn.Module):
    """One layer of attention over token ids, for texts of a fixed length."""

    def __init__(self, num_classes: int, vocabulary: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 16, padding_idx=0)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.classes = nn.Linear(16, num_classes)

    def forward(self, tokens):
        return self.classes(self.layer(self.embed(tokens)).mean(1))


def test_a_transformer_on_token_ids(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 240)
    tokens = rng.integers(1, 30, (240, 8))
    tokens[np.arange(240), rng.integers(0, 8, 240)] = 30 + labels
    own = data.from_arrays(tokens, labels, tokens[:60], labels[:60])
    assert (own.kind, own.vocabulary) == ("tokens", 33)
    run = Run(epochs=30, device="cpu", loss="nce+rce", optimizer="adamw", lr=1e-2)
    torch.manual_seed(0)
    result = fit(run, data=own, network=Transformer(3, own.vocabulary), out=tmp_path, name="t")
    assert result.accuracy > 0.8
    back = train.load(result.folder, network=Transformer(3, own.vocabulary))
    assert float((back.predict(tokens[:60]) == torch.tensor(labels[:60])).float().mean()) > 0.8


def test_float_images_keep_their_augmentation():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(64, 3, 16, 16)).astype(np.float32)
    own = data.from_arrays(images, rng.integers(0, 2, 64))
    result = fit(Run(epochs=1, device="cpu", model="mlp", crop=2, flip=True), data=own)
    assert math.isfinite(result.history[-1]["train_loss"])
    flat = data.from_arrays(images.reshape(64, -1), rng.integers(0, 2, 64))
    with pytest.raises(UsageError, match="flip=True is for images"):
        fit(Run(epochs=1, device="cpu", flip=True), data=flat)


@pytest.mark.parametrize(
    ("kind", "shape", "samples", "model"),
    [("text", (), 10_000, "bag"), ("tokens", (9,), 100, "bag"), ("features", (9,), 100, "mlp"),
     ("features", (3, 16, 16), 100, "cnn8"), ("image", (1, 8, 8), 1000, "mlp"),
     ("image", (1, 28, 28), 1000, "cnn4"), ("image", (3, 32, 32), 50_000, "cnn8"),
     ("image", (3, 30, 20), 1000, "resnet18"), ("image", (3, 64, 64), 1000, "resnet18-imagenet")],
)  # fmt: skip
def test_network_and_length_suit_the_data(kind, shape, samples, model):
    found = catalogue.suited(kind, shape, samples)
    assert found.model == model
    assert kind in (*catalogue.NETWORKS[model].takes, "features")
    assert 10 <= found.epochs <= 120
    assert found.batch_size <= max(16, samples)


def test_a_network_for_another_kind_is_refused(tables):
    run = Run(dataset="csv:train.csv", ignore=("real",), model="cnn8", device="cpu", epochs=1)
    with pytest.raises(UsageError, match=r"cnn8 takes images .* and inputs are \[6\]; take mlp"):
        fit(run)
    run = Run(dataset="csv:train.csv", ignore=("real",), model="bag", device="cpu", epochs=1)
    with pytest.raises(UsageError, match="bag takes texts and token ids"):
        fit(run)


def test_methods_that_were_published_for_other_data_say_so(tables):
    run = Run(dataset="csv:train.csv", ignore=("real",), loss="jal-ce")
    resolved = run.resolve()
    assert resolved.loss == "nce + amse(a=30)"
    assert (resolved.l1, resolved.method) == (0.0, "JAL-CE")
    assert "its weights for CIFAR-10 are used, no L1" in run.note()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dataset": "train.csv"}, r"unknown data set 'train.csv' \(did you mean 'csv:train.csv'"),
        ({"dataset": "mnist", "label": "x"}, "label is for data of your own, and dataset is 'mni"),
        ({"dataset": "csv:"}, "'csv:' names no file"),
        ({"dataset": "csv:none.csv"}, "none.csv is not there"),
        ({"dataset": "folder:."}, "has no folders"),
        ({"dataset": "folder:.", "label": "x"}, "label names a column, and folder:. has its"),
        ({"dataset": "npz:train.csv", "text": "x"}, "text names a column of a table"),
        ({"dataset": "csv:train.csv", "momentum": 0.9, "ignore": ("real",)}, "setting of sgd"),
        ({"dataset": "csv:train.csv", "noise": "cifar10n-worst", "truth": "real"}, "of cifar10"),
        ({"dataset": "csv:train.csv", "ignore": ("real",), "rate": 0.3}, "add noise='symmetric'"),
        (
            {"dataset": "csv:train.csv", "text": "label"},
            "column 'label' has the labels, and cannot",
        ),
    ],
)
def test_what_is_refused(tables, settings, message):
    with pytest.raises(UsageError, match=message):
        Run(**settings).resolve()


@pytest.mark.slow
def test_a_bench_on_one_s_own_data(tables, capsys, command):
    arguments = ("bench", "--dataset", "csv:train.csv", "--test", "test.csv", "--truth", "real",
                 "--loss", "ce", "nce+rce", "--seeds", 0, 1, "--epochs", 3, "--name", "Mine",
                 "--workers", 2, "--device", "cpu")  # fmt: skip
    command(*arguments, "--dry-run")
    assert "Mine: 4 runs, 0 done, 4 to do" in capsys.readouterr().out
    command(*arguments)
    said = capsys.readouterr().out
    assert "4/4" in said
    command(*arguments)
    assert "Mine: 4 runs, 4 done, 0 to do" in capsys.readouterr().out
    found = results.read(tables / "runs").records
    assert {r.run.method for r in found} == {"CE", "NCE+RCE"}
    settings = json.loads((found[0].source / "run.json").read_text())["settings"]
    assert str(tables) not in json.dumps(settings)  # no path of this machine in a record
    command("report", "runs", "--out", "report.html")
    page = (tables / "report.html").read_text()
    assert "train.csv" in page
    assert "@" + settings["dataset"].partition("@")[2] not in page.partition("<script")[0]


def test_settings_of_a_grid_by_flags(tables, command, capsys):
    command("bench", "--dataset", "csv:train.csv", "--ignore", "real", "--loss", "ce", "--seeds", 0,
            "--lr", 0.01, 0.1, "--optimizer", "sgd", "--batch-size", 50, "--epochs", 1,
            "--workers", 1, "--device", "cpu")  # fmt: skip
    assert "lr 0.01" in capsys.readouterr().out
    runs = [record.run for record in results.read(tables / "runs").records]
    assert sorted(run.lr for run in runs) == [0.01, 0.1]
    assert {(run.optimizer, run.batch_size) for run in runs} == {("sgd", 50)}


def test_the_same_data_in_a_grid_of_a_file(tables, command, capsys):
    grid = tables / "grid.toml"
    grid.write_text(
        'dataset = "csv:train.csv"\nignore = ["real"]\nloss = ["ce", "nce"]\nseed = [0, 1]\n'
    )
    assert len(bench.read_bench(grid)) == 4
    with pytest.raises(SystemExit):
        command("bench", "quick", "--text", "x")
    assert "--text is for a grid of flags, and quick is a bench" in capsys.readouterr().err


# What is held out


def write(path: Path, x, **labels) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"x{i}" for i in range(x.shape[1])), *labels])
        rows = zip(x.tolist(), *labels.values(), strict=True)
        writer.writerows([*row, *more] for row, *more in rows)
    return path


@pytest.mark.parametrize("n", [129, 161, 641])
def test_no_size_of_a_set_leaves_a_batch_of_one(tmp_path, n):
    """Of 161 samples 129 are trained on, which batches of 16 leave one of."""
    x, _, given = blobs(n)
    path = write(tmp_path / "t.csv", x, label=given)
    assert len(fit(Run(dataset=f"csv:{path}", epochs=1, device="cpu")).history) == 1
    own = data.from_arrays(x, given)
    assert len(fit(Run(epochs=1, device="cpu"), data=own).history) == 1
    tested = data.from_arrays(x, given, x, given)
    assert len(fit(Run(epochs=1, device="cpu"), data=tested).history) == 1
    assert len(fit(Run(epochs=1, device="cpu", holdout=0.5), data=tested).history) == 1


def test_nor_does_what_cannot_be_read(tmp_path):
    """How many images can be read is not known when the batch size is chosen."""
    for at in range(22):
        path = tmp_path / "photos" / "ab"[at % 2] / f"{at}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (at, at, at)).save(path)
    path.write_text("no image")
    run = Run(dataset=f"folder:{tmp_path / 'photos'}", epochs=1, device="cpu", skip_unreadable=True)
    assert run.resolve().batch_size == 16
    with pytest.warns(UserWarning, match="left out what cannot be read"):
        trainer = Setup().trainer(run.resolve())
    assert (len(trainer.loader.inputs), trainer.loader.batch_size, trainer.steps) == (17, 17, 1)


def test_normalization_is_learnt_without_what_is_held_out(tmp_path):
    x, _, given = blobs(100)
    path = write(tmp_path / "t.csv", x, label=given)
    run = Run(dataset=f"csv:{path}", epochs=1, device="cpu")
    means = []
    for seed in (0, 1):
        trainer = Setup().trainer(replace(run, seed=seed).resolve())
        trained = trainer.loader.inputs.double()
        assert len(trained) == 80
        assert trainer.inputs.mean == pytest.approx(trained.mean(0).tolist())
        assert trainer.inputs.std == pytest.approx(trained.std(0, correction=0).tolist())
        means.append(trainer.inputs.mean)
    assert means[0] != means[1]
    model = train.load(fit(run, out=tmp_path / "out").folder)
    assert model.inputs.mean == pytest.approx(means[0])
    given_mean = data.from_arrays(x, given, mean=[0.0] * 6, std=[2.0] * 6)
    result = fit(run, data=given_mean, out=tmp_path / "out", name="given")
    assert train.load(result.folder).inputs.std == (2.0,) * 6


def test_true_labels_of_what_is_held_out_are_tested_on(tables, capsys, command):
    command("train", "--dataset", "csv:train.csv", "--truth", "real", "--epochs", 15,
            "--device", "cpu")  # fmt: skip
    assert "test accuracy" in capsys.readouterr().out
    record = only(tables / "runs")
    assert record.accuracy_column == "test_accuracy"
    assert record.accuracy > 0.85 > 0.75 > record.column("validation_accuracy")[-1]


def test_added_noise_leaves_the_truth_as_it_is():
    x, true, given = blobs()
    run = Run(noise="symmetric", rate=0.3, epochs=1, holdout=0.0, device="cpu")
    summary = data.from_arrays(x, given, truth=true).summary
    resolved = run.resolve(overrides={"data": "own"}, data=summary)
    trainer = Setup().trainer(resolved, data=data.from_arrays(x, given, truth=true))
    assert trainer.clean.tolist() == true.tolist()
    wrong = (trainer.loader.labels != trainer.clean).float().mean()
    assert 0.5 < wrong < 0.65  # two in five as they are given, and three in ten of all made wrong
    without = Setup().trainer(resolved, data=data.from_arrays(x, given))
    assert without.clean.tolist() == given.tolist()
    assert torch.equal(without.loader.labels, trainer.loader.labels)


@pytest.mark.parametrize(("noise", "message"), [("asymmetric", "take pairflip"),
                                                ("instance", "token ids are names")])  # fmt: skip
def test_noise_that_has_no_meaning_for_the_data(tmp_path, noise, message):
    np.savez(tmp_path / "t.npz", x=np.arange(40).reshape(20, 2), y=np.arange(20) % 2)
    run = Run(dataset=f"npz:{tmp_path / 't.npz'}", noise=noise, epochs=1, device="cpu")
    with pytest.raises(UsageError, match=message):
        fit(run)


# A bench's workers


def test_a_file_that_changed_since_the_run_was_made_is_refused(tables):
    resolved = Run(dataset="csv:train.csv", ignore=("real",), epochs=1, device="cpu").resolve()
    with (tables / "train.csv").open("a") as file:
        file.write("0,0,0,0,0,0,ant,ant\n")
    with pytest.raises(UsageError, match=r"train\.csv has changed since the run was made; start"):
        fit(resolved)


def test_runs_after_one_another_decode_the_data_once(tables, monkeypatch):
    decoded = []
    load = data.load_content
    monkeypatch.setattr(data, "load_content", lambda *a: decoded.append(a) or load(*a))
    run = Run(dataset="csv:train.csv", ignore=("real",), epochs=1, device="cpu")
    accuracies = {fit(replace(run, seed=seed)).accuracy for seed in (0, 1, 2)}
    assert len(decoded) == 1
    assert len(accuracies) > 1


def test_a_worker_warns_in_one_line(capsys):
    _warn(UserWarning("left out\n  one"), UserWarning, "somewhere.py", 12)
    assert capsys.readouterr().err == "noiseproof: warning: left out one\n"


# Predictions


def test_a_folder_of_images_is_predicted(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    for name, colour in (("cat", 30), ("dog", 220)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for at in range(8):
            Image.new("RGB", (8, 8), (colour + at,) * 3).save(f"photos/{name}/{at}.png")
    command("train", "--dataset", "folder:photos", "--epochs", 20, "--device", "cpu")
    folder = only(tmp_path / "runs").source
    capsys.readouterr()
    command("predict", folder, "photos/dog")
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["file"] for row in rows] == [f"photos/dog/{at}.png" for at in range(8)]
    assert {row["class"] for row in rows} == {"dog"}
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit):
        command("predict", folder, "empty")
    assert "empty is a folder without images" in capsys.readouterr().err


def test_a_table_to_predict_that_lacks_something(tables, capsys, command):
    command("train", "--dataset", "csv:train.csv", "--ignore", "real", "--epochs", 1, "--device",
            "cpu")  # fmt: skip
    folder = only(tables / "runs").source
    for content, message in (
        ("a,b\n1,2\n", "new.csv has no column 'c'; it has: a, b"),
        ("f,e,d,c,b,a\n1,2,3,4,5,\n1,2,3,4,5,6\n1,2,3,4,5,6\n",
         "new.csv, line 2: column 'a' is empty; mend it, or go on without such with"),
    ):  # fmt: skip
        (tables / "new.csv").write_text(content)
        with pytest.raises(SystemExit):
            command("predict", folder, "new.csv")
        assert message in capsys.readouterr().err
