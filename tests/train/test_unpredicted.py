"""Classes that the network has given up: a column of the history, a warning, a note."""

from __future__ import annotations

import json
import math
import warnings

import pytest
import torch
from torch import Tensor, nn

from noiseproof import data, results
from noiseproof.bench._work import WorkerConfig, work
from noiseproof.train import Run, UnpredictedClassWarning, _job, fit, fit_many
from noiseproof.train._measure import PATIENCE, gave_classes_up, unpredicted
from noiseproof.train._trainer import RunTrainer

from .subjects import StopError, own_data, stop_after, tiny

EPOCHS = PATIENCE + 4


class Channels(nn.Module):
    """Predicts the brightest channel, but for class 2, which it never predicts."""

    def __init__(self, outputs: int = 3) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.outputs = outputs

    def forward(self, x: Tensor) -> Tensor:
        blind = torch.tensor([0.0, 0.0, -100.0], device=x.device)
        logits = self.scale * x.mean((2, 3)) + blind
        more = self.outputs - 3
        return nn.functional.pad(logits, (0, more), value=-200.0) if more > 0 else logits


def blind_run(**more):
    """Settings under which `Channels` stays what it is."""
    return {
        "run": Run(epochs=EPOCHS, lr=1e-6, weight_decay=0.0, loss="mae", device="cpu"),
        "data": named(), "network": Channels(), "name": "blind", **more,
    }  # fmt: skip


def named() -> data.Dataset:
    own = own_data()
    return data.from_arrays(
        own.train.images, own.train.labels, own.test.images, own.test.labels,
        classes=["red", "green", "blue"],
    )  # fmt: skip


@pytest.fixture
def heard():
    """The warnings of a test, in a list."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield found


def test_classes_without_a_prediction():
    expected = torch.tensor([True, True, False, True])
    logits = torch.eye(4)[[0, 0, 3]]
    assert unpredicted(logits, expected).tolist() == [False, True, False, False]
    wide = torch.eye(7)[[6, 1, 3]]  # a network with more outputs than there are classes
    assert unpredicted(wide, expected).tolist() == [True, False, False, False]
    assert unpredicted(torch.eye(2), expected).tolist() == [False, False, False, True]
    assert unpredicted(torch.zeros(0, 4), expected & False).tolist() == [False] * 4


def history(counts: list[float], accuracy: float = 0.5) -> list[dict[str, float]]:
    return [{"unpredicted_classes": c, "test_accuracy": accuracy} for c in counts]


@pytest.mark.parametrize(
    ("counts", "epochs", "accuracy", "given_up"),
    [
        ([1] * 10, 20, 0.5, True),
        ([3] * 5 + [1] * 5, 20, 0.5, True),
        ([0] * 40 + [1] * 10, 100, 0.5, True),
        ([1] * 9, 9, 0.5, False),  # too few epochs
        ([1] * 10, 21, 0.5, False),  # before half of them
        ([1] * 60, 120, 0.5, True),
        ([1] * 5 + [0] + [1] * 9, 20, 0.5, False),
        ([1] * 11, 20, 0.5, False),  # said an epoch ago
        ([1] * 10 + [0] + [1] * 10, 20, 0.5, False),  # said eleven epochs ago
        ([1] * 10, 20, 0.1, False),  # has learned nothing yet
        ([1] * 10, 20, math.nan, False),
        ([math.nan] * 5 + [1] * 5, 20, 0.5, False),  # begun by a version that did not measure it
    ],
)
def test_when_classes_are_given_up(counts, epochs, accuracy, given_up):
    assert gave_classes_up(history(counts, accuracy), epochs, 10) == given_up


def test_a_history_without_the_column():
    assert not gave_classes_up([{"test_accuracy": 0.9}] * 30, 40, 10)


def test_a_run_that_gives_a_class_up_says_so_once(tmp_path, heard):
    said_at = []
    result = fit(**blind_run(out=tmp_path), on_epoch=lambda p: said_at.append(len(heard)))
    assert result.accuracy == pytest.approx(2 / 3)
    assert [row["unpredicted_classes"] for row in result.history] == [1] * EPOCHS
    assert said_at == [0] * (PATIENCE - 1) + [1] * (EPOCHS - PATIENCE + 1)
    (warning,) = heard
    assert warning.category is UnpredictedClassWarning
    assert warning.filename == __file__  # the user's line
    text = str(warning.message)
    assert "'blue' of 3" in text
    assert "class_weights" in text
    (record,) = results.read(tmp_path).records
    assert record.about["notes"] == [text]
    assert record.column("unpredicted_classes") == [1] * EPOCHS


@pytest.mark.parametrize("stops", [(3,), (PATIENCE - 1,), (PATIENCE,), (PATIENCE + 2,), (2, 12)])
def test_a_resumed_run_says_it_at_the_same_epoch(stops, tmp_path, heard):
    for epoch in stops:
        with pytest.raises(StopError):
            fit(**blind_run(out=tmp_path), on_epoch=stop_after(epoch))
    result = fit(**blind_run(out=tmp_path))
    (warning,) = heard
    assert f"epoch {PATIENCE})" in str(warning.message)
    note = json.loads((result.folder / "run.json").read_text())["notes"]
    assert note == [str(warning.message)]


def test_classes_with_few_test_images_are_not_expected(heard):
    own = named()
    few = torch.cat(
        [torch.nonzero(own.test.labels == k).flatten()[:n] for k, n in ((0, 9), (2, 4))]
    )
    content = data.from_arrays(
        own.train.images, own.train.labels, own.test.images[few], own.test.labels[few],
        classes=own.classes,
    )  # fmt: skip
    result = fit(**blind_run(data=content))
    assert result.history[-1]["unpredicted_classes"] == 0
    assert not heard


def test_a_network_with_more_outputs_than_classes(heard):
    result = fit(**blind_run(network=Channels(outputs=6)))
    assert result.history[-1]["unpredicted_classes"] == 1
    assert len(heard) == 1


def test_a_run_begun_by_a_version_that_measured_less(tmp_path, monkeypatch):
    run, measure = tiny(epochs=4), RunTrainer.measure
    whole = fit(run)

    def less(trainer: RunTrainer) -> dict[str, Tensor]:
        row = measure(trainer)
        del row["unpredicted_classes"]
        return row

    monkeypatch.setattr(RunTrainer, "measure", less)
    with pytest.raises(StopError):
        fit(run, out=tmp_path, on_epoch=stop_after(2))
    monkeypatch.undo()
    resumed = fit(run, out=tmp_path)
    assert list(resumed.history[0]) == list(whole.history[0])
    (record,) = results.read(tmp_path).records
    assert [math.isnan(v) for v in record.column("unpredicted_classes")] == [True] * 2 + [False] * 2
    assert resumed.accuracy == whole.accuracy


def test_a_bench_keeps_the_note_and_says_nothing(tmp_path, monkeypatch, heard):
    monkeypatch.setattr(_job, "gave_classes_up", lambda history, *_: len(history) == 1)
    runs = [tiny(loss=loss).resolve() for loss in ("ce", "mae")]
    work(runs, WorkerConfig(tmp_path), lambda event: None)
    assert not heard
    notes = [record.about["notes"] for record in results.read(tmp_path).records]
    assert len(notes) == 2
    assert all("predicted for no test sample" in note for (note,) in notes)
    fit_many(runs[:1])
    assert len(heard) == 1


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["ce", "nce+rce", "mae"])
def test_ordinary_runs_of_digits_give_nothing_up(loss, heard):
    """Those of ``bench quick`` at its higher rate."""
    run = Run(rate=0.6, loss=loss, epochs=20, batch_size=128, lr=0.04, device="cpu")
    assert fit(run).history[-1]["unpredicted_classes"] == 0
    assert not heard
