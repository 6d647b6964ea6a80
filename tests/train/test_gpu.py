"""On a GPU: a captured step is the plain step, and packed runs are the runs alone."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from noiseproof.data import _loader
from noiseproof.results import Folder
from noiseproof.train import Run, fit, fit_many
from noiseproof.train._pack import GraphPack, Pack
from noiseproof.train._setup import Setup
from tests.data.trees import write_folder

from .subjects import StopError, but_seconds, flat_net, stop_after
from .test_distributed import answers, torchrun
from .test_layout import Viewing

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

SETTINGS = {"batch_size": 24, "epochs": 2, "crop": 1, "flip": True, "device": "cuda"}  # 60 steps


@pytest.fixture(autouse=True)
def _same_every_time():
    with torch.backends.cudnn.flags(deterministic=True, benchmark=False):
        yield


def losses(pack: type[Pack], runs: list[Run], **keywords) -> list[torch.Tensor]:
    setup = Setup()
    made = pack([setup.trainer(run.resolve(on_gpu=True)) for run in runs], **keywords)
    made.train_epoch(0)
    return [t._losses.clone() for t in made.trainers]


@pytest.mark.parametrize("model", ["cnn4", "cnn8", "resnet18", "mlp"])
def test_a_graph_gives_the_plain_losses(model):
    """The first 60 steps in float32, to the last digit but one."""
    run = Run(model=model, precision="fp32", **SETTINGS)
    plain, graph = losses(Pack, [run]), losses(GraphPack, [run], compiled=False)
    torch.testing.assert_close(graph[0], plain[0], rtol=1e-6, atol=0)


def test_a_network_that_flattens_with_view_is_trained():
    """Tensors that lie channels last cannot be flattened so."""
    run = Run(precision="fp32", epochs=1, batch_size=24, device="cuda")
    assert len(fit(run, network=Viewing()).history) == 1


CHANGED = {
    "adamw": {"optimizer": "adamw", "decay_on": "matrices"},
    "warm-up by step": {"optimizer": "adamw", "warmup": 0.5, "schedule_by": "step"},
    "SGD on matrices": {"decay_on": "matrices", "weight_decay": 0.1, "warmup": 0.5},
    "mixup": {"mixup": 0.4, "label_smoothing": 0.1},
    "shrunk": {"shrink": 2.0},
    "shrunk ever more": {"shrink": 4.0, "shrink_schedule": "linear", "nesterov": True},
}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("changed", CHANGED.values(), ids=CHANGED)
def test_a_graph_gives_the_plain_losses_with_every_setting(changed, precision):
    run = Run(model="cnn4", precision=precision, **changed, **SETTINGS)
    (plain,), (graph,) = losses(Pack, [run]), losses(GraphPack, [run], compiled=False)
    torch.testing.assert_close(graph, plain, rtol=1e-6, atol=0)


def test_runs_of_different_settings_share_a_graph():
    runs = [Run(model="cnn4", precision="fp32", **c, **SETTINGS) for c in CHANGED.values()]
    packed = losses(GraphPack, runs, compiled=False)
    for run, together in zip(runs, packed, strict=True):
        (alone,) = losses(GraphPack, [run], compiled=False)
        torch.testing.assert_close(together, alone, rtol=1e-6, atol=0)


def test_packed_runs_give_what_they_give_alone():
    runs = [
        Run(model="cnn8", precision="fp32", loss=loss, seed=seed, **SETTINGS)
        for loss, seed in (("nce+rce", 0), ("ce", 1), ("nfl+mae", 2))
    ]
    packed = losses(GraphPack, runs, compiled=False)
    for run, together in zip(runs, packed, strict=True):
        (alone,) = losses(GraphPack, [run], compiled=False)
        torch.testing.assert_close(together, alone, rtol=1e-6, atol=0)


def test_a_compiled_network_begins_the_same():
    """Another order of sums: the first steps agree, later ones drift apart as rounding grows."""
    run = Run(model="mlp", precision="fp32", **SETTINGS)
    (plain,) = losses(Pack, [run])
    (compiled,) = losses(GraphPack, [run], compiled=True)
    torch.testing.assert_close(compiled[:10], plain[:10], rtol=1e-4, atol=0)


def test_gpu_and_cpu_tell_the_same_story():
    run = {"model": "cnn4", "loss": "nce", "rate": 0.6, "epochs": 10}
    gpu, cpu = (fit(Run(device=device, **run)).accuracy for device in ("cuda", "cpu"))
    assert abs(gpu - cpu) < 0.1


def test_stopped_in_the_middle_it_goes_on_to_the_same_numbers(tmp_path):
    """Checkpoints are copied while the GPU goes on: each must be of its own epoch."""
    settings = SETTINGS | {"epochs": 4}
    runs = [Run(model="cnn4", loss=loss, **settings) for loss in ("ce", "nce")]
    runs += [Run(model="cnn4", loss="ce", **settings, **c) for c in CHANGED.values()]
    chosen = {"ema_horizon": 0.1, "choose_epoch": True, "shrink": 2.0}
    runs += [Run(model="cnn4", loss=loss, **settings, **chosen) for loss in ("ce", "nce")]
    whole = fit_many(runs)

    def stop(progress):
        if progress.epoch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_many(runs, out=tmp_path, on_epoch=stop)
    for run, expected, found in zip(runs, whole, fit_many(runs, out=tmp_path), strict=True):
        assert found.network is not None, f"{run} was not taken up again"
        for one, two in zip(expected.history, found.history, strict=True):
            one, two = ({**row, "seconds": 0} for row in (one, two))
            assert one == pytest.approx(two, rel=1e-6, nan_ok=True)


def test_dropout_is_drawn_the_same_after_a_stop(tmp_path):
    """Before a capture steps are tried, which draw too."""
    run = Run(epochs=4, batch_size=24, device="cuda")
    whole = fit(run, network=flat_net(dropout=0.5), loss=torch.nn.functional.cross_entropy)
    own = {"network": flat_net(dropout=0.5), "loss": torch.nn.functional.cross_entropy}
    with pytest.raises(StopError):
        fit(run, out=tmp_path, name="mine", on_epoch=stop_after(2), **own)
    found = fit(run, out=tmp_path, name="mine", **own)
    for one, two in zip(whole.history, found.history, strict=True):
        assert {**one, "seconds": 0} == pytest.approx({**two, "seconds": 0}, rel=1e-4)


def test_stopped_and_taken_up_again_side_by_side(tmp_path):
    runs = [Run(model="cnn4", loss=loss, **SETTINGS) for loss in ("ce", "nce")]
    fit_many(runs[:1], out=tmp_path)
    results = fit_many(runs, out=tmp_path)
    assert [len(r.history) for r in results] == [2, 2]
    assert results[0].network is None


def test_a_network_of_the_user_s_own():
    network = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.Dropout(0.1),
        torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 10),
    )  # fmt: skip
    result = fit(Run(epochs=15, device="cuda"), network=network, loss=torch.nn.CrossEntropyLoss())
    assert result.accuracy > 0.5
    assert next(network.parameters()).device.type == "cpu"


STREAMED = {
    "padded": {"crop": 2, "ema": 0.9},
    "not augmented": {"crop": 0, "flip": False},
    "resized": {"crop": 0, "crop_size": 12, "crop_scale": 0.3, "jitter": 0.4, "holdout": 0.25},
}


@pytest.mark.parametrize("graph", [True, False])
@pytest.mark.parametrize("settings", STREAMED.values(), ids=STREAMED)
def test_streamed_images_give_the_numbers_of_resident_ones(tmp_path, monkeypatch, settings, graph):
    """Those of the next chunk are copied and augmented while steps read the one before."""
    monkeypatch.setitem(_loader._CHUNK_PIXELS, "cuda", 16 * 16 * 16)  # two batches in a chunk
    write_folder(tmp_path / "photos/train", each=60)
    write_folder(tmp_path / "photos/test", each=9)
    run = Run(
        dataset=f"folder:{tmp_path / 'photos'}", image_size=16, model="cnn4", batch_size=8,
        epochs=3, precision="fp32", device="cuda", **{"flip": True, **settings},
    )  # fmt: skip
    resident, streamed = (
        fit(replace(run, stream=stream), graph=graph).history for stream in ("no", "yes")
    )
    for one, two in zip(resident, streamed, strict=True):
        assert {**one, "seconds": 0} == pytest.approx({**two, "seconds": 0}, rel=1e-6)


def test_nccl_gives_the_numbers_of_one_process(tmp_path):
    """Sums, copies and means over one rank change nothing."""
    ended = torchrun("tests.train.rank", "to itself", tmp_path, ranks=1)
    assert ended.returncode == 0, ended.stderr
    ((backend, alone, sent),) = answers(tmp_path, 1)
    assert "nccl" in backend
    for one, two in zip(alone, sent, strict=True):
        assert one == pytest.approx(two, rel=1e-6)


def test_torchrun_with_one_gpu_is_the_plain_command(tmp_path):
    command = ["noiseproof", "train", "--model", "cnn4", "--epochs", "2", "--device", "cuda"]
    command += ["--precision", "fp32", "--out"]
    ended = torchrun(*command, tmp_path / "one", ranks=1)
    assert ended.returncode == 0, ended.stderr
    subprocess.run([sys.executable, "-m", *command, str(tmp_path / "two")], check=True)
    first, second = (
        but_seconds(Folder(next((tmp_path / name).glob("*/history.csv")).parent).read_history())
        for name in ("one", "two")
    )
    for one, two in zip(first, second, strict=True):
        assert one == pytest.approx(two, rel=1e-3, abs=1e-2)  # cuDNN may choose other kernels
