"""A bench says before it begins which data is missing, where it was looked for and what to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

from noiseproof.catalogue import DATASETS
from noiseproof.cli import _bench


def dry_run(run, tmp_path, bench: str, *arguments: object) -> list[str]:
    """The lines that speak of data."""
    out = ("--out", tmp_path / "runs", "--dry-run")
    code, said, error = run("bench", bench, *arguments, *out)
    assert (code, error) == (0, "")
    return [line for line in said.splitlines() if line.startswith("data ") or "data root" in line]


def test_one_line_says_what_is_missing_and_where_it_was_looked_for(run, tmp_path):
    root = tmp_path / "data"
    root.mkdir()
    (line,) = dry_run(run, tmp_path, "table-symmetric", "--data-root", root)
    assert line.startswith("data that is not here: mnist, looked for in ")
    for folder in ("MNIST/raw", "noiseproof/mnist", "cifar-10-batches-py", "noiseproof/cifar100"):
        assert str(root / folder) in line
    assert "; it is downloaded when the bench runs, or name another root with --data-root" in line


def test_without_pooch_the_line_has_the_pip_command(run, tmp_path, monkeypatch):
    monkeypatch.setattr(_bench, "find_spec", lambda _: None)
    (line,) = dry_run(run, tmp_path, "figure-2", "--data-root", tmp_path)
    assert 'after pip install "noiseproof[data]"' in line


def test_a_root_that_is_no_folder_is_said(run, tmp_path):
    (line,) = dry_run(run, tmp_path, "figure-2", "--data-root", tmp_path / "nowhere")
    assert line.startswith(f"cifar10: the data root {tmp_path / 'nowhere'} is no folder; make it")


@pytest.mark.parametrize("folder", ["cifar-10-batches-py", "", "noiseproof/cifar10"])
def test_what_is_here_is_not_missed(run, tmp_path, folder):
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    for name in DATASETS["cifar10"].files.digests:
        (tmp_path / folder / name).touch()
    assert dry_run(run, tmp_path, "figure-2", "--data-root", tmp_path) == []


def test_an_archive_is_enough(run, tmp_path):
    (tmp_path / "cifar-10-python.tar.gz").touch()
    assert dry_run(run, tmp_path, "figure-2", "--data-root", tmp_path) == []


def test_human_labels_are_data_too(run, tmp_path):
    (tmp_path / "cifar-10-python.tar.gz").touch()
    arguments = ("--dataset", "cifar10", "--data-root", tmp_path)
    (line,) = dry_run(run, tmp_path, "human-noise", *arguments)
    assert line.startswith(f"data that is not here: cifar10n, looked for in {tmp_path / 'cifar-n'}")


def test_the_digits_are_never_missing(run, tmp_path):
    assert dry_run(run, tmp_path, "quick", "--data-root", tmp_path / "nowhere") == []


def test_it_is_said_without_torch(tmp_path):
    arguments = ["noiseproof", "bench", "figure-2", "--dry-run", "--data-root", str(tmp_path)]
    code = (
        f"import sys; sys.argv = {arguments}\n"
        "from noiseproof.cli import main; main(); sys.exit('torch' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert found.returncode == 0, found.stderr
    assert "data that is not here: cifar10" in found.stdout
