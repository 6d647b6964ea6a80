"""table-webvision, from image files in the published layout to a report, by two commands."""

from __future__ import annotations

import pytest

from noiseproof.bench import bench
from noiseproof.results import read
from tests.bench.test_plan import run_cli
from tests.data.trees import truncate, write_image, write_imagenet, write_webvision


def test_it_is_the_paper_s_table():
    found = bench("table-webvision")
    assert [key[0] for key in found.cells] == ["webvision"] * 5
    for run in (*found.runs, *found.narrow(protocol="authors").runs):
        resolved = run.resolve()
        assert resolved.model == "resnet50-imagenet"
        assert (resolved.epochs, resolved.batch_size, resolved.crop_size) == (250, 512, 224)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "losses"),
    [
        ("paper", ("ce", "nce+rce")),
        pytest.param("authors", ("nce+mae",), marks=pytest.mark.long),
    ],
)
def test_from_start_to_report(tmp_path, monkeypatch, capsys, protocol, losses):
    """At the size that is published: 256 pixels, of which 224 are trained on; a small network."""
    base = write_webvision(tmp_path, each=2)
    write_imagenet(tmp_path)
    truncate(base / "google/q0001/0.jpg")
    write_image(base / "odd.png", 5, mode="I;16")
    (base / "odd.png").replace(base / "google/q0002/1.jpg")
    (base / "google/q0004/0.jpg").unlink()
    out, cache = tmp_path / "runs", tmp_path / "cache"
    command = [
        "bench", "table-webvision", "--protocol", protocol, "--loss", *losses, "--epochs", 1,
        "--model", "mlp", "--data-root", tmp_path, "--out", out, "--cache", cache, "--workers", 1,
        "--stream", "yes", "--device", "cpu",
    ]  # fmt: skip
    with pytest.raises(SystemExit):
        run_cli(monkeypatch, *command)
    assert "q0001/0.jpg: a damaged image" in capsys.readouterr().err
    run_cli(monkeypatch, *command, "--skip-unreadable")
    said = capsys.readouterr().out
    assert f"{len(losses)} runs in" in said or "1 run in" in said
    assert len(list(cache.glob("*.images"))) == 2  # to train on, and to test on
    records = read(out).records
    assert {r.run.dataset for r in records} == {"webvision"}
    assert {r.run.protocol for r in records} == {protocol}
    assert all("test_accuracy" in r.history[-1] for r in records)
    run_cli(monkeypatch, "report", out, "--out", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "WebVision-mini" in page
