"""The command line as a user types it."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

import noiseproof
from noiseproof import bench as benches
from noiseproof.results import Record, write_bundle
from noiseproof.train import Progress, Run, fit


def test_lists_every_loss(run):
    code, out, _ = run("losses", width=200)
    assert code == 0
    for entry in noiseproof.losses.registry().values():
        row = next(line for line in out.splitlines() if line.split()[:1] == [entry.name])
        assert entry.kind in row
        assert entry.formula in row
        assert entry.loss.__name__ in row
        for hyper in entry.hyperparameters.values():
            assert hyper.range in row


def test_a_narrow_terminal_cuts_nothing_off(run):
    _, out, _ = run("losses", width=80)
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out


def test_explains_one(run):
    code, out, _ = run("losses", "10*nce + rce(A=-6)")
    assert code == 0
    assert "10 times nce, active" in out
    assert "1 times rce(A=-6), passive" in out
    assert "A = -6, where A < 0" in out
    assert "ICML 2020" in out
    assert "it is 64 for every prediction tried" in out  # 10 * 1 + 6 * 9
    assert "rates below 0.9" in out
    assert 'noiseproof.parse("10*nce + rce(A=-6)")' in out


def test_says_when_a_loss_is_not_robust(run):
    _, out, _ = run("losses", "ce")
    assert "over all 10 classes it goes from 23.03 to" in out
    assert "not robust by itself" in out


def test_explains_what_has_no_name(run):
    code, out, _ = run("losses", "normalize(ce + mae)")
    assert code == 0
    assert "1 times normalize(ce + mae), passive" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("losses", "nxe"), "noiseproof: unknown loss 'nxe' (did you mean 'nce'?)"),
        (
            ("losses", "anl-ce"),
            "noiseproof: anl-ce is a published loss with settings for each data set",
        ),
        (("losses", "auto"), "noiseproof: auto is one setting of loss, penalty and average, from"),
        (("losses", "nce(gamma=2)"), "noiseproof: nce has no hyper-parameter 'gamma'"),
        (("losses", "fl(gamma=-1)"), "noiseproof: fl: gamma = -1 is out of range"),
        (("losses", "ce", "--check", "1"), "noiseproof: num_classes must be at least 2"),
        (("losses", "--plot", "x.png"), "noiseproof: --plot needs a loss"),
        (("losses", "ce", "--plot", "x.bmp"), "noiseproof: a picture is written as"),
    ],
)
def test_mistakes_get_one_line(run, arguments, message):
    code, out, err = run(*arguments)
    assert code == 2
    assert err.startswith(message)
    assert err.count("\n") == 1
    assert out == ""


def test_version_and_help(run):
    assert run("--version") == (0, f"noiseproof {noiseproof.__version__}\n", "")
    code, out, _ = run("--help")
    assert code == 0
    assert "losses" in out
    code, out, _ = run("losses", "--help")
    assert code == 0
    assert "[LOSS]" in out


@pytest.mark.slow
def test_checks_one_and_all(run):
    code, out, _ = run("losses", "nce + rce", "--check", "10")
    assert code == 0
    assert "37, constant" in out
    assert "symmetric noise at rates below 0.9" in out
    assert "Lemma 3" in out
    code, out, _ = run("losses", "--check", "4")
    assert code == 0
    row = next(line for line in out.splitlines() if line.startswith("mae"))
    assert row.split() == ["mae", "passive", "0", "to", "2", "6", "below", "0.75", "1"]


@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
def test_draws_a_picture(run, tmp_path, suffix):
    path = tmp_path / f"loss.{suffix}"
    code, out, _ = run("losses", "nce + rce", "--plot", str(path))
    assert code == 0
    assert "written to" in out
    start = path.read_bytes()[:200]
    signs = {"png": b"\x89PNG", "svg": b"<svg", "html": b"<!DOCTYPE html>"}
    assert signs[suffix] in start
    assert path.stat().st_size > 5000


@pytest.fixture
def trained(run, tmp_path):
    arguments = ("train", "--epochs", "2", "--device", "cpu", "--out", str(tmp_path))
    return tmp_path, arguments, run(*arguments)


def test_train_says_what_it_does_and_where_the_results_lie(trained):
    out, _, (code, said, _) = trained
    assert code == 0
    (folder,) = (path for path in out.iterdir() if path.name != ".locks")
    assert said.startswith(f"digits, symmetric 0.4, nce+rce, seed 0\nresults go to {folder}")
    assert "epoch 2/2: loss " in said
    assert "samples/s" in said
    assert "% after 2 epochs" in said
    assert said.endswith(f"results in {folder}\n")
    assert {p.name for p in folder.iterdir()} == {
        "examples.json", "history.csv", "model.json", "model.pt", "result.json", "run.json",
    }  # fmt: skip


def test_train_says_a_finished_run_again_and_force_runs_it_anew(trained, run):
    _, arguments, (_, first, _) = trained
    code, again, _ = run(*arguments)
    assert code == 0
    assert "this run has ended before; --force runs it anew" in again
    assert first.splitlines()[-2:] == again.splitlines()[-2:]
    assert "epoch 2/2" in run(*arguments, "--force")[1]


def test_train_writes_for_tensorboard(run, tmp_path):
    pytest.importorskip("tensorboard")
    arguments = ("--epochs", "1", "--device", "cpu", "--tensorboard", "--out", str(tmp_path))
    assert run("train", *arguments)[0] == 0
    assert len(list(tmp_path.glob("*/events.out.tfevents.*"))) == 1


@pytest.mark.parametrize(("text", "value"), [("true", "True"), ("FALSE", "False")])
def test_true_and_false_in_any_case(run, text, value):
    code, said, _ = run("train", "--loss", "auto", "--choose-epoch", text, "--dry-run")
    assert code == 0
    assert dict(line.split()[:2] for line in said.splitlines()[2:])["choose_epoch"] == value
    code, _, error = run("train", "--choose-epoch", "maybe", "--dry-run")
    assert code == 2
    assert "--choose-epoch: give True or False" in error


def test_a_run_that_goes_on_says_so(run, tmp_path):
    given = ("--epochs", "3", "--batch-size", "256", "--device", "cpu", "--out", str(tmp_path))

    def stop(progress: Progress) -> None:
        if progress.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(Run(epochs=3, batch_size=256, device="cpu"), out=tmp_path, on_epoch=stop)
    left_out = "left out: 1 run that has not ended; the command that began it goes on with it"
    for command in ("results", "report"):
        assert left_out in run(command, tmp_path)[2]
    said = "it was stopped, and goes on after epoch 2 of 3"
    assert said in run("train", *given)[1]
    assert said not in run("train", *given)[1]  # it has ended


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--loss", "ncx"), "unknown loss 'ncx' (did you mean 'nce'?)"),
        (("--loss", "anl-ce"), "anl-ce has no published settings for 'digits'"),
        (("--model", "resnet43"), "unknown network 'resnet43' (did you mean 'resnet34'?)"),
        (("--noise", "symetric"), "it was 'symetric' (did you mean 'symmetric'?)"),
        (("--dataset", "cifar11"), "cifar11"),
        (("--rate", "1.5"), "rate goes from 0 to 1; it was 1.5"),
        (("--device", "tpu9"), "unknown device 'tpu9'; give cpu, cuda, cuda:1 or auto"),
    ],
)
def test_a_mistake_is_one_line(run, tmp_path, arguments, message):
    code, _, error = run("train", *arguments, "--out", str(tmp_path), "--epochs", "1")
    assert code == 2
    assert message in " ".join(error.replace("│", " ").split())


def test_a_run_that_diverges_is_one_line(run, tmp_path):
    wild = ("--lr", "1e9", "--clip", "0", "--loss", "ce", "--epochs", "3", "--device", "cpu")
    code, _, error = run("train", *wild, "--out", str(tmp_path))
    assert code == 1
    assert error.startswith("noiseproof: the ")
    assert "in epoch 1, step" in error
    assert len(error.splitlines()) == 1


def test_a_warning_is_one_line_without_a_place_in_the_code(run, tmp_path, recwarn):
    warnings.simplefilter("default")
    wrong = ("--rate", "0.95", "--epochs", "1", "--device", "cpu", "--out", str(tmp_path))
    code, out, error = run("train", *wrong)
    assert code == 0
    assert error.startswith("noiseproof: warning: outside the paper's conditions: the symmetric ")
    assert error.count("\n") == 1
    assert "% after 1 epoch\n" in out


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """Two runs, enough for a report."""
    path = tmp_path_factory.mktemp("results") / "runs.jsonl"
    history = [{"epoch": 1.0, "test_accuracy": 0.5, "train_loss": 1.0}]
    runs = [Run(loss=loss, epochs=1) for loss in ("ce", "nce+rce")]
    write_bundle(path, [Record(run.resolve(), history, {}) for run in runs])
    return path


@pytest.mark.parametrize(
    ("name", "start"),
    [("r.html", "<!doctype html>"), ("r.tex", "%"), ("r.csv", "dataset,"), ("r.MD", "")],
)
def test_a_report_is_what_its_file_is_named(run, bundle, tmp_path, name, start):
    path = tmp_path / name
    code, out, _ = run("report", str(bundle), "--out", str(path))
    assert code == 0
    text = path.read_text().lower()
    assert text.startswith(start)
    assert ("<html" in text) == (name == "r.html")
    assert "from 2 runs" in out
    assert (" kB, " in out) == (path.stat().st_size < 1e5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("r.csv", "--format", "html"), "r.csv is named as csv, and --format is html; give one"),
        (("r.html", "--format", "png"), "r.html is named as html, and --format is png; give one"),
        (("r.png",), "figures are a file each; give --format png and a folder as --out, not "),
    ],
)
def test_a_format_that_contradicts_the_file_is_one_line(run, bundle, tmp_path, arguments, message):
    name, *rest = arguments
    code, _, error = run("report", str(bundle), "--out", str(tmp_path / name), *rest)
    assert code == 2
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_runs_of_a_bench_that_fail_alike_share_a_line(run, tmp_path, monkeypatch):
    def fail(plan, *_, **__):
        bench = plan.bench
        early = Record(bench.runs[2].resolve(), [], {}, "the loss became nan")
        return benches.Outcome(bench, [early], [(r, "no device") for r in bench.runs[:2]], [], 1.0)

    monkeypatch.setattr(benches, "run", fail)
    arguments = ("--loss", "ce", "nce", "mae", "--rate", "0.6", "--seeds", "0")
    code, out, error = run("bench", "quick", *arguments, "--out", str(tmp_path))
    assert code == 1
    failed, early = error.splitlines()
    assert failed.startswith("2 runs could not be trained: no device (digits, symmetric 0.6, ")
    assert failed.endswith("seed 0, and 1 more)")
    assert early.startswith("run ")
    assert early.endswith(" ended early: the loss became nan")
    assert "\n1 run in " in out
    assert "2 are missing" in out


def test_one_run_of_a_bench(run, tmp_path, monkeypatch):
    def fail(plan, *_, **__):
        bench = plan.bench
        return benches.Outcome(bench, [], [(bench.runs[0], "no device")], [], 1.0)

    monkeypatch.setattr(benches, "run", fail)
    arguments = ("--loss", "ce", "--rate", "0.6", "--seeds", "0", "--epochs", "2")
    code, out, error = run("bench", "quick", *arguments, "--out", str(tmp_path))
    assert code == 1
    assert error == "digits, symmetric 0.6, ce, lr 0.04, seed 0 could not be trained: no device\n"
    assert ": 1 run, 0 done, 1 to do" in out
    assert "\nit will take " in out
    assert ", 1 is missing; " in out


def test_a_fault_of_ours_shows_its_traceback_and_asks_for_a_report(run, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(benches, "names", broken)
    code, _, error = run("bench", "--list")
    assert code == 70
    assert "Traceback" in error
    assert "ZeroDivisionError: division by zero" in error
    assert error.endswith("this is a fault of noiseproof: please report it with the lines above\n")


def test_a_missing_extra_is_one_line_with_the_pip_command(run, bundle, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    code, _, error = run("report", str(bundle), "--out", str(tmp_path / "r.html"))
    assert code == 2
    assert error == 'noiseproof: a report needs jinja2: pip install "noiseproof[report]"\n'
    with pytest.raises(ImportError) as missing:
        noiseproof._errors.require("jinja2", "report", "a report")
    assert isinstance(missing.value, noiseproof.MissingExtraError)


def test_mistakes_in_use_are_one_class():
    for wrong in (
        lambda: noiseproof.parse("nosuch"), lambda: noiseproof.FocalLoss(gamma=-1),
        lambda: noiseproof.FocalLoss(gama=1), lambda: noiseproof.noise.symmetric([0, 1], 2.0),
        lambda: noiseproof.noise.symmetric([0.5], 0.1), lambda: Run(rate=2),
        lambda: noiseproof.data.load("nosuch"), lambda: noiseproof.models.build("nosuch", 2),
    ):  # fmt: skip
        with pytest.raises(noiseproof.UsageError) as mistake:
            wrong()
        assert isinstance(mistake.value, ValueError)
        assert "\n" not in str(mistake.value)


def test_a_dry_run_shows_every_setting_without_torch(tmp_path):
    code = (
        "import sys; sys.argv = ['noiseproof', 'train', '--loss', 'nce+rce', '--dry-run']\n"
        "from noiseproof.cli import main; main(); sys.exit('torch' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert found.returncode == 0, found.stderr
    assert "loss nce + 0.1*rce(A=-4)" in [" ".join(x.split()) for x in found.stdout.splitlines()]
    assert Run().resolve().hash in found.stdout
    assert list(tmp_path.iterdir()) == []
