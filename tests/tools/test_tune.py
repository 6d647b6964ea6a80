"""A study of Optuna's: seeded, shared, taken up again, and honest of its best."""

from __future__ import annotations

import sys

import filelock
import pytest

from noiseproof import MissingExtraError, UsageError, tools
from noiseproof.runs import Run
from noiseproof.tools._space import Space, Trial, _terms
from noiseproof.tools._tune import Tuning, _try

from .test_choose import SETTINGS, small

optuna = pytest.importorskip("optuna")
LOSSES = ["ce", "nce + rce"]


def tune(trials: int, **options):
    return tools.tune(small(), LOSSES, trials=trials, **SETTINGS, **options)


@pytest.mark.slow
def test_a_study(tmp_path):
    events = []
    found = tune(4, out=tmp_path, watch=events.append, prune=False)
    assert [t.number for t in found.trials] == [0, 1, 2, 3]
    assert all(t.state == "complete" for t in found.trials)
    assert found.best.accuracy == max(t.accuracy for t in found.trials)
    assert (found.run.loss, found.run.lr) == (found.best.loss, found.best.lr)
    assert found.num_held_out == 36
    assert sum(e.trial is None for e in events) == 4 * 3
    assert [e.trial.number for e in events if e.trial] == [0, 1, 2, 3]
    assert (tmp_path / "tune.db").exists()
    first = found.trials[0]
    assert first.loss == "1*nce + 0.1*rce"  # what is recommended, as it suits the data
    assert (first.lr, first.weight_decay) == (0.001, 0.01)
    again = tune(4, out=tmp_path, watch=events.append)
    assert again.trials == found.trials
    assert len(events) == 4 * 4  # nothing was trained


@pytest.mark.slow
def test_it_goes_on_as_if_it_had_never_stopped(tmp_path):
    whole = tune(4, prune=False)
    tune(2, out=tmp_path, prune=False)
    resumed = tune(4, out=tmp_path, prune=False)
    assert resumed.trials == whole.trials
    assert tune(3, seed=1, prune=False).trials[1:] != whole.trials[1:3]


class StopError(Exception):
    pass


def test_a_trial_that_is_interrupted_does_not_count(tmp_path):
    def stop(event):
        if event.number == 1 and event.epoch == 2:
            raise StopError

    with pytest.raises(StopError):
        tune(3, out=tmp_path, watch=stop, prune=False)
    found = tune(3, out=tmp_path, prune=False)
    assert [t.number for t in found.trials] == [0, 2, 3]


def test_trials_behind_the_median_are_pruned():
    space = Space.of(small(), ["ce"], SETTINGS)
    study = optuna.create_study(direction="maximize", study_name=space.name)
    for _ in range(6):
        trial = study.ask()
        space.suggest(trial)
        for epoch in (1, 2, 3):
            trial.report(1.0, epoch)  # better than any run
        study.tell(trial, 1.0)
    study.pruner = optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=2)
    events = []
    _try(optuna, study, space, 0, None, events.append)
    assert events[-1].trial.state == "pruned"
    assert len(events) == 3  # two epochs and the end
    assert 0 < events[-1].trial.accuracy < 1


def test_what_is_searched():
    assert _terms("nce + rce") == ("nce", "rce")
    assert _terms("NCE+MAE") == ("nce", "mae")
    assert _terms("gce") is None
    assert _terms("1*nce + 1*rce") is None
    assert _terms("jal-ce") is None
    with pytest.raises(UsageError):
        _terms("nce + rcee")
    names = {Space.of(small(), LOSSES, SETTINGS).name, Space.of(small(), ["ce"], SETTINGS).name}
    names |= {Space.of(Run(**SETTINGS), LOSSES, {}).name}
    assert len(names) == 3
    space = Space.of("digits", ["gce", "mae"], {})
    assert space.first == {
        "lr": 0.01,
        "weight_decay": 0.005,
    }  # the recommended loss is not among them


def test_the_best_of_many_is_said_to_be_too_high():
    trials = tuple(Trial(i, "ce", 0.1, 0.1, 0.5 + i / 1000, "complete") for i in range(20))
    sure = Tuning(Run(), trials, 100).sure
    assert "standard error 5.0 points" in sure
    assert "largest of 20" in sure
    assert "up to 9.3 points" in sure  # 1.87 standard errors: the mean of the largest of 20
    assert "begun with have 50.00 %" in sure
    one = Tuning(Run(), trials[:1], 100).sure
    assert "too high" not in one


def test_mistakes(monkeypatch):
    with pytest.raises(UsageError, match="trials is a whole number"):
        tune(0)
    with pytest.raises(UsageError, match="give holdout above 0"):
        tools.tune("digits", holdout=0.0)
    with pytest.raises(UsageError, match="no epoch can be chosen by it"):
        tools.tune("digits", choose_epoch=True)
    with pytest.raises(UsageError, match="auto leaves nothing to search"):
        tools.tune("digits", ["ce", "auto"])
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r'pip install "noiseproof\[tune\]"'):
        tune(1)


def test_a_setting_that_diverges_is_no_end():
    space = {"lr": 1e30, "weight_decay": 0.01, "optimizer": "sgd", "clip": 0.0}
    with pytest.raises(UsageError, match="no trial came to its end"):
        tools.tune(small(), ["ce"], trials=2, **SETTINGS | space)


def test_picture(tmp_path):
    pytest.importorskip("vl_convert")
    states = ("complete", "pruned", "fail", "complete")
    trials = tuple(
        Trial(i, "0.5*nce + 2e-05*rce", 0.1, 0.1, 0.5, state) for i, state in enumerate(states)
    )
    Tuning(Run(), trials, 100).draw(tmp_path / "study.svg")
    svg = (tmp_path / "study.svg").read_text()
    assert "nce + rce" in svg
    assert "learning rate" in svg


@pytest.mark.slow
def test_one_process_at_a_time_begins_a_study(tmp_path, monkeypatch):
    """Of two that make the tables of a new file at once, one would fail."""
    create, tried = optuna.create_study, []

    def create_study(**options):
        lock = filelock.FileLock(tmp_path / ".locks" / "tune.db")
        with pytest.raises((filelock.Timeout, RuntimeError)):  # as another process would find it
            lock.acquire(timeout=0)
        tried.append(options["study_name"])
        return create(**options)

    monkeypatch.setattr(optuna, "create_study", create_study)
    tune(1, out=tmp_path)
    assert len(tried) == 1
    filelock.FileLock(tmp_path / ".locks" / "tune.db").acquire(timeout=0).lock.release()
