"""Data of one's own, trained on: from the command line, from Python, in a bench."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from noiseproof import bench, catalogue, cli, data, results, train
from noiseproof._errors import UsageError
from noiseproof.runs import Run
from noiseproof.train import fit

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
    with pytest.raises(UsageError, match="crop, flip and rotate are for images"):
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
    ],
)
def test_what_is_refused(tables, settings, message):
    with pytest.raises(UsageError, match=message):
        Run(**settings).resolve()


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


def test_the_same_data_in_a_grid_of_a_file(tables, command, capsys):
    grid = tables / "grid.toml"
    grid.write_text(
        'dataset = "csv:train.csv"\nignore = ["real"]\nloss = ["ce", "nce"]\nseed = [0, 1]\n'
    )
    assert len(bench.read_bench(grid)) == 4
    with pytest.raises(SystemExit):
        command("bench", "quick", "--text", "x")
    assert "--text is for a grid of flags, and quick is a bench" in capsys.readouterr().err
