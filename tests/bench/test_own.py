"""A bench with networks and losses of the user's own, which its workers import too."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from noiseproof import UsageError, bench, results
from noiseproof.bench._ray import _task
from noiseproof.bench._work import WorkerConfig, work
from noiseproof.cli import main
from noiseproof.models import WeightsWarning
from noiseproof.runs import Run
from noiseproof.train import fit

NETS = """
from torch import nn

def small(num_classes, input_shape, hidden=8):
    return nn.Sequential(
        nn.Flatten(), nn.Linear(input_shape.numel(), hidden), nn.ReLU(),
        nn.Linear(hidden, num_classes),
    )
"""
LOSSES = """
from torch.nn import functional as F
from noiseproof.losses import register

@register
def spread(logits):
    return 1 - logits.softmax(1)

def mine(logits, labels):
    return F.cross_entropy(logits, labels)
"""
GRID = """
dataset = "digits"
model = "mynets:small"
import = ["mylosses"]
loss = ["ce", "normalize(spread)", "mylosses:mine"]
epochs = 2
batch_size = 256
device = "cpu"

[[include]]
model = "mlp"
loss = "ce"
"""
EXCLUDE = """
[[exclude]]
loss = "mylosses:mine"
model = "mynets:small"
"""


def read(folder, text=GRID):
    (folder / "grid.toml").write_text(text)
    return bench.read_bench(folder / "grid.toml")


def test_a_grid_names_what_is_the_user_s_own(own_modules):
    folder = own_modules(mynets=NETS, mylosses=LOSSES)
    found = read(folder, GRID + EXCLUDE)
    assert [(r.model, r.loss) for r in found.runs] == [
        ("mynets:small", "ce"), ("mynets:small", "normalize(spread)"), ("mlp", "ce"),
    ]  # fmt: skip
    assert {r.imports for r in found.runs} == {("mylosses",)}
    assert len(found.narrow(loss=["normalize(spread)"])) == 1
    plain = found.runs[2].resolve()
    assert plain.hash == Run(epochs=2, batch_size=256, loss="ce", model="mlp").resolve().hash


def test_lists_are_values_of_their_own():
    assert [r.freeze for r in bench.grid(freeze=["layers.1.*", "layers.0"])] == [
        ("layers.0", "layers.1.*")
    ]
    assert [r.freeze for r in bench.grid(freeze=[[], ["layers.1.*"], "layers.0"])] == [
        (), ("layers.1.*",), ("layers.0",),
    ]  # fmt: skip
    assert [r.freeze for r in bench.grid(freeze=[])] == [()]


def test_a_loss_whose_module_is_not_named(own_modules):
    folder = own_modules(mylosses=LOSSES, helper="import mylosses\n")
    grid = 'import = ["helper"]\nloss = ["spread"]\n'
    with pytest.raises(UsageError, match=r"declares: name that module, import = \[\"mymodule\"\]"):
        bench.plan(read(folder, grid), folder / "out")
    with pytest.raises(UsageError, match=r"grid.toml: import nosuch: there is no module 'nosuch'"):
        read(folder, 'import = ["nosuch"]\n')


def test_a_worker_refuses_what_changed_meanwhile(own_modules):
    folder = own_modules(mynets=NETS)
    runs = [Run(model="mynets:small", epochs=1, device="cpu", seed=s).resolve() for s in (0, 1)]
    own_modules(mynets=NETS + "\n")
    events = []
    work(runs, WorkerConfig(folder / "out"), events.append)
    assert [e.what for e in events] == ["ended", "ended"]
    assert all("mynets has changed since" in e.error for e in events)


def test_a_node_finds_modules_and_weights_where_they_were(own_modules, tmp_path, monkeypatch):
    """What a Ray task does, in a folder and with a path that have none of them."""
    folder = own_modules(mynets=NETS, mylosses=LOSSES)
    made = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(64, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)
    )
    torch.save(made.state_dict(), folder / "w.pt")
    run = Run(
        model="mynets:small", loss="normalize(spread)", imports=["mylosses"], weights="w.pt",
        epochs=1, device="cpu",
    ).resolve()  # fmt: skip
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(folder)])
    with pytest.warns(WeightsWarning, match="of another shape: 3.weight"):
        events, files = _task([run], WorkerConfig(tmp_path / "there", device="cpu"), ".shared-none")
    assert [e.error for e in events] == [None]
    assert "result.json" in files[run.hash]
    lost = replace(run, paths=(), seed=1)
    events, _ = _task([lost], WorkerConfig(tmp_path / "there", device="cpu"), ".shared-none")
    assert "the file of weights w.pt is not here" in events[0].error


def test_a_grid_of_flags(own_modules, capsys, monkeypatch):
    own_modules(mynets=NETS, mylosses=LOSSES)
    given = "bench --dataset digits --model mynets:small --seeds 0 --import mylosses --dry-run"
    losses = ["--loss", "ce", "normalize(spread)", "mylosses:mine"]
    monkeypatch.setattr(sys, "argv", ["noiseproof", *given.split(), *losses])
    main()
    assert "3 runs, 0 done, 3 to do" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["noiseproof", "bench", "quick", "--import", "mylosses"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "--import is for a grid of flags, and quick is a bench" in capsys.readouterr().err


def test_a_grid_of_flags_takes_class_weights(capsys, monkeypatch, tmp_path):
    fit(Run(rate=0.2, epochs=1, class_weight="balanced", device="cpu", loss="ce"), out=tmp_path)
    given = "bench --dataset digits --rate 0.2 --epochs 1 --seeds 0 --loss ce --dry-run --out"
    for weight, done in (("balanced", 1), ("none", 0)):
        flags = [*given.split(), str(tmp_path), "--class-weight", weight]
        monkeypatch.setattr(sys, "argv", ["noiseproof", *flags])
        main()
        assert f"{done} done" in capsys.readouterr().out


@pytest.mark.slow
def test_workers_import_it_and_the_bench_goes_on(own_modules, tmp_path):
    folder, out = own_modules(mynets=NETS, mylosses=LOSSES), tmp_path / "out"
    read(folder)

    def noiseproof(*arguments):
        code = "from noiseproof.cli import main; main()"
        command = [sys.executable, "-P", "-c", code, "bench", "grid.toml", "--out", str(out)]
        return subprocess.run(
            [*command, "--workers", "1", *arguments], cwd=folder, capture_output=True, text=True
        )

    first = noiseproof("--loss", "normalize(spread)", "mylosses:mine")
    assert first.returncode == 0, first.stderr
    assert "2 runs, 0 done, 2 to do" in first.stdout
    rest = noiseproof()
    assert rest.returncode == 0, rest.stderr
    assert "4 runs, 2 done, 2 to do" in rest.stdout
    table = rest.stdout.split("test accuracy in %")[1]
    assert "mylosses:mine" in table
    assert "model mynets:small" in table
    assert "imports" not in table
    assert "@" not in table
    reading = results.read(out)
    assert reading.problems == []
    assert {r.run.method for r in reading.records} == {"CE", "normalize(spread)", "mylosses:mine"}
    assert "4 runs, 4 done, 0 to do" in noiseproof().stdout
    own_modules(mylosses=LOSSES + "# other\n")  # of the four, one needs neither file
    assert "4 runs, 1 done, 3 to do" in noiseproof("--dry-run").stdout


@pytest.mark.slow
def test_workers_find_it_on_the_path_of_who_started_them(own_modules, tmp_path, monkeypatch):
    folder = own_modules(mynets=NETS, mylosses=LOSSES)
    found = read(folder).narrow(loss=["normalize(spread)"])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert str(folder) in sys.path  # the folder was current when the grid was read
    outcome = bench.run(found, tmp_path / "out", workers=1)
    assert outcome.failed == []
    assert len(outcome.records) == 1
    assert os.listdir(tmp_path / "elsewhere") == []


@pytest.mark.slow
def test_a_file_that_changes_while_the_bench_runs(own_modules, tmp_path):
    """What was begun comes to its end and is found: runs were resolved when they were planned."""
    own_modules(mynets=NETS)
    runs = bench.grid(
        model="mynets:small", seed=[0, 1], epochs=2, batch_size=256, device="cpu", loss="ce"
    )
    found = bench.Bench("own", "Own", "", tuple(runs))

    def watch(event):
        own_modules(mynets=NETS + "# other\n")

    outcome = bench.run(found, tmp_path / "out", workers=1, watch=watch)
    assert outcome.failed == []
    assert len(outcome.records) == 2
    assert len(bench.plan(found, tmp_path / "out").waiting) == 2  # of the changed file


def test_results_are_chosen_by_the_name_without_the_digest(own_modules):
    folder = own_modules(mynets=NETS)
    run = Run(model="mynets:small", epochs=1, device="cpu").resolve()
    work([run], WorkerConfig(folder / "out"), lambda event: None)
    records = results.read(folder / "out").records
    assert len(results.select(records, model=["mynets:small"])) == 1
    assert len(results.select(records, model=[run.model])) == 1
    assert results.select(records, model=["mlp"]) == []
    (row,) = results.table(records)
    assert (row["model"], row["freeze"], row["overrides"]) == (run.model, "", "")
