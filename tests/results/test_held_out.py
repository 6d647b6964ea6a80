"""What a network says of held-out samples, kept and read again."""

from __future__ import annotations

import json

import pytest

from noiseproof import UsageError, results
from noiseproof.results import Folder, HeldOut, read_held_out, write_held_out
from noiseproof.train import Run, fit


def test_round_trip(tmp_path):
    held_out = HeldOut([3, 7], [0, 1], [0, 2])
    write_held_out(Folder(tmp_path), held_out)
    assert read_held_out(tmp_path) == held_out
    assert held_out.correct == {3: True, 7: False}
    assert read_held_out(tmp_path / "nothing") is None


@pytest.mark.parametrize(
    "content",
    [
        {"index": [1], "given": [1]},
        {"index": [1], "given": [1], "predicted": [1, 2]},
        {"index": [1], "given": ["1"], "predicted": [1]},
        {"index": 1, "given": [1], "predicted": [1]},
        {"index": [1], "given": [1], "predicted": [True]},
    ],
)
def test_damage(tmp_path, content):
    (tmp_path / "held_out.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match=r"held_out\.json is damaged.*; delete the file"):
        read_held_out(tmp_path)


def test_it_is_what_the_accuracy_was_measured_on(tmp_path):
    runs = [Run(epochs=2, holdout=0.2, loss=loss, device="cpu") for loss in ("ce", "mae")]
    kept = []
    for run in runs:
        result = fit(run, out=tmp_path)
        found = read_held_out(result.folder)
        correct = found.correct.values()
        accuracy = result.history[-1][results.HELD_OUT_ACCURACY]
        assert sum(correct) / len(correct) == pytest.approx(accuracy)
        kept.append(found)
    assert len(set(kept[0].index)) == round(0.2 * 1437)
    assert (kept[0].index, kept[0].given) == (kept[1].index, kept[1].given)  # so they are paired
    assert kept[0].predicted != kept[1].predicted


def test_a_run_that_holds_nothing_out_keeps_none(tmp_path):
    result = fit(Run(epochs=1, device="cpu"), out=tmp_path)
    assert read_held_out(result.folder) is None
