"""Several runs in one call: each as it is alone, in the order in which they were given."""

from __future__ import annotations

import contextlib

import pytest
import torch

from noiseproof.train import Run, fit, fit_many
from noiseproof.train._pack import Pack, set_tf32
from noiseproof.train._setup import Setup

from .subjects import (
    COLUMNS,
    StopError,
    but_seconds,
    flat_net,
    run_folders,
    same,
    stop_after,
    tiny,
    weights,
)

RUNS = [
    tiny(loss="nce"),
    tiny(loss="ce", seed=1),
    tiny(loss="ce", batch_size=128),
    tiny(loss="nlnl", epochs=3),
    tiny(loss="mae", noise="none", ema=0.9),
]


@pytest.mark.parametrize("pack", [None, 2, 5])
def test_many_are_what_each_is_alone(pack):
    seen = []
    results = fit_many(RUNS, pack=pack, on_epoch=lambda p: seen.append((p.run, p.epoch)))
    assert [r.run for r in results] == [run.resolve() for run in RUNS]
    for run, result in zip(RUNS, results, strict=True):
        alone = fit(run)
        assert but_seconds(result.history) == but_seconds(alone.history)
        assert same(weights(result.network), weights(alone.network))
        assert [e for r, e in seen if r == run.resolve()] == list(range(1, run.epochs + 1))


def test_many_and_one_share_their_folders(tmp_path):
    one = fit(RUNS[1], out=tmp_path)
    seen = []
    results = fit_many(RUNS[:2], out=tmp_path, on_epoch=seen.append)
    assert {p.run for p in seen} == {RUNS[0].resolve()}
    assert [r.run for r in results] == [run.resolve() for run in RUNS[:2]]
    assert results[1].folder == one.folder
    assert len(run_folders(tmp_path)) == 2


def test_none_and_an_iterator():
    assert fit_many([]) == []
    assert len(fit_many(iter(RUNS[:1]))) == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="there a step can be captured")
def test_what_cannot_be_is_refused():
    for settings, message in (
        ({"pack": 0}, "pack is how many runs are trained side by side, from 1; it was 0"),
        ({"graph": True}, "captured as a CUDA graph on a GPU; leave out graph=True"),
        ({"compiled": True}, "compiled=True is for steps that are captured"),
    ):
        with pytest.raises(ValueError, match=message):
            fit_many(RUNS[:1], **settings)


def test_one_that_diverges_does_not_stop_the_others(tmp_path):
    runs = [tiny(loss="ce"), tiny(loss="ce", lr=1e30, clip=0.0), tiny(loss="nce")]
    errors = []
    for out in (tmp_path, tmp_path, None):  # trained, read again, trained in one pack
        results = fit_many(runs, out=out, pack=None if out else 3)
        assert [r.error is None for r in results] == [True, False, True]
        assert [len(r.history) for r in results] == [2, 0, 2]
        errors.append(results[1].error)
        assert results[1].accuracy != results[1].accuracy
        assert results[2].accuracy == pytest.approx(fit(runs[2]).accuracy, abs=1e-6)
    assert len(set(errors)) == 1
    assert errors[0].startswith("the loss became nan in epoch 1, step ")


def test_each_starts_from_the_network_that_was_given():
    network = flat_net()
    before = weights(network)
    results = fit_many([tiny(), tiny(seed=1)], overrides={"network": network})
    assert same(before, weights(network))
    assert len({id(r.network) for r in results}) == 2
    alone = fit(tiny(seed=1), network=flat_net())
    assert but_seconds(alone.history) == but_seconds(results[1].history)


def test_columns_are_there_where_they_are_asked_for():
    plain, average, both = fit_many([tiny(), tiny(ema=0.9), tiny(ema=0.9, holdout=0.1)])
    assert list(plain.history[0]) == COLUMNS
    extra = [c for c in both.history[0] if c not in COLUMNS]
    assert extra == ["validation_accuracy", "test_accuracy_ema", "validation_accuracy_ema"]
    assert set(average.history[0]) == {*COLUMNS, "test_accuracy_ema"}


def test_runs_taken_up_at_different_epochs_meet(tmp_path):
    runs = [tiny(epochs=4, seed=s) for s in range(3)]
    with pytest.raises(StopError):
        fit(runs[1], out=tmp_path, on_epoch=stop_after(2))
    order = []
    results = fit_many(
        runs, out=tmp_path, pack=3, on_epoch=lambda p: order.append((p.run.seed, p.epoch))
    )
    assert order == [
        (0, 1), (2, 1), (0, 2), (2, 2), (0, 3), (1, 3), (2, 3), (0, 4), (1, 4), (2, 4),
    ]  # fmt: skip
    for run, result in zip(runs, results, strict=True):
        assert but_seconds(result.history) == but_seconds(fit(run).history)


def test_a_pack_is_of_one_size():
    trainers = [Setup().trainer(Run(batch_size=b, device="cpu").resolve()) for b in (32, 64)]
    with pytest.raises(ValueError, match="training sets and batches of one size"):
        Pack(trainers)


@pytest.mark.skipif(
    not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="needs torch 2.9"
)
@pytest.mark.parametrize("touched", ["none", "tf32", "ieee"])
def test_the_user_s_choice_of_tf32_is_put_back(touched):
    """Also one that was made by torch's newer switch, after which it refuses the older."""
    matmul, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn.conv
    at_first = matmul.fp32_precision
    matmul.fp32_precision = touched
    try:
        before = matmul.fp32_precision, convolutions.fp32_precision
        with contextlib.ExitStack() as stack:
            set_tf32(stack, False)
            assert (matmul.fp32_precision, convolutions.fp32_precision) == ("ieee", "ieee")
        assert (matmul.fp32_precision, convolutions.fp32_precision) == before
    finally:
        matmul.fp32_precision = at_first
