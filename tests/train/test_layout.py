"""Convolutions in memory channels last, which changes rounding alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from noiseproof import UsageError, models
from noiseproof.train import fit
from noiseproof.train._job import _digest_of_data
from noiseproof.train._model import Inputs, Model
from noiseproof.train._setup import Setup
from noiseproof.train._state import TrainState
from noiseproof.train.optimizers._sgd import SGD

from .subjects import StopError, stop_after, tiny
from .twins import CPU, PLAIN, take_steps, take_torch_steps

SHAPE = (1, 8, 8)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 6, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(96, 10),
    )  # fmt: skip


class Viewing(nn.Module):
    """Flattens as tutorials do, which tensors that lie channels last do not allow."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Conv2d(1, 4, 3), nn.Conv2d(4, 6, 3)
        self.classes = nn.Linear(96, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.second(self.first(x).relu()).relu()
        return self.classes(x.view(x.size(0), -1))


class ViewingInTraining(nn.Module):
    """The same of a head that is used in training alone, or tested alone."""

    def __init__(self, training: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head, self.when = nn.Conv2d(1, 4, 3), nn.Linear(144, 10), training

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.body(x)
        return self.head(x.view(len(x), -1) if self.training == self.when else x.flatten(1))


class StartsFromData(nn.Module):
    """Sets its scale by the first batch, and counts batches in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head = nn.Conv2d(1, 4, 3), nn.Linear(144, 10)
        self.scale, self.began = nn.Parameter(torch.ones(())), False
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.began:
            self.began = True
            self.scale.data /= x.std() + 1e-6
        if self.training:
            self.batches += 1
        return self.head((self.scale * self.body(x)).flatten(1))


@pytest.fixture
def layout(monkeypatch):
    """Says whether channels last pays, whatever this torch was built with."""

    def said(last: bool) -> None:
        monkeypatch.setattr(models, "channels_last_pays", lambda *_: last)

    return said


def test_what_takes_channels_last():
    assert models.takes_channels_last(network(), SHAPE)
    assert models.takes_channels_last(models.build("resnet18", 10, shape=(3, 32, 32)), (3, 32, 32))
    assert not models.takes_channels_last(Viewing(), SHAPE)
    assert not models.takes_channels_last(nn.Linear(3, 3), SHAPE)  # which fails whatever it is
    assert not models.takes_channels_last(nn.Flatten(), SHAPE)  # nothing is trained


@pytest.mark.parametrize("training", [True, False])
def test_one_that_flattens_with_view_in_one_mode_alone_is_trained(layout, training):
    layout(True)
    assert not models.takes_channels_last(ViewingInTraining(training), SHAPE)
    assert len(fit(tiny(epochs=1), network=ViewingInTraining(training)).history) == 1


def test_asking_calls_a_copy():
    asked = StartsFromData()
    assert models.takes_channels_last(asked, SHAPE)
    assert (asked.scale.item(), asked.batches.item(), asked.began) == (1, 0, False)
    assert asked.body.weight.grad is None


def test_a_network_has_contiguous_tensors_of_its_own_when_a_run_ends(layout, tmp_path):
    layout(True)
    run = tiny(epochs=2, ema=0.9, holdout=0.2, choose_epoch=True)
    result = fit(run, network=network())
    stopped = network()
    with pytest.raises(StopError):
        fit(run, network=stopped, out=tmp_path, name="run", on_epoch=stop_after(1))
    for made in (result.network, result.ema_network, result.last_network, stopped):
        assert made is not None
        assert all(p.is_contiguous() for p in made.parameters())
        assert all(p.storage_offset() == 0 for p in made.parameters())
        nn.utils.parameters_to_vector(made.parameters())  # which takes views


def test_asking_leaves_a_network_as_it_was():
    asked = nn.Sequential(network(), nn.Dropout())
    before = {k: v.clone() for k, v in asked.state_dict().items()}
    state = torch.get_rng_state()
    assert models.takes_channels_last(asked, SHAPE)
    assert all(torch.equal(v, before[k]) for k, v in asked.state_dict().items())
    assert asked.training
    assert asked[0][3].weight.is_contiguous()
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("given", [{}, {"nesterov": True, "weight_decay": 0.05, "clip": 0.5}])
@pytest.mark.parametrize("adopted", [True, False])
def test_the_update_is_torch_s(given, adopted):
    sgd = SGD(**{**PLAIN, **given})
    ours, theirs = network(), network()
    state = TrainState(ours, CPU, None, sgd, channels_last=True)
    if adopted:
        state.adopt(ours)
        assert not ours[3].weight.is_contiguous()
    norms = take_steps(state, ours, 0.05)
    assert norms == pytest.approx(take_torch_steps(theirs, sgd, 0.05), rel=1e-4)
    state.write_back(ours)
    expected = theirs.state_dict()
    for name, value in ours.state_dict().items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=1e-5, msg=name)


def test_training_differs_by_rounding(layout):
    run = tiny(precision="fp32", ema=0.9, crop=1, flip=True, dataset="digits")
    histories, weights = [], []
    for last in (False, True):
        layout(last)
        result = fit(run, network=network())
        histories.append([row["train_loss"] for row in result.history])
        weights.append(result.ema_network[3].weight)
    assert histories[0] == pytest.approx(histories[1], rel=1e-4)
    torch.testing.assert_close(*weights, rtol=0, atol=1e-4)


def test_a_network_that_flattens_with_view_is_trained(layout):
    layout(True)
    result = fit(tiny(epochs=1), network=Viewing())
    assert len(result.history) == 1
    assert result.network.second.weight.is_contiguous()
    assert result.network(torch.zeros(3, *SHAPE)).shape == (3, 10)


def test_ours_lie_channels_last_where_it_pays():
    trainer = Setup().trainer(tiny(model="cnn4").resolve())
    pays = torch.backends.mkldnn.is_available()
    assert trainer.state.channels_last == pays
    weight = dict(trainer.network.named_parameters())["convs.1.weight"]
    assert weight.is_contiguous(memory_format=torch.channels_last) == pays
    assert not Setup().trainer(tiny(model="mlp").resolve()).state.channels_last


def test_a_checkpoint_of_another_layout_is_refused(layout, tmp_path):
    layout(False)  # as in versions before
    with pytest.raises(StopError):
        fit(tiny(), network=network(), out=tmp_path, name="run", on_epoch=stop_after(1))
    layout(True)
    with pytest.raises(UsageError, match="or in an older version; delete it to start anew"):
        fit(tiny(), network=network(), out=tmp_path, name="run")


def test_ranks_of_different_layouts_are_refused(layout):
    """As where one machine alone has oneDNN: weights are sent flat, in the order of rank 0."""
    digests = []
    for last in (False, True, True):
        layout(last)
        digests.append(_digest_of_data(Setup().trainer(tiny().resolve(), network=network())))
    assert digests[0] != digests[1] == digests[2]


class Watching(Viewing):
    """Flattens as it says, and keeps how the output of its convolutions lies."""

    def __init__(self, takes: bool) -> None:
        super().__init__()
        self.takes, self.lay = takes, set()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count = len(x)
        x = self.second(self.first(x).relu()).relu()
        self.lay |= {not x.is_contiguous()} if count > 2 else set()  # it is tried on two
        return self.classes(x.flatten(1) if self.takes else x.view(count, -1))


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="channels last does not pay")
@pytest.mark.parametrize("takes", [True, False])
def test_predicting_lays_images_as_is_faster(layout, takes):
    asked = Watching(takes)
    model = Model(asked, Inputs(SHAPE, (0.5,), (0.2,), tuple("0123456789")))
    images = torch.randint(256, (6, *SHAPE), dtype=torch.uint8)
    layout(True)
    found = model.predict_proba(images)
    assert asked.lay == {takes}
    layout(False)
    torch.testing.assert_close(model.predict_proba(images), found)
    assert asked.lay == {takes, False}
    assert asked.second.weight.is_contiguous()
