"""The flags of a grid: every setting of a run, checked once it has its data."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from typing import get_args, get_type_hints

import numpy as np
import pytest
import tyro

from noiseproof import bench as benches
from noiseproof.cli import _bench, main
from noiseproof.runs import Run


def test_a_grid_of_flags_takes_every_setting_of_a_run():
    """Each is a flag of the command or of the grid."""
    own = set(inspect.signature(_bench.bench).parameters) | {"seed"}  # --seeds
    assert set(_bench._OF_BENCH) <= own
    grid = get_type_hints(_bench.GridFlags, include_extras=True)
    shown = {n for n, of in grid.items() if tyro.conf.Suppress not in get_args(of)}
    assert own | shown >= {f.name for f in dataclasses.fields(Run)}
    assert not own & shown


def test_settings_of_a_grid_of_flags_are_checked_with_its_data(monkeypatch, capsys, tmp_path):
    asked = []
    monkeypatch.setattr(benches, "plan", lambda bench, *_, **__: asked.append(bench) or sys.exit(0))

    def runs_of(flags):
        monkeypatch.setattr(sys, "argv", ["noiseproof", "bench", *flags.split()])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, asked

    data = "--dataset digits --seeds 0 --loss auto "
    code, (grid,) = runs_of(data + "--shrink 2 --holdout 0 --lr 0.1 0.2 --freeze a* b*")
    assert code == 0
    assert [(r.shrink, r.holdout, r.lr) for r in grid.runs] == [(2, 0, 0.1), (2, 0, 0.2)]
    assert {r.freeze for r in grid.runs} == {("a*", "b*")}
    code, _ = runs_of(data + "--label stars")
    assert (code, len(asked)) == (2, 1)
    assert "label is for data of your own, and dataset is 'digits'" in capsys.readouterr().err


@pytest.mark.parametrize("flags", ["--loss auto", "--seeds 0 --dry-run", "--shrink 3", "--name x"])
def test_flags_without_a_bench_or_data_are_refused(flags, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["noiseproof", "bench", *flags.split()])
    with pytest.raises(SystemExit, match="2"):
        main()
    said = capsys.readouterr()
    assert f"{flags.split()[0]} is for a bench, which is named" in said.err
    assert not said.out


def test_a_second_value_of_a_flag_is_not_called_a_bench(monkeypatch, capsys):
    given = ["--dataset", "digits", "--loss", "auto", "--shrink", "2", "4"]
    monkeypatch.setattr(sys, "argv", ["noiseproof", "bench", *given])
    with pytest.raises(SystemExit, match="2"):
        main()
    said = capsys.readouterr().err
    assert "'4' is no bench" in said
    assert "--lr take several, and any setting does as a list in a TOML file" in said


@pytest.mark.slow
def test_what_is_tested_on_nothing_has_not_failed(monkeypatch, capsys, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "rows.npz", x=rng.normal(size=(60, 4)), y=np.arange(60) % 3)
    flags = f"--dataset npz:{tmp_path}/rows.npz --holdout 0 --seeds 0 --epochs 1 --workers 1"
    given = [*flags.split(), "--loss", "ce", "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["noiseproof", "bench", *given])
    main()
    said = capsys.readouterr().out.replace(str(tmp_path), "")
    assert "CE, seed 0: tested on nothing" in said
    assert "not tested" in said
    assert "failed" not in said
    assert "nan" not in said
