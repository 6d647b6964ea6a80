"""A trained model is used without guessing: it brings its preprocessing."""

from __future__ import annotations

import csv
import dataclasses
import sys

import numpy as np
import pytest
import torch

from noiseproof import UsageError, cli, data
from noiseproof.train import fit, load
from noiseproof.train._model import Inputs, Model

from .subjects import StopError, conv_net, flat_net, own_data, stop_after, tiny


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return fit(tiny(epochs=3, ema=0.5), out=tmp_path_factory.mktemp("runs"))


def test_it_predicts_as_it_was_tested(trained):
    test = data.load("digits").test
    model = load(trained.folder)
    assert not model.network.training
    found = model.predict(test.images)
    assert float((found == test.labels).double().mean()) == pytest.approx(trained.accuracy)
    averaged = load(trained.folder, ema=True).predict(test.images)
    expected = trained.history[-1]["test_accuracy_ema"]
    assert float((averaged == test.labels).double().mean()) == pytest.approx(expected)
    assert model.classes == data.load("digits").classes


def test_any_layout_and_scale_gives_the_same(trained):
    images = data.load("digits").test.images[:20]
    model = load(trained.folder)
    expected = model.predict_proba(images)
    assert expected.sum(1).tolist() == pytest.approx([1.0] * 20)
    for other in (images.numpy(), images[:, 0], images.permute(0, 2, 3, 1).numpy(), images / 255):
        torch.testing.assert_close(model.predict_proba(other), expected)
    torch.testing.assert_close(model.predict_proba(images, batch_size=3), expected)
    assert model.predict_proba(images[:0]).shape == (0, 10)


def test_it_predicts_in_eval_mode():
    network = conv_net()  # with batch norm
    model = Model(network, Inputs((1, 8, 8), (0.5,), (0.2,), tuple("0123456789")))
    images = data.load("digits").test.images
    expected, before = model.predict_proba(images), network[1].running_mean.clone()
    assert torch.equal(model.train().predict_proba(images), expected)
    assert torch.equal(network[1].running_mean, before)


class Viewing(torch.nn.Module):
    """Flattens as tutorials do, which tensors that lie channels last do not allow."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = torch.nn.Conv2d(3, 4, 3), torch.nn.Linear(64, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.body(x)
        return self.head(x.view(len(x), -1))


def test_any_layout_reaches_a_network_that_flattens_with_view():
    images = own_data().test.images
    model = Model(Viewing(), Inputs((3, 6, 6), (0.5,) * 3, (0.2,) * 3, ("a", "b", "c")))
    expected = model.predict_proba(images)
    for other in (
        images.permute(0, 2, 3, 1).contiguous().numpy(),
        images.to(memory_format=torch.channels_last),
    ):
        assert torch.equal(model.predict_proba(other), expected)
    of_features = Model(Viewing(), dataclasses.replace(model.inputs, kind="features"))
    assert of_features.predict_proba(torch.rand(5, 6, 6, 3).permute(0, 3, 1, 2)).shape == (5, 3)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.zeros(2, 1, 9, 9, dtype=torch.uint8), r"\[N, C, H, W\] of 1x8x8; .* \[2, 1, 9, 9\]"),
        (torch.zeros(2, 8, 8, dtype=torch.int64), "uint8, 0 to 255, or floats, 0 to 1; .* int64"),
        (np.full((2, 8, 8), 200.0), "floating-point images go from 0 to 1"),
    ],
)
def test_other_images_are_refused(trained, images, message):
    with pytest.raises(UsageError, match=message):
        load(trained.folder).predict(images)


def test_data_of_ones_own_and_a_network_of_ones_own(tmp_path):
    own = own_data()
    by_name = fit(tiny(epochs=1, batch_size=8, model="cnn4"), data=own, out=tmp_path, name="a")
    assert load(by_name.folder).predict(own.test.images).shape == (30,)
    given = fit(tiny(epochs=1), network=flat_net(), out=tmp_path, name="b")
    with pytest.raises(UsageError, match="a network of your own, Sequential: give network="):
        load(given.folder)
    model = load(given.folder, network=flat_net(seed=5))
    digits = data.load("digits").test
    found = float((model.predict(digits.images) == digits.labels).double().mean())
    assert found == pytest.approx(given.accuracy)
    with pytest.raises(UsageError, match=r"model\.pt cannot be loaded into Sequential"):
        load(given.folder, network=conv_net())


def test_what_is_not_there_is_named(tmp_path, trained):
    with pytest.raises(UsageError, match=r"has no run\.json"):
        load(tmp_path)
    plain = fit(tiny(epochs=1), out=tmp_path)
    with pytest.raises(UsageError, match=r"has no model-ema\.pt; train it with ema="):
        load(plain.folder, ema=True)
    for given in (tiny(), fit(tiny(epochs=1)).folder):  # which kept nothing
        with pytest.raises(UsageError, match=r"load takes the folder of a run, result\.folder of"):
            load(given)
    stopped = tiny(epochs=3, choose_epoch=True)
    with pytest.raises(StopError):
        fit(stopped, out=tmp_path, on_epoch=stop_after(1))
    for last in (False, True):
        with pytest.raises(UsageError, match="has not ended; the command that began it goes on"):
            load(tmp_path / stopped.resolve().folder, last=last)


def run_cli(monkeypatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["noiseproof", *map(str, arguments)])
    cli.main()


def test_predict_from_the_command_line(trained, tmp_path, monkeypatch, capsys):
    image = pytest.importorskip("PIL.Image")
    test = data.load("digits").test
    np.savez(tmp_path / "a.npz", images=test.images[:4].numpy())
    image.fromarray(test.images[0, 0].numpy()).save(tmp_path / "b.png")
    run_cli(monkeypatch, "predict", trained.folder, tmp_path / "a.npz", tmp_path / "b.png")
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    expected = load(trained.folder).predict(test.images[:4]).tolist()
    assert [row["class"] for row in rows] == [str(k) for k in [*expected, expected[0]]]
    run_cli(monkeypatch, "predict", trained.folder, tmp_path / "a.npz", "--out", tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text().count("\n") == 5
    (tmp_path / "c.png").write_text("no image")
    with pytest.raises(SystemExit) as stop:
        run_cli(monkeypatch, "predict", trained.folder, tmp_path / "c.png")
    assert stop.value.code == 2
    assert "c.png: no image" in capsys.readouterr().err
