"""Losses ranked by held-out labels as they are given, and by nothing else."""

from __future__ import annotations

import csv
import math
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import tyro

from noiseproof import UsageError, data
from noiseproof.cli._flags import Flags
from noiseproof.results import Folder, HeldOut, Record, write_held_out
from noiseproof.runs import Run
from noiseproof.tools import HANDFUL, choose
from noiseproof.tools._choose import plan_of, rank, runs_of
from noiseproof.tools._command import command_of

ROOT = Path(__file__).parents[2]
N = 200


def record_of(folder: Path, run: Run, held_out: float, test: float | None = None) -> Record:
    """A run that has ended: of N held-out samples the first ones are answered as their labels."""
    row = {"epoch": 1.0, "train_loss": 1.0, "validation_accuracy": held_out, "seconds": 2.0}
    row |= {} if test is None else {"test_accuracy": test}
    path = folder / run.resolve().hash
    path.mkdir(parents=True)
    right = round(held_out * N)
    predicted = [1] * right + [0] * (N - right)
    write_held_out(Folder(path), HeldOut(list(range(N)), [1] * N, predicted))
    return Record(run.resolve(), [row], {}, source=path)


def test_the_ranking_is_that_of_held_out_labels(tmp_path):
    held_out = {"ce": 0.40, "gce": 0.52, "mae": 0.50}
    test = {"ce": 0.99, "gce": 0.10, "mae": 0.50}  # which would rank them the other way
    runs = [Run(loss=loss, holdout=0.2) for loss in held_out]
    found = [
        (run, record_of(tmp_path, run, held_out[run.loss], test[run.loss]), None) for run in runs
    ]
    choice = rank(found)
    assert [o.loss for o in choice.options] == ["gce", "mae", "ce"]
    assert choice.loss == choice.run.loss == "gce"
    assert choice.run.holdout is None
    assert choice.level == ["gce", "mae"]  # 4 samples of 200 apart, and 24
    assert choice.sure.startswith("gce and mae cannot be told apart on 200 held-out samples;")
    assert [row["test"] for row in choice.rows()] == ["10.00 %", "50.00 %", "99.00 %"]
    assert choice.options[2].behind.points == pytest.approx(12)


def test_one_that_leads_is_said_to_lead(tmp_path):
    accuracies = {"ce": 0.3, "mae": 0.6}
    runs = [Run(loss=loss, holdout=0.2) for loss in accuracies]
    choice = rank([(run, record_of(tmp_path, run, accuracies[run.loss]), None) for run in runs])
    assert choice.level == ["mae"]
    assert choice.sure.startswith("mae is the best of 2 on 200 held-out samples: 30.0 ± ")
    assert "test" not in choice.rows()[0]


def test_one_answer_for_all_is_no_choice(tmp_path):
    runs = [Run(loss=loss, holdout=0.2) for loss in ("ce", "mae")]
    found = [(run, record_of(tmp_path, run, 0.7), None) for run in runs]
    assert "most frequent class, 100.00 %" in rank(found).note  # all labels are of one class
    kept = HeldOut(list(range(N)), [0, 1] * (N // 2), [0, 1] * (N // 2))
    write_held_out(Folder(found[0][1].source), kept)
    write_held_out(Folder(found[1][1].source), kept)
    assert rank(found).note == ""


def test_all_alike(tmp_path):
    runs = [Run(loss=loss, holdout=0.2) for loss in ("ce", "mae", "gce")]
    choice = rank([(run, record_of(tmp_path, run, 0.5), None) for run in runs])
    assert choice.sure.startswith("The 3 losses cannot be told apart")


def test_one_that_failed_is_last_and_no_choice(tmp_path):
    runs = [Run(loss=loss, holdout=0.2, seed=s) for s in (0, 1) for loss in ("ce", "mae", "gce")]
    found = []
    for run in runs:
        best = run.loss == "gce"
        why = "the loss became nan" if best and run.seed == 1 else None
        record = record_of(tmp_path, run, 0.9 if best else 0.5)
        found.append((run, None if why else record, why))
    choice = rank(found)
    assert choice.options[-1].loss == "gce"
    assert choice.options[-1].error == "the loss became nan"
    assert math.isnan(choice.options[-1].mean)
    assert choice.rows()[-1]["why it is tried"] == "the loss became nan"
    assert choice.num_seeds == 2
    with pytest.raises(UsageError, match="no loss could be trained: it was not trained"):
        rank([(runs[0], None, None)])


def test_a_loss_that_is_ranked_by_other_weights_than_it_ends_with_is_named(tmp_path):
    runs = [Run(loss=loss, holdout=0.2, choose_epoch=False) for loss in ("ce", "auto")]
    plain, auto = (record_of(tmp_path, run, 0.5) for run in runs)
    averaged = replace(auto, history=[auto.history[0] | {"validation_accuracy_ema": 0.625}])
    said = "auto is ranked by its last weights, not averaged"

    def note(*records: Record) -> str:
        return rank([(run, r, None) for run, r in zip(runs, records, strict=False)]).note

    assert said not in note(plain)
    assert said in note(plain, averaged)
    assert "averaged ones (the last: 62.50 %), of the epoch" in note(plain, averaged)
    assert "averaged ones, of the epoch" in note(plain, auto)  # of an average of length 0


def test_without_predictions_nobody_knows_how_sure_it_is(tmp_path):
    runs = [Run(loss=loss, holdout=0.2) for loss in ("ce", "mae")]
    found = [
        (run, record_of(tmp_path, run, a), None) for run, a in zip(runs, (0.9, 0.1), strict=True)
    ]
    (found[1][1].source / "held_out.json").unlink()  # as of an older version
    choice = rank(found)
    assert choice.options[1].behind is None
    assert choice.level == ["ce", "mae"]


def small(seed: int = 0, n: int = 240) -> data.Dataset:
    """Three clouds of numbers, a quarter of the labels wrong."""
    drawn = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    x = np.eye(3, 6, dtype=np.float32)[labels] * 3 + drawn.normal(size=(n, 6)).astype(np.float32)
    given = np.where(drawn.random(n) < 0.25, (labels + 1) % 3, labels)
    return data.from_arrays(x[:-60], given[:-60], x[-60:], labels[-60:])


SETTINGS = {"epochs": 3, "device": "cpu", "batch_size": 32}


@pytest.mark.slow
def test_data_in_memory(tmp_path):
    events = []
    found = choose(small(), ["ce", "mae"], out=tmp_path, watch=events.append, **SETTINGS)
    assert found.num_seeds == 3
    trained = [event for event in events if event.what == "epoch"]
    assert (len(trained), len(events)) == (2 * 3 * 3, 2 * 3 * 3 + 2 * 3)
    assert {len(option.held_out) for option in found.options} == {3}
    assert all(0 < option.mean <= 1 for option in found.options)
    again = choose(small(), ["ce", "mae"], out=tmp_path, watch=trained.append, **SETTINGS)
    assert {event.what for event in trained[18:]} == {"ended"}  # nothing was trained again
    assert again == found
    other = choose(small(), ["ce", "gce"], out=tmp_path, **SETTINGS)  # beside it
    assert {o.loss for o in other.options} == {"ce", "gce"}


def test_the_test_set_does_not_choose():
    of = small()
    lied = replace(of, test=replace(of.test, labels=(of.test.labels + 1) % 3))
    ours, theirs = (choose(d, ["ce", "mae", "gce"], seeds=[0], **SETTINGS) for d in (of, lied))
    assert [o.held_out for o in ours.options] == [o.held_out for o in theirs.options]
    assert [o.test for o in ours.options] != [o.test for o in theirs.options]
    assert ours.loss == theirs.loss


def test_classes_of_different_size_are_remarked_on():
    of = small()
    keep = torch.cat([(of.train.labels != 2).nonzero().flatten(), torch.tensor([2, 5, 8, 11])])
    rare = replace(of, train=data.Split(of.train.inputs[keep], of.train.labels[keep]))
    plain = choose(rare, ["ce"], seeds=[0], **SETTINGS)
    assert "--class-weight balanced" in plain.note
    assert plain.measure == "accuracy"
    balanced = choose(rare, ["ce"], seeds=[0], class_weight="balanced", **SETTINGS)
    assert not balanced.note
    assert balanced.measure == "mean recall"
    assert "held out, mean recall" in balanced.rows()[0]
    assert not choose(of, ["ce"], seeds=[0], **SETTINGS).note


def test_class_weights_are_part_of_the_command(tmp_path):
    runs = [Run(loss=loss, holdout=0.2, class_weight="balanced") for loss in ("ce", "mae")]
    choice = rank([(run, record_of(tmp_path, run, 0.5), None) for run in runs])
    assert "--class-weight balanced" in command_of(choice.run)
    assert "highest mean recall" in choice.sure


def test_what_is_tried():
    runs = runs_of(Run(), (), (), 1437)
    assert [run.loss for run in runs[: len(HANDFUL)]] == [c.loss for c in HANDFUL]
    assert {run.seed for run in runs} == {0, 1, 2}
    assert {run.holdout for run in runs} == {0.2}
    assert {run.seed for run in runs_of(Run(), (), (), 50_000)} == {0}
    assert {run.holdout for run in runs_of(Run(), (), (), 50_000)} == {0.1}
    assert {run.holdout for run in runs_of(Run(holdout=0.3), (), (), 50_000)} == {0.3}
    for candidate in HANDFUL:  # a text means the same on any data set
        texts = {Run(dataset=d, loss=candidate.loss).resolve().loss for d in ("digits", "cifar100")}
        assert len(texts) == 1
        assert candidate.reason


def test_the_best_of_every_table_is_among_the_handful():
    """As `HANDFUL` says: less than half a point before one of them, in each column."""
    page = (ROOT / "docs" / "which-loss.md").read_text()
    texts = {c.loss.replace("1*nce + 1*rce", "nce + rce") for c in HANDFUL}
    for mark in ("digits", "features", "mnist", "cifar10"):
        table = page.partition(f"<!-- {mark} -->\n")[2].partition("\n<!-- /")[0].splitlines()[2:]
        rows = {line.split("`")[1]: line.split("|")[2:-1] for line in table}
        rows.pop("nce + amse", None)  # JAL-CE
        for column in range(5):
            numbers = {
                loss: float(cells[column].strip().strip("*").split(" ")[0])
                for loss, cells in rows.items() if cells[column].strip()
            }  # fmt: skip
            ours = max(value for loss, value in numbers.items() if loss in texts)
            assert max(numbers.values()) - ours < 0.5, (mark, column)


def test_mistakes(tmp_path):
    for choose_epoch in (True, False):
        with pytest.raises(UsageError, match="leave out choose_epoch"):
            choose("digits", choose_epoch=choose_epoch)
    with pytest.raises(UsageError, match="give holdout above 0"):
        choose("digits", holdout=0.0)
    with pytest.raises(UsageError, match="rcee"):
        plan_of(Run(), ["nce + rcee"], (), tmp_path)
    with pytest.raises(UsageError, match="no_such"):
        plan_of(Run(dataset="csv:no_such.csv"), (), (), tmp_path)


def test_pictures(tmp_path):
    pytest.importorskip("vl_convert")
    runs = [Run(loss=loss, holdout=0.2) for loss in ("ce", "1*nce + 1*rce")]
    found = [
        (r, record_of(tmp_path, r, a, 0.5), None) for r, a in zip(runs, (0.5, 0.8), strict=True)
    ]
    choice = rank(found)
    choice.draw(tmp_path / "choice.svg")
    svg = (tmp_path / "choice.svg").read_text()
    assert "1*nce + 1*rce" in svg
    assert "held out, as given" in svg
    with pytest.raises(UsageError, match="png, svg, html"):
        choice.draw(tmp_path / "choice.txt")


def test_the_command_trains_that_run(tmp_path):
    path = tmp_path / "my data.csv"
    with path.open("w", newline="") as file:
        rows = [{"a": i % 7, "b": i % 5, "kind": "xy"[i % 2]} for i in range(60)]
        writer = csv.DictWriter(file, ["a", "b", "kind"])
        writer.writeheader()
        writer.writerows(rows)
    run = Run(
        dataset=f"csv:{path}", label="kind", ignore=("b",), epochs=3, lr=0.003, flip=False,
        loss="nce + 0.1*rce", skip_unreadable=True, decay_on="matrices", holdout=1 / 3,
    )  # fmt: skip
    words = shlex.split(command_of(run))
    assert words[:2] == ["noiseproof", "train"]
    assert tyro.cli(Flags, args=words[2:]).resolve() == run.resolve()
