"""What is done and how long the rest will take, without torch; and the command line around it."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from noiseproof import bench, cli, results
from noiseproof.bench import _plan
from noiseproof.train import Run, fit_many

QUICK = bench.bench("quick")
SMALL = QUICK.narrow(loss=["ce", "nce"], rate=[0.6], seeds=[0, 1], epochs=2)


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """A folder with two of the four runs of SMALL, said to have taken 3 s an epoch."""
    out = tmp_path_factory.mktemp("half")
    for result in fit_many(SMALL.runs[:2], out=out):
        folder = results.Folder(result.folder)
        folder.write_history([row | {"seconds": 3.0} for row in folder.read_history()])
    return out


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch):
    monkeypatch.setattr(_plan, "gpus", lambda: ())


def test_what_is_done_is_found_in_folders_and_in_bundles(half, tmp_path):
    assert len(bench.plan(SMALL, tmp_path / "nowhere").waiting) == 4
    found = bench.plan(SMALL, half)
    assert [r.hash for r in found.done] == [r.resolve().hash for r in SMALL.runs[:2]]
    assert found.waiting == list(SMALL.runs[2:])
    assert found.begun == []
    results.write_bundle(tmp_path / "two.jsonl", found.done)
    assert len(bench.plan(SMALL, tmp_path).done) == 2


def test_a_damaged_folder_is_reported_and_left_alone(half, tmp_path):
    folder = tmp_path / SMALL.runs[0].resolve().hash
    folder.mkdir()
    (folder / "result.json").write_text("{")
    found = bench.plan(SMALL, tmp_path)
    assert len(found.waiting) == 3
    assert len(found.problems) == 1
    assert "delete the folder" in found.problems[0]


def test_a_file_is_no_folder_of_results(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="file is a file; --out names the folder of the results"):
        bench.plan(SMALL, tmp_path / "file")


def test_a_folder_under_another_s_name_is_reported(half, tmp_path):
    done = bench.plan(SMALL, half).done[0]
    hashes = [run.resolve().hash for run in SMALL.runs]
    other = next(name for name in hashes if name != done.hash)
    shutil.copytree(half / done.hash, tmp_path / other)
    found = bench.plan(SMALL, tmp_path)
    assert found.problems == [f"{tmp_path / other} holds another run, {done.hash}"]
    assert len(found.waiting) == 3


def test_time_comes_from_runs_that_have_ended_here(half):
    assert bench.plan(SMALL, half, workers=1).seconds == pytest.approx(2 * 2 * 3)
    assert bench.plan(SMALL, half, workers=2).seconds == pytest.approx(2 * 3)


def test_else_from_what_was_measured_or_it_is_unknown(tmp_path, monkeypatch):
    assert 10 < bench.plan(QUICK, tmp_path, workers=2).seconds < 90
    table = bench.bench("table-symmetric").narrow(dataset=["mnist"], loss=["ce"], seeds=[0])
    assert bench.plan(table, tmp_path).seconds is None
    monkeypatch.setattr(_plan, "gpus", lambda: ("a GPU",))
    assert bench.plan(table, tmp_path).seconds == pytest.approx(5 * 50 * 0.063)
    assert bench.plan(table, tmp_path, device="cpu").seconds is None


def run_cli(monkeypatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["noiseproof", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "120")
    cli.main()


def test_dry_run(half, monkeypatch, capsys):
    run_cli(monkeypatch, "bench", "quick", "--loss", "ce", "nce", "--rate", 0.6, "--seeds", 0, 1,
            "--epochs", 2, "--out", half, "--workers", 1, "--dry-run")  # fmt: skip
    text = capsys.readouterr().out
    assert "4 runs, 2 done, 2 to do" in text
    assert "they will take about 12 s here" in text


def test_a_bench_that_is_done_prints_its_table(half, monkeypatch, capsys):
    run_cli(monkeypatch, "bench", "quick", "--loss", "ce", "nce", "--rate", 0.6, "--seeds",
            SMALL.runs[0].seed, "--epochs", 2, "--out", half)  # fmt: skip
    text = capsys.readouterr().out
    assert "2 runs, 2 done, 0 to do" in text
    assert "digits, symmetric, test accuracy in %" in text
    assert "0.6" in text
    for record in bench.plan(SMALL, half).done:
        assert f"{100 * record.accuracy:.2f}" in text


def test_benches_are_listed_and_planned_without_torch(tmp_path):
    code = (
        "import sys\nfrom noiseproof.cli import main\n"
        "for rest in (['--list'], ['table-symmetric', '--dry-run', '--out', sys.argv[1]]):\n"
        "    sys.argv[1:] = ['bench', *rest]\n    main()\n"
        "assert 'torch' not in sys.modules\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    for name in bench.names():
        assert name in run.stdout
    assert "405 runs, 0 done, 405 to do" in run.stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["quik"], "unknown bench 'quik' (did you mean 'quick'?)"),
        (["quick", "--dataset", "mnist"], "quick has no dataset mnist; it has digits"),
        (["table-webvision"], "table-webvision cannot be run: WebVision 1.0 is not here"),
        (["nowhere.toml"], "No such file or directory: nowhere.toml"),
    ],
)
def test_mistakes_are_one_line(arguments, line, monkeypatch, capsys, tmp_path):
    with pytest.raises(SystemExit) as stop:
        run_cli(monkeypatch, "bench", *arguments, "--out", tmp_path)
    assert stop.value.code in (1, 2)
    error = capsys.readouterr().err
    assert line in error
    assert error.count("\n") == 1


def test_a_run_has_one_name_wherever_it_is_asked_for():
    assert SMALL.runs[0].resolve().hash in {
        r.resolve().hash for r in bench.grid(
            dataset="digits", noise="symmetric", rate=0.6, loss=["ce", "nce"], seed=[0, 1],
            epochs=2, batch_size=128, lr=0.04,
        )
    }  # fmt: skip
    assert Run().resolve() == bench.grid()[0].resolve()


def test_a_log_is_told_of_long_silences(tmp_path, monkeypatch, capsys):
    from contextlib import ExitStack

    from noiseproof.bench import RunEvent
    from noiseproof.cli import _bench

    clock = [100.0]
    monkeypatch.setattr(_bench.time, "monotonic", lambda: clock[0])
    given = [Run(loss=loss, epochs=10) for loss in ("ce", "mae")]
    runs = [run.resolve() for run in given]
    found = bench.plan(bench.Bench("two", "Two", "", tuple(given)), tmp_path)
    with ExitStack() as stack:
        tell = _bench._progress(found, stack)
        for epoch in range(1, 6):
            clock[0] += 30
            tell(RunEvent("epoch", runs[0].hash, epoch, 10, 0.5))
        clock[0] += 30
        tell(RunEvent("ended", runs[0].hash, accuracy=0.9))
        clock[0] += 30  # not long after something was said
        tell(RunEvent("epoch", runs[1].hash, 1, 10, 0.5))
    assert capsys.readouterr().out.splitlines() == [
        "training ...",
        "epoch 1 of 20, about 10 min left",
        "epoch 3 of 20, about 8 min left",
        "epoch 5 of 20, about 8 min left",
        "1/2  digits, symmetric 0.4, CE, seed 0: accuracy 90.00%",
    ]
