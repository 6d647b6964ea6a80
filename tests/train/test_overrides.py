"""Data, network, loss and labels of the user's own, in place of what a run names."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import noiseproof
import noiseproof.syntax
from noiseproof import UsageError, data, models, noise, results
from noiseproof._seeds import derive
from noiseproof.train import Run, fit, fit_many
from noiseproof.train._model import Inputs
from noiseproof.train._own import network_of

from .subjects import (
    StopError,
    TiedNet,
    but_seconds,
    conv_net,
    flat_net,
    own_data,
    same,
    stop_after,
    tiny,
    weights,
)


def test_own_data():
    own = own_data()
    result = fit(tiny(dataset="mine", rate=0.2, batch_size=8, model="resnet18", epochs=1), data=own)
    assert result.network.fc.out_features == 3
    small = tiny(dataset="mine", noise="none", epochs=12, batch_size=8, lr=0.05, crop=0, flip=False)
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 36, 3))
    assert fit(small, data=own, network=network).accuracy > 0.9


@pytest.mark.parametrize(
    "network",
    [conv_net, flat_net, lambda: flat_net(dropout=0.5), TiedNet],
    ids=["batch norm", "no batch norm", "dropout", "tied"],
)
def test_own_network_holds_the_trained_weights(network):
    torch.manual_seed(0)
    own = network()
    before = weights(own)
    result = fit(tiny(loss="ce", noise="none", epochs=4, lr=0.05), network=own)
    assert result.network is own
    assert not same(before, weights(own))
    assert result.accuracy > 0.5


def test_a_network_may_keep_what_it_has_computed():
    """Such as features in training, which torch does not copy with the graph that they are of."""

    class Keeping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.body, self.head, self.seen = nn.Linear(64, 32), nn.Linear(32, 10), {}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            features = self.body(x.flatten(1)).relu()
            if self.training:
                self.seen = {"features": [features]}
            return self.head(features)

    run = tiny(ema=0.5, holdout=0.2, choose_epoch=True)
    result = fit(run, network=Keeping())
    for made in (result.network, result.ema_network, result.last_network):
        assert made.seen["features"][0].shape[1] == 32
    one, other = fit_many([run, run], overrides={"network": result.network})
    assert one.accuracy == other.accuracy


def test_dropout_is_drawn_by_the_seed_and_anew_every_epoch():
    class Watching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale, self.seen = nn.Parameter(torch.ones(10)), []

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            kept = F.dropout(torch.ones(10), training=self.training)
            if self.training:
                self.seen.append(kept)
            return x.flatten(1)[:, :10] * self.scale * kept

    def masks(seed: int) -> list[torch.Tensor]:
        torch.seed()
        network = Watching()
        fit(tiny(seed=seed, batch_size=1437), network=network)
        return network.seen

    first, second = masks(0)
    assert not torch.equal(first, second)
    assert same([first, second], masks(0))
    assert not same([first, second], masks(1))


def test_a_pretrained_network_is_where_training_starts():
    trained = fit(tiny(loss="ce", noise="none", epochs=4)).network
    before = copy.deepcopy(trained)
    still = fit(tiny(lr=0.0, epochs=1, loss="ce", momentum=0.0), network=trained)
    assert same(
        [p.detach() for p in before.parameters()], [p.detach() for p in trained.parameters()]
    )
    assert still.history[0]["train_accuracy_clean"] > 0.7
    assert fit(tiny(epochs=1, lr=0.0)).history[0]["train_accuracy_clean"] < 0.3


def test_a_network_by_name_and_the_same_one_given_are_one():
    given = models.build("mlp", 10, 1, image_size=8, seed=derive(0, "start"))
    named, own = fit(tiny()), fit(tiny(), network=given)
    assert but_seconds(named.history) == but_seconds(own.history)


@pytest.mark.parametrize(
    "loss",
    [
        F.cross_entropy,
        nn.CrossEntropyLoss(),
        lambda z, y: F.nll_loss(z.log_softmax(1), y),
        noiseproof.parse("ce"),
    ],
    ids=["function", "module", "lambda", "ours"],
)
def test_own_loss(loss):
    own, named = fit(tiny(), loss=loss), fit(tiny(loss="ce"))
    for one, two in zip(own.history, named.history, strict=True):
        assert one["train_loss"] == pytest.approx(two["train_loss"], rel=1e-3)
    assert own.accuracy == pytest.approx(named.accuracy, abs=0.02)


def test_a_loss_with_tensors_of_its_own():
    weight = torch.linspace(0.5, 1.5, 10)
    own = fit(tiny(), loss=nn.CrossEntropyLoss(weight=weight))
    again = fit(tiny(), loss=lambda z, y: F.cross_entropy(z, y, weight=weight))
    assert but_seconds(own.history) == but_seconds(again.history)


@pytest.mark.parametrize("kind", [torch.as_tensor, np.asarray])
def test_own_labels(kind):
    clean = data.load("digits").train.labels
    noisy = clean.clone()
    noisy[:400] = (noisy[:400] + 1) % 10
    labels = noise.from_labels(kind(clean), kind(noisy))
    result = fit(tiny(epochs=1), labels=labels, loss=lambda z, y: z.sum() * 0)
    assert result.history[0]["train_accuracy"] != result.history[0]["train_accuracy_clean"]
    seen = []
    fit(tiny(epochs=1), labels=labels, loss=lambda z, y: seen.append(y) or z.sum() * 0)
    assert torch.equal(torch.bincount(torch.cat(seen)), torch.bincount(noisy))
    with pytest.raises(ValueError, match="3 noisy labels were given for 1437 training samples"):
        fit(tiny(), labels=noise.from_labels([0, 1, 2], [0, 1, 1]))


def test_drawn_labels_and_the_same_ones_given_are_one():
    clean = data.load("digits").train.labels
    labels = noise.make("symmetric", clean, 0.4, num_classes=10, seed=0)
    assert but_seconds(fit(tiny(), labels=labels).history) == but_seconds(fit(tiny()).history)


class Counting(nn.Module):
    """A loss that grows with the steps it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, logits, labels):
        self.steps += 1
        return F.cross_entropy(logits, labels) * (1 + self.steps / 50)


def test_what_a_loss_remembers_is_kept(tmp_path):
    whole = fit(tiny(epochs=3), loss=Counting())
    with pytest.raises(StopError):
        fit(tiny(epochs=3), loss=Counting(), out=tmp_path, name="x", on_epoch=stop_after(2))
    resumed = fit(tiny(epochs=3), loss=Counting(), out=tmp_path, name="x")
    assert but_seconds(resumed.history) == but_seconds(whole.history)


class Remembering(nn.Module):
    """A network whose buffers are replaced, and one that is there only after a first call."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 10)
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("seen", None)

    def forward(self, x):
        self.seen = torch.ones(())
        if self.training:
            self.mean = 0.9 * self.mean + 0.1
        return self.linear(x.flatten(1))


def test_buffers_that_a_network_replaces_are_its_own():
    network = Remembering()
    fit(tiny(), network=network)
    assert network.mean > 0.5


def test_a_loss_in_another_type_and_a_network_in_another_type():
    double = fit(tiny(epochs=1), loss=lambda z, y: F.cross_entropy(z.double(), y))
    single = fit(tiny(epochs=1), loss=F.cross_entropy)
    assert double.accuracy == pytest.approx(single.accuracy, abs=0.02)
    with pytest.raises(ValueError, match=r"weights are kept in float32, and \S+ is float64: give"):
        fit(tiny(), network=flat_net().double())


def test_equal_runs_are_trained_once():
    epochs = []
    first, second = fit_many([tiny(), tiny()], on_epoch=lambda p: epochs.append(p.epoch))
    assert epochs == [1, 2]
    assert first is second


def test_a_compiled_network_needs_a_graph():
    with pytest.raises(ValueError, match="compiled=True is for steps that are captured"):
        fit(tiny(), compiled=True)


def test_plain_labels_are_held_against_those_of_the_data_set():
    digits = data.load("digits")
    labels = digits.train.labels.clone()
    labels[:100] = (labels[:100] + 1) % 10
    result = fit(Run(epochs=1, device="cpu"), labels=labels)
    drawn = fit(
        Run(epochs=1, device="cpu"),
        labels=noise.from_labels(digits.train.labels, labels, num_classes=10),
    )
    assert result.history[0]["train_loss"] == drawn.history[0]["train_loss"]


def test_classes_that_are_confused_are_those_of_the_data():
    run = tiny(noise="asymmetric", model="mlp")
    with pytest.raises(ValueError, match="no asymmetric noise is known for dataset 'own'"):
        fit(run, data=own_data())


def test_what_is_one_s_own_is_called_by_its_name(tmp_path):
    mine = own_data()
    network = nn.Sequential(nn.Flatten(), nn.Linear(mine.train.images[0].numel(), mine.num_classes))
    result = fit(
        tiny(epochs=1), data=mine, network=network, loss=noiseproof.parse("ce"), out=tmp_path
    )
    (found,) = results.read(tmp_path).records
    named = {k: getattr(found.run, k) for k in ("dataset", "model", "loss", "noise")}
    assert named == {"dataset": "own", "model": "Sequential", "loss": "ce", "noise": "given"}
    assert found.about["noise_rate"] is None  # nobody knows it
    assert found.about["overrides"].keys() == {"data", "loss", "network"}
    assert result.run == found.run
    labels = fit(tiny(epochs=1), labels=data.load("digits").train.labels, out=tmp_path)
    (found,) = results.read(labels.folder).records
    assert (found.run.noise, found.run.rate) == ("given", 0.0)
    assert fit(tiny(noise="symmetric", rate=0.5, epochs=1, model="mlp", batch_size=8),
               data=own_data()).run.noise == "symmetric"  # fmt: skip


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"loss": "nce"}, r"loss must be a function, not 'nce'; a text goes to Run\(loss=\.\.\.\)"),
        ({"loss": nn.CrossEntropyLoss}, "the loss is the class CrossEntropyLoss: give an instan"),
        ({"loss": lambda z, y: F.cross_entropy(z, y).item()}, r"number .* this one gave float: "),
        ({"loss": lambda z, y: (F.cross_entropy(z, y), 1)}, r"gave tuple: .* return it alone"),
        ({"loss": lambda z, y: F.cross_entropy(z.detach(), y)}, "the loss has no gradient: comp"),
        ({"network": [flat_net()]}, r"must be a Module, .* not \[Sequential\( \(0\): Flatten"),
        ({"network": "cnn4"}, r"network must be a Module, or .* 'cnn4'; a network by its name"),
        ({"network": nn.DataParallel(flat_net())}, "in DataParallel: give network.module; several"),
        ({"network": nn.LazyLinear(10)}, "lazy layers that have seen no input: call it once on"),
        ({"network": nn.Sequential(nn.Flatten(), nn.Linear(64, 5))},
         r"Sequential gives \[2, 5\] for two inputs; logits \[N, 10\] are needed"),
        ({"network": nn.Linear(3, 10)}, r"model Linear fails on inputs \[N, 1, 8, 8\]: .*mat1"),
        ({"data": (1, 2)}, r"data must be a Dataset, not \(1, 2\); data\.from_arrays makes"),
    ],
)  # fmt: skip
def test_what_cannot_be_one_s_own(own, message):
    with pytest.raises(ValueError, match=message):
        fit(tiny(), **own)


@pytest.mark.parametrize("run", ["auto", {"epochs": 2}])
def test_what_is_no_run(run):
    with pytest.raises(UsageError, match=r"a run is train\.Run\(\.\.\.\), not "):
        fit(run)


def test_a_network_that_cannot_be_copied_is_trained():
    network = flat_net()
    network.lock = threading.Lock()
    with pytest.raises(TypeError, match="pickle"):
        models.copy_of(network)
    assert fit(tiny(epochs=1), network=network).network is network
    for several in ({"ema": 0.9}, {"choose_epoch": True}, {"loss": "auto"}):  # before it is trained
        with pytest.raises(UsageError, match="model Sequential cannot be copied, and a run with"):
            fit(tiny(epochs=1, **several), network=network)
    plain = {"loss": "auto", "ema_horizon": 0, "choose_epoch": False}
    assert fit(tiny(epochs=1, **plain), network=network).network is network


def test_a_network_is_tried_where_it_will_be_trained(monkeypatch):
    """Layers of some libraries compute on a GPU alone, for which meta stands here."""
    tried = []
    monkeypatch.setattr(models, "check_network", lambda network, *_, **__: tried.append(network))
    network = flat_net()
    inputs = Inputs((1, 8, 8), (0.5,), (0.5,), tuple("0123456789"))
    assert network_of(tiny().resolve(), network, inputs, torch.device("meta")) is network
    assert next(tried[0].parameters()).is_meta
    assert not next(network.parameters()).is_meta


def test_a_resolved_run_takes_a_name_and_no_overrides(tmp_path):
    resolved = tiny().resolve()
    with pytest.raises(UsageError, match="names all that it is trained with: give the Run itself"):
        fit(resolved, network=flat_net(), out=tmp_path)
    assert fit(resolved, out=tmp_path, name="mine").folder.name == "mine"
    assert fit(tiny(), out=tmp_path).network is not None


def test_an_override_that_is_none_is_named():
    with pytest.raises(UsageError, match=r"unknown override 'netwrok' \(did you mean 'network'"):
        fit_many([tiny()], overrides={"netwrok": flat_net()})
