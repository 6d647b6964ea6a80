"""The epoch whose weights are the product: the last, unless the best is clearly better."""

from __future__ import annotations

import json
import math
import statistics

import pytest
import torch

from noiseproof import UsageError
from noiseproof.results import read, read_examples, read_held_out, write_bundle
from noiseproof.train import fit, load
from noiseproof.train._choice import BestEpoch, clearly_better
from noiseproof.train._pack import Pack
from noiseproof.train._setup import Setup
from noiseproof.train._trainer import RunTrainer

from .subjects import StopError, but_seconds, own_data, same, stop_after, tiny, weights

OVERFITS = {  # it learns half of the wrong labels by heart, and is best long before
    "loss": "ce", "rate": 0.5, "epochs": 16, "batch_size": 64, "lr": 0.1, "schedule": "constant",
    "weight_decay": 0.0, "holdout": 0.3, "choose_epoch": True,
}  # fmt: skip


def masks(n: int, *shares: float, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.rand(n, generator=generator) < share for share in shares]


@pytest.mark.parametrize("n", [2, 3, 40, 500])
@pytest.mark.parametrize("seed", range(6))
def test_better_is_by_more_than_the_error_of_the_paired_mean(n, seed):
    one, other = masks(n, 0.6, 0.5, seed=seed)
    differences = (one.double() - other.double()).tolist()
    error = statistics.stdev(differences) / math.sqrt(n)
    assert bool(clearly_better(one, other)) == (statistics.mean(differences) > error)


def test_equals_and_a_single_sample_are_not_better_and_certainty_is():
    right, wrong = torch.ones(1, dtype=torch.bool), torch.zeros(1, dtype=torch.bool)
    assert not clearly_better(wrong, wrong)
    assert not clearly_better(wrong, right)
    assert bool(clearly_better(right.expand(5), wrong.expand(5)))  # all differ alike: no error
    one, other = torch.tensor([1, 1, 0, 0]).bool(), torch.tensor([0, 0, 1, 1]).bool()
    assert not clearly_better(one, other)


def test_the_best_epoch_is_kept_whatever_comes():
    shares = [0.2, 0.5, 0.45, 0.52, 0.5, 0.3, 0.1, 0.9]
    correct = masks(300, *shares)
    best = BestEpoch(torch.zeros(3), {"count": torch.tensor(0)}, 300)
    for i, now in enumerate(correct):
        epoch = torch.tensor(i + 1)
        chosen = best.offer(epoch, now, torch.full((3,), float(i)), {"count": epoch * 10})
        counts = [int(c.sum()) for c in correct[: i + 1]]
        first = max(range(i + 1), key=lambda j: (counts[j], j))  # of equals the last
        assert int(best.epoch) == first + 1
        assert best.weights.tolist() == [first] * 3
        assert int(best.buffers["count"]) == 10 * (first + 1)
        assert torch.equal(best.correct, correct[first])
        clear = bool(clearly_better(correct[first], now))
        assert int(chosen) == (first + 1 if clear else i + 1)


@pytest.mark.parametrize("averaged", [{}, {"ema_horizon": 0.1}], ids=["last", "averaged"])
def test_the_chosen_weights_are_those_of_the_chosen_epoch(averaged, tmp_path):
    run = tiny(**OVERFITS, **averaged)
    result = fit(run, out=tmp_path / "whole")
    column = "validation_accuracy_ema" if averaged else "validation_accuracy"
    chosen, history = result.chosen_epoch, result.history
    assert chosen is not None
    assert chosen < run.epochs
    assert history[chosen - 1][column] == max(row[column] for row in history)
    with pytest.raises(StopError):
        fit(run, out=tmp_path / "stopped", on_epoch=stop_after(chosen))
    (stopped,) = (tmp_path / "stopped").glob("*/checkpoint.pt")
    then = torch.load(stopped, weights_only=True)["tensors"]["ema" if averaged else "weights"]
    found = torch.cat([p.detach().flatten() for p in result.network.parameters()])
    assert torch.equal(found.sort().values, then.sort().values)  # matrices come first there
    kept, last = load(result.folder), load(result.folder, last=True)
    assert same(weights(kept.network), weights(result.network))
    assert same(weights(last.network), weights(result.last_network))
    assert not same(weights(last.network), weights(kept.network))
    (record,) = read(result.folder).records
    (short,) = read(result.folder, last_only=True).records
    tested = "test_accuracy_ema" if averaged else "test_accuracy"
    assert result.accuracy == history[chosen - 1][tested]
    assert record.accuracy == pytest.approx(result.accuracy, abs=1e-6)  # a table has six digits
    assert short.accuracy == result.accuracy
    curve = record.column(record.accuracy_column)
    for row, now in zip(history, curve, strict=True):  # what it would be if this were the end
        assert now == pytest.approx(history[int(row["chosen_epoch"]) - 1][tested], abs=1e-6)
    resumed = fit(run, out=tmp_path / "stopped")  # the best came before the stop
    assert but_seconds(resumed.history) == but_seconds(history)
    assert same(weights(resumed.network), weights(result.network))
    assert same(weights(resumed.last_network), weights(result.last_network))
    again = fit(run, out=tmp_path / "stopped")  # read, not trained
    assert (again.chosen_epoch, again.network) == (chosen, None)
    assert again.accuracy == pytest.approx(result.accuracy, abs=1e-6)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])  # of which the latter trains a copy
def test_what_is_kept_of_samples_is_of_the_chosen_weights(precision, tmp_path):
    result = fit(tiny(**OVERFITS, precision=precision), out=tmp_path)
    row, last = result.history[result.chosen_epoch - 1], result.history[-1]
    right = list(read_held_out(result.folder).correct.values())
    assert statistics.mean(right) == pytest.approx(row["validation_accuracy"], abs=0.01)
    assert row["validation_accuracy"] > last["validation_accuracy"] + 0.02
    found = read_examples(result.folder)
    images = Setup().trainer(result.run).loader.inputs[[example.index for example in found]]
    expected = load(result.folder).predict_proba(images).max(1).values
    assert [e.probability for e in found] == pytest.approx(expected.tolist(), abs=0.05)


def test_what_is_kept_of_samples_is_computed_as_in_a_test(tmp_path, monkeypatch):
    """On one thread, where the network is small: several come to other last digits."""
    found, eval_logits = [], RunTrainer._eval_logits

    def counting(*args):
        found.append(torch.get_num_threads())
        return eval_logits(*args)

    monkeypatch.setattr(RunTrainer, "_eval_logits", counting)
    torch.set_num_threads(2)
    fit(tiny(model="mlp", epochs=1, holdout=0.2), out=tmp_path)
    assert found == [1] * 4  # test set and what is held out, examples and what is held out
    assert torch.get_num_threads() == 2


def test_where_the_last_is_as_good_it_is_the_last():
    result = fit(tiny(loss="ce", noise="none", epochs=6, ema=0.9, choose_epoch=True))
    assert result.run.holdout == 0.1
    assert result.chosen_epoch == 6
    assert same(weights(result.network), weights(result.ema_network))


def test_nothing_else_changes_by_choosing():
    run = {"epochs": 3, "holdout": 0.2, "ema": 0.9}
    plain, choosing = fit(tiny(**run)), fit(tiny(**run, choose_epoch=True))
    assert plain.chosen_epoch is None
    assert plain.last_network is None
    assert same(weights(plain.network), weights(choosing.last_network))
    added = {"chosen_epoch", "changed_predictions", "test_accuracy_chosen"}
    for one, two in zip(plain.history, choosing.history, strict=True):
        assert but_seconds([one]) == but_seconds([{k: v for k, v in two.items() if k not in added}])
        assert two.keys() - one.keys() == added


def test_changed_predictions_are_those_of_the_training_pass():
    trainer = Setup().trainer(tiny(epochs=3, choose_epoch=True).resolve())
    pack, before = Pack([trainer]), None
    for epoch in range(3):
        found = pack.train_epoch(epoch)[0].values["changed_predictions"]
        now = trainer._predicted.clone()
        if before is None:
            assert math.isnan(found)
        else:
            assert found == pytest.approx(float((now != before).float().mean()))
        before = now


def test_without_a_test_set_too():
    data = own_data(120)
    alone = data.__class__(**{**vars(data), "test": data.test.__class__(
        data.test.inputs[:0], data.test.labels[:0])})  # fmt: skip
    result = fit(tiny(epochs=3, batch_size=16, choose_epoch=True, ema=0.5), data=alone)
    assert {"validation_accuracy", "validation_accuracy_ema"} <= result.history[-1].keys()
    assert 1 <= result.chosen_epoch <= 3
    # what chose the epoch cannot judge it
    assert result.accuracy == result.history[-1]["validation_accuracy"]


def test_what_an_older_version_left_out_is_found_in_what_it_kept(tmp_path):
    result = fit(tiny(**OVERFITS, ema_horizon=0.1), out=tmp_path)
    (record,) = read(result.folder).records
    write_bundle(tmp_path / "new.jsonl", [record])
    for name in ("history.csv", "result.json"):
        path = result.folder / name
        rows = [line.split(",") for line in path.read_text().splitlines()]
        if name == "history.csv":
            at = rows[0].index("test_accuracy_chosen")
            rows = [[*row[:at], *row[at + 1 :]] for row in rows]
            path.write_text("".join(f"{','.join(row)}\n" for row in rows))
        else:
            content = json.loads(path.read_text())
            del content["test_accuracy_chosen"]
            path.write_text(json.dumps(content))
    line = json.loads((tmp_path / "new.jsonl").read_text())
    for part in ("last", "history"):
        del line[part]["test_accuracy_chosen"]
    (tmp_path / "old.jsonl").write_text(json.dumps(line, separators=(",", ":")) + "\n")
    for place in (result.folder, tmp_path / "old.jsonl"):
        for last_only in (False, True):
            (old,) = read(place, last_only=last_only).records
            assert old.accuracy == pytest.approx(record.accuracy, abs=1e-5)
    assert fit(result.run, out=tmp_path).accuracy == pytest.approx(result.accuracy, abs=1e-6)


def test_mistakes_are_one_line(tmp_path):
    with pytest.raises(UsageError, match=r"give holdout=0\.1"):
        tiny(choose_epoch=True, holdout=0.0)
    result = fit(tiny(epochs=1, choose_epoch=True), out=tmp_path)
    (result.folder / "model-chosen.pt").unlink()
    with pytest.raises(UsageError, match=r"no model-chosen\.pt; --last takes the weights"):
        load(result.folder)
    with pytest.raises(UsageError, match="give one of them"):
        load(result.folder, last=True, ema=True)
