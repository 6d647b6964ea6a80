"""Out-of-sample probabilities, and the votes of one run."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch

from noiseproof import UsageError, data, noise, results
from noiseproof.tools import Votes, audit, out_of_sample
from noiseproof.tools._folds import fold_runs
from noiseproof.train import Run, fit, fit_many
from noiseproof.train._setup import split

FAST = Run(rate=0.4, epochs=2, device="cpu", batch_size=128)


def test_folds_share_out_every_sample_and_class():
    labels = torch.arange(1003) % 4
    parts = [split(labels, 1 / 5, 0, stratified=True, fold=k + 1) for k in range(5)]
    held = torch.cat([held for _, held in parts])
    assert held.sort().values.tolist() == list(range(1003))
    for kept, held in parts:
        assert sorted(kept.tolist() + held.tolist()) == list(range(1003))
        counts = torch.bincount(labels[held])
        assert int(counts.max() - counts.min()) <= 2
    first = split(labels, 1 / 5, 0, stratified=True)[1]
    assert torch.equal(first, parts[0][1])  # the usual holdout is the first fold
    assert not torch.equal(split(labels, 1 / 5, 1, stratified=True, fold=1)[1], first)


@pytest.mark.parametrize("folds", [2, 3, 7, 10])
def test_no_sample_is_lost_whatever_the_number_of_folds(folds):
    labels = torch.arange(101) % 3
    held = [split(labels, 1 / folds, 3, stratified=True, fold=k + 1)[1] for k in range(folds)]
    assert torch.cat(held).sort().values.tolist() == list(range(101))


@pytest.mark.slow
def test_a_network_did_not_see_what_it_judges(tmp_path):
    """Each fold's probabilities are those of the run that held it out."""
    found = out_of_sample(run=FAST, folds=3, out=tmp_path)
    assert found.probabilities.sum(1) == pytest.approx(np.ones(1437), abs=1e-4)
    assert sorted(np.bincount(found.fold).tolist()) == [0, 479, 479, 479]
    digits = data.load("digits")
    labels = noise.symmetric(digits.train.labels, 0.4, num_classes=10, seed=0)
    assert found.labels.tolist() == labels.labels.tolist()
    assert found.truth.tolist() == digits.train.labels.tolist()
    run = fold_runs(FAST, 3)[1]
    alone = fit(run)
    held = torch.from_numpy(np.flatnonzero(found.fold == 2))
    kept = torch.from_numpy(np.flatnonzero(found.fold != 2))
    images, scale = digits.train.images, 255
    mean, std = digits.mean, digits.std
    assert not digits.learnt
    x = (images[held].float() / scale - torch.tensor(mean)) / torch.tensor(std)
    with torch.no_grad():
        p = alone.network(x).softmax(1).numpy()
    assert p == pytest.approx(found.probabilities[held], abs=1e-5)
    assert len(kept) == 958


@pytest.mark.slow
def test_a_stopped_one_goes_on(tmp_path, monkeypatch):
    out_of_sample(run=FAST, folds=2, out=tmp_path)
    seen = []
    again = out_of_sample(run=FAST, folds=2, out=tmp_path, watch=lambda *e: seen.append(e))
    assert seen == []  # nothing was trained
    fresh = out_of_sample(run=FAST, folds=2)
    assert np.array_equal(again.probabilities, fresh.probabilities)

    class StopError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        assert total == 4
        if done == 3:
            raise StopError

    half = tmp_path / "half"
    with pytest.raises(StopError):
        out_of_sample(run=FAST, folds=2, out=half, watch=stop)
    rest = []
    went_on = out_of_sample(run=FAST, folds=2, out=half, watch=lambda *e: rest.append(e))
    assert len(rest) == 1
    assert np.array_equal(went_on.probabilities, fresh.probabilities)


@pytest.mark.slow
def test_workers_count_what_was_done_before(tmp_path):
    out_of_sample(run=FAST, folds=2, out=tmp_path)
    shutil.rmtree(next(path for path in sorted(tmp_path.iterdir()) if (path / "run.json").exists()))
    seen = []
    out_of_sample(run=FAST, folds=2, out=tmp_path, workers=2, watch=lambda *e: seen.append(e))
    assert seen == [(3, 4), (4, 4)]


@pytest.mark.slow
def test_data_and_labels_of_ones_own(tmp_path):
    drawn = np.random.default_rng(0)
    truth = np.arange(150) % 3
    x = (np.eye(3)[truth] * 4 + drawn.normal(size=(150, 3))).astype(np.float32)
    own = data.from_arrays(x, truth, classes=["a", "b", "c"])
    given = noise.symmetric(truth, 0.2, num_classes=3, seed=0).labels
    run = Run(epochs=20, device="cpu")
    found = out_of_sample(own, run, labels=given, folds=3, out=tmp_path)
    assert found.classes == ("a", "b", "c")
    assert found.labels.tolist() == given.tolist()
    wrong = given != truth
    report = audit(found.probabilities, found.labels)
    assert wrong[report.ranking[: wrong.sum()]].mean() > 0.7
    again = out_of_sample(own, run, labels=given, folds=3, out=tmp_path)
    assert np.array_equal(again.probabilities, found.probabilities)
    unlabelled = out_of_sample(own, run, folds=2)
    assert unlabelled.truth is None  # nobody knows
    auto = out_of_sample(own, Run(epochs=4, loss="auto", device="cpu"), folds=2, out=tmp_path / "a")
    assert auto.probabilities.shape == (150, 3)
    kept = [r.run for r in results.read(tmp_path / "a").records]
    assert [(r.method, r.choose_epoch) for r in kept] == [("auto", False)] * 2


def test_folds_under_another_default_type():
    expected = out_of_sample(run=FAST, folds=2).probabilities
    torch.set_default_dtype(torch.float64)
    try:
        found = out_of_sample(run=FAST, folds=2).probabilities
    finally:
        torch.set_default_dtype(torch.float32)
    np.testing.assert_array_equal(found, expected)


def test_mistakes_are_named():
    with pytest.raises(UsageError, match="folds"):
        out_of_sample(run=FAST, folds=1)
    with pytest.raises(UsageError, match="holdout"):
        out_of_sample(run=Run(holdout=0.2), folds=2)
    with pytest.raises(UsageError, match="no epoch may be chosen by it"):
        out_of_sample(run=Run(choose_epoch=True), folds=2)
    few = data.from_arrays(np.eye(4, dtype=np.float32), [0, 1, 0, 1])
    with pytest.raises(UsageError, match="too few"):
        out_of_sample(few, Run(device="cpu"), folds=3)
    with pytest.raises(UsageError, match="3 noisy labels were given for 4 training samples"):
        out_of_sample(few, Run(device="cpu"), folds=2, labels=[0, 1, 0])
    with pytest.raises(TypeError, match=r"labels must be integers.*give labels\.astype\(int\)"):
        out_of_sample(few, Run(device="cpu"), folds=2, labels=few.train.labels.numpy() / 2)
    with pytest.raises(UsageError, match="no votes yet"):
        Votes().probabilities  # noqa: B018


@pytest.mark.slow
def test_votes_count_what_each_epoch_predicted():
    votes, seen = Votes(), []

    def on_epoch(progress):
        votes(progress)
        seen.append(progress.predicted.clone())

    fit(FAST, on_epoch=on_epoch)
    expected = np.zeros((1437, 10))
    for predicted in seen:
        expected[np.arange(1437), predicted] += 1
    assert np.array_equal(votes.counts, expected)
    assert votes.probabilities.sum(1) == pytest.approx(np.ones(1437), abs=1e-5)
    assert votes.index.tolist() == list(range(1437))
    held = Votes()
    fit(Run(rate=0.4, epochs=1, device="cpu", holdout=0.2), on_epoch=held)
    labels = noise.symmetric(data.load("digits").train.labels, 0.4, num_classes=10, seed=0).labels
    assert len(held.index) == 1150
    assert held.labels.tolist() == labels[held.index].tolist()
    with pytest.raises(UsageError, match="another run"):
        fit_many([FAST, Run(rate=0.2, epochs=1, device="cpu")], on_epoch=Votes())


@pytest.mark.slow
def test_a_real_audit_finds_most_wrong_labels():
    votes = Votes()
    fit(Run(rate=0.4, epochs=20, device="cpu"), on_epoch=votes)
    found = audit(votes.probabilities, votes.labels)
    wrong = votes.labels != data.load("digits").train.labels.numpy()
    assert wrong[found.ranking[: wrong.sum()]].mean() > 0.9
    assert found.rate == pytest.approx(0.4, abs=0.08)
