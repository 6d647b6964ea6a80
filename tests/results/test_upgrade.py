"""Folders and bundles that an older version wrote: read as they are, renamed by one command."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest
import torch

from noiseproof import bench, cli, results
from noiseproof.bench import _plan
from noiseproof.runs import Run, hash_of
from noiseproof.train import fit

RUN = Run(loss="1*nce + 1*rce", epochs=3, ema=0.5, device="cpu")
OLD_SETTINGS = {  # as the first format had them: what the protocol brings was left open
    "dataset": "digits", "noise": "symmetric", "rate": 0.4, "variant": "paper", "loss": "nce+rce",
    "model": "mlp", "protocol": "paper", "epochs": 3, "batch_size": 32, "lr": 0.01,
    "schedule": "cosine", "lr_floor": 0.0, "momentum": 0.9, "nesterov": False,
    "weight_decay": None, "clip": 5.0, "crop": 0, "flip": False, "rotate": 0.0, "l1": None,
    "ema": 0.5, "balance": 0.0, "holdout": 0.0, "precision": "auto", "seed": 0,
}  # fmt: skip
OLD_ABOUT = {"loss": "nce + rce", "weight_decay": 0.005, "l1": 0.0, "precision": "fp32"}


class StopError(Exception):
    pass


def stop_after(epoch: int):
    def on_epoch(progress):
        if progress.epoch == epoch:
            raise StopError

    return on_epoch


def downgrade(folder: Path, settings: dict | None = None, about: dict | None = None) -> Path:
    """A folder as the first format would have it, under a name of its own."""
    described = json.loads((folder / "run.json").read_text())
    for name in ("format", "overrides"):
        described.pop(name, None)
    described |= {"settings": settings or OLD_SETTINGS, **(about or OLD_ABOUT)}
    (folder / "run.json").write_text(json.dumps(described))
    history = folder / "history.csv"
    with history.open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = ["learning_rate" if k == "lr" else k for k in rows[0]]
    lines = [",".join(columns), *(",".join(row.values()) for row in rows)]
    history.write_text("\n".join(lines) + "\n")
    checkpoint = folder / "checkpoint.pt"
    if checkpoint.exists():
        content = torch.load(checkpoint, weights_only=True)
        names = {"momentum_buffer": "momenta", "ema": "average"}
        content["tensors"] = {
            names.get(k, k.replace("ema.", "average.")): v for k, v in content["tensors"].items()
        }
        content |= {"format": 1, "settings": json.dumps(settings or OLD_SETTINGS)}
        content["history"] = content["history"].replace('"lr"', '"learning_rate"')
        torch.save(content, checkpoint)
    return folder.rename(folder.with_name("0123456789abcdef"))


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch):
    monkeypatch.setattr(_plan, "gpus", lambda: ())


def run_cli(monkeypatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["noiseproof", *map(str, arguments)])
    cli.main()


def test_an_older_run_is_read_and_renamed_by_the_command_that_the_plan_names(
    tmp_path, monkeypatch, capsys
):
    new = fit(RUN, out=tmp_path)
    downgrade(new.folder)
    (record,) = results.read(tmp_path).records
    assert record.run == RUN.resolve()
    assert "lr" in record.history[0]
    plan = bench.plan(bench.Bench("one", "One", "", (RUN,)), tmp_path)
    assert plan.done == []
    (problem,) = plan.problems
    assert problem == (
        f"1 run is of an older version: noiseproof results {tmp_path} --upgrade renames them"
    )
    run_cli(monkeypatch, "results", tmp_path, "--upgrade")
    assert f"1 folder in {tmp_path} brought to the format" in capsys.readouterr().out
    plan = bench.plan(bench.Bench("one", "One", "", (RUN,)), tmp_path)
    assert (len(plan.done), plan.problems) == (1, [])
    again = fit(RUN, out=tmp_path)
    assert again.network is None
    assert again.folder == new.folder
    assert results.outdated(tmp_path) == []


def test_an_older_run_that_had_not_ended_goes_on_to_the_same_numbers(tmp_path):
    whole = fit(RUN)
    with pytest.raises(StopError):
        fit(RUN, out=tmp_path, on_epoch=stop_after(2))
    downgrade(tmp_path / RUN.resolve().hash)
    folders, problems = results.upgrade(tmp_path)
    assert ([f.name for f in folders], problems) == ([RUN.resolve().hash], [])
    epochs = []
    resumed = fit(RUN, out=tmp_path, on_epoch=lambda p: epochs.append(p.epoch))
    assert epochs == [3]
    for one, two in zip(resumed.history, whole.history, strict=True):
        assert {**one, "seconds": 0} == pytest.approx({**two, "seconds": 0}, nan_ok=True)


def test_what_cannot_be_upgraded_is_left_and_named(tmp_path):
    fit(RUN, out=tmp_path)
    old = downgrade(tmp_path / RUN.resolve().hash, settings={"loss": "ce"})
    assert results.upgrade(tmp_path)[0] == []
    assert old.exists()
    (problem,) = results.upgrade(tmp_path)[1]
    assert problem.startswith(f"{old} is left as it is (")


def test_two_of_the_same_run_are_not_merged(tmp_path):
    fit(RUN, out=tmp_path)
    old = downgrade(tmp_path / RUN.resolve().hash)
    fit(RUN, out=tmp_path)
    (problem,) = results.upgrade(tmp_path)[1]
    assert "holds this run already; delete one of the two" in problem
    assert old.exists()


def test_a_bundle_is_rewritten_in_place(tmp_path, monkeypatch, capsys):
    line = {"settings": OLD_SETTINGS, "about": OLD_ABOUT, "error": None,
            "history": {"epoch": [1], "test_accuracy": [0.5], "learning_rate": [0.01]}}  # fmt: skip
    path = tmp_path / "old.jsonl"
    path.write_text(json.dumps(line) + "\n")
    (before,) = results.read(path).records
    run_cli(monkeypatch, "results", path, "--upgrade")
    content = json.loads(path.read_text())
    assert content["format"] == results.FORMAT
    assert content["settings"]["loss"] == "nce + rce(A=-4)"
    (after,) = results.read(path).records
    assert (after.run, after.history) == (before.run, before.history)


def test_an_older_run_of_the_user_s_own_keeps_being_one(tmp_path):
    settings = OLD_SETTINGS | {"loss": "my_loss", "own": "0011223344556677"}
    line = {"settings": settings, "about": OLD_ABOUT | {"loss": "my_loss"}, "error": None,
            "history": {"epoch": [1], "test_accuracy": [0.5]}}  # fmt: skip
    path = tmp_path / "old.jsonl"
    path.write_text(json.dumps(line) + "\n")
    (record,) = results.read(path).records
    assert (record.run.overrides, record.run.name) == (("loss",), f"unnamed-{hash_of(settings)}")
    assert record.hash != RUN.resolve().hash


def test_older_runs_on_one_data_set_of_the_user_s_own_stay_apart(tmp_path):
    for seed in (0, 1, 2):
        fit(RUN, out=tmp_path)
        settings = OLD_SETTINGS | {"dataset": "mine", "own": "0011223344556677", "seed": seed}
        old = downgrade(tmp_path / RUN.resolve().hash, settings=settings)
        old.rename(tmp_path / f"old{seed}")
    folders, problems = results.upgrade(tmp_path)
    assert (len(folders), problems) == (3, [])
    assert {r.run.seed for r in results.read(tmp_path).records} == {0, 1, 2}


def test_an_interrupted_upgrade_is_finished(tmp_path):
    fit(RUN, out=tmp_path)
    downgrade(tmp_path / RUN.resolve().hash)
    (new,), _ = results.upgrade(tmp_path)
    new.rename(tmp_path / "0123456789abcdef")  # as if it had been killed before the renaming
    assert len(results.outdated(tmp_path)) == 1
    assert results.upgrade(tmp_path)[0] == [new]
    assert results.outdated(tmp_path) == []


@pytest.mark.parametrize("content", ["notes\n", "", '{"format": 99}\n'])
def test_a_file_that_cannot_be_read_whole_is_left_as_it_is(content, tmp_path, monkeypatch, capsys):
    path = tmp_path / "notes.txt"
    path.write_text(content)
    with pytest.raises(SystemExit) as stop:
        run_cli(monkeypatch, "results", path, "--upgrade")
    assert stop.value.code == 2
    assert "is left as it is" in capsys.readouterr().err
    assert path.read_text() == content


def test_a_record_of_a_newer_version_is_named(tmp_path):
    fit(RUN, out=tmp_path)
    file = tmp_path / RUN.resolve().hash / "run.json"
    file.write_text(file.read_text().replace('"format": 2', '"format": 3'))
    assert "it is of format 3, which a newer version reads" in results.read(tmp_path).problems[0]
