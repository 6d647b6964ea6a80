"""Networks, losses and weights that a run names by where they are; layers that it freezes."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from noiseproof import UsageError, _imports, results, train
from noiseproof._imports import ChangedSourceWarning
from noiseproof.cli import main
from noiseproof.models import WeightsWarning
from noiseproof.train import fit, fit_many

from .subjects import (
    StopError,
    but_seconds,
    conv_net,
    flat_net,
    same,
    stop_after,
    tiny,
    weights,
)

NETS = """
from torch import nn

def small(num_classes, input_shape, hidden=16):
    return nn.Sequential(
        nn.Flatten(), nn.Linear(input_shape.numel(), hidden), nn.ReLU(),
        nn.Linear(hidden, num_classes),
    )
"""
LOSSES = """
import torch
from torch import nn
from torch.nn import functional as F
from noiseproof.losses import register

def mine(logits, labels):
    return F.cross_entropy(logits, labels)

@register
def of_logits(logits):
    return -logits.log_softmax(1)

class Module(nn.Module):
    def forward(self, logits, labels):
        return F.cross_entropy(logits, labels)

class Needy(Module):
    def __init__(self, weight):
        super().__init__()

instance = Module()
number = 3
"""


def small(num_classes, input_shape, hidden=16):
    return nn.Sequential(
        nn.Flatten(), nn.Linear(input_shape.numel(), hidden), nn.ReLU(),
        nn.Linear(hidden, num_classes),
    )  # fmt: skip


def test_a_network_by_its_place_needs_no_name(own_modules, tmp_path):
    own_modules(mynets=NETS)
    run = tiny(model="mynets:small")
    first = fit(run, out=tmp_path / "out")
    assert first.network[1].out_features == 16
    assert first.folder.name == run.resolve().hash
    assert fit(run, out=tmp_path / "out").network is None  # it was read
    own_modules(mynets=NETS.replace("hidden=16", "hidden=24"))
    second = fit(run, out=tmp_path / "out")
    assert second.network[1].out_features == 24  # imported anew in the same process
    found = results.read(tmp_path / "out").records
    assert {r.run.overrides for r in found} == {()}
    assert len({r.run.model for r in found}) == 2


def test_it_goes_on_from_where_it_stopped(own_modules, tmp_path):
    own_modules(mynets=NETS, mylosses=LOSSES)
    run = tiny(
        model="mynets:small", loss="normalize(of_logits)", imports=["mylosses"], freeze=["1.bias"]
    )
    whole = fit(run)
    with pytest.raises(StopError):
        fit(run, out=tmp_path / "out", on_epoch=stop_after(1))
    resumed = fit(run, out=tmp_path / "out")
    assert but_seconds(resumed.history) == but_seconds(whole.history)


def test_a_factory_named_or_given(own_modules):
    own_modules(mynets=NETS)
    seeds = [tiny(model="mynets:small", seed=s, noise="none") for s in (0, 1)]
    named = fit_many(seeds)
    given = fit_many([tiny(seed=s, noise="none") for s in (0, 1)], overrides={"network": small})
    assert [but_seconds(r.history) for r in named] == [but_seconds(r.history) for r in given]
    assert given[0].run.model == "small"
    assert given[0].run.overrides == ("network",)
    still = [
        fit(tiny(seed=s, lr=0.0, momentum=0.0, epochs=1), network=small).network for s in (0, 0, 1)
    ]
    assert same(weights(still[0]), weights(still[1]))
    assert not same(weights(still[0]), weights(still[2]))


class Flat(nn.Module):
    def __init__(self, num_classes: int, scale: float = 1.0) -> None:
        super().__init__()
        self.linear, self.scale = nn.Linear(64, num_classes), scale

    def forward(self, x):
        return self.linear(x.flatten(1)) * self.scale


def test_a_class_is_a_factory_whose_code_is_compared(tmp_path, monkeypatch):
    first = fit(tiny(), network=Flat, out=tmp_path, name="flat")
    assert isinstance(first.network, Flat)
    assert fit(tiny(), network=Flat, out=tmp_path, name="flat").network is None
    assert train.load(first.folder, network=Flat).network.scale == 1.0
    with pytest.raises(UsageError, match="has a network of your own, Flat: give network="):
        train.load(first.folder)
    monkeypatch.setattr(Flat, "forward", lambda self, x: self.linear(x.flatten(1)))
    with pytest.raises(UsageError, match="the network differs"):
        fit(tiny(), network=Flat, out=tmp_path, name="flat")
    with pytest.raises(UsageError, match="network must be a Module, or a function that makes one"):
        fit(tiny(), network="small")


@pytest.mark.parametrize("name", ["mine", "of_logits", "Module", "instance"])
def test_a_loss_by_its_place(own_modules, name):
    own_modules(mylosses=LOSSES)
    own = fit(tiny(loss=f"mylosses:{name}", l1=0.0)).history
    given = fit(tiny(), loss=F.cross_entropy).history
    assert [row["train_loss"] for row in own] == pytest.approx(
        [row["train_loss"] for row in given], rel=1e-3
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nosuch", "loss mylosses:nosuch: mylosses has no 'nosuch'"),
        ("number", "loss mylosses:number is a int, not a function of logits"),
        (
            "Needy",
            r"loss mylosses:Needy is a class that needs arguments \(.*weight.*; name an inst",
        ),
    ],
)
def test_what_is_no_loss(own_modules, name, message):
    own_modules(mylosses=LOSSES)
    with pytest.raises(UsageError, match=message):
        fit(tiny(loss=f"mylosses:{name}"))


def test_a_resolved_run_of_a_file_that_changed_is_refused(own_modules):
    own_modules(mynets=NETS, mylosses=LOSSES)
    resolved = tiny(model="mynets:small", loss="mylosses:mine").resolve()
    own_modules(mynets=NETS + "\n")
    with pytest.raises(UsageError, match="model mynets:small: mynets has changed since, from @"):
        fit(resolved)


def forget(module: str) -> None:
    """As in a process that has not imported it."""
    del sys.modules[module], _imports._loaded[module]


def test_a_trained_model_is_built_again(own_modules, tmp_path):
    folder = own_modules(mynets=NETS)
    trained = fit(tiny(model="mynets:small"), out=tmp_path / "out")
    model = train.load(trained.folder)
    assert same(weights(model.network), weights(trained.network))
    forget("mynets")
    own_modules(mynets=NETS + "# the same\n")
    with pytest.warns(ChangedSourceWarning, match="mynets has changed since, from @") as caught:
        again = train.load(trained.folder)
    assert caught[0].filename == __file__
    assert same(weights(again.network), weights(trained.network))
    forget("mynets")
    own_modules(mynets=NETS.replace("hidden=16", "hidden=24"))
    with pytest.warns(ChangedSourceWarning), pytest.raises(UsageError, match="cannot be loaded"):
        train.load(trained.folder)
    assert same(
        weights(train.load(trained.folder, network=small).network), weights(trained.network)
    )
    forget("mynets")
    (folder / "mynets.py").unlink()
    with pytest.raises(UsageError, match=r"mynets.py cannot be read|no module 'mynets'"):
        train.load(trained.folder)


def test_weights_to_start_from(own_modules, tmp_path):
    own_modules(mynets=NETS)
    run = tiny(model="mynets:small", noise="none", loss="ce", epochs=6, lr=0.05)
    trained = fit(run, out=tmp_path / "out")
    start = {"weights": trained.folder / "model.pt", "lr": 0.0, "momentum": 0.0, "epochs": 1}
    still = fit(tiny(model="mynets:small", noise="none", loss="ce", **start))
    assert same(weights(still.network), weights(trained.network))
    assert still.history[0]["test_accuracy"] == trained.history[-1]["test_accuracy"]
    given = fit(tiny(noise="none", loss="ce", **start), network=small)  # also one that is given
    assert same(weights(given.network), weights(trained.network))


def test_fine_tuning_goes_on_and_is_found_again(tmp_path):
    torch.save(fit(tiny(noise="none", loss="ce")).network.state_dict(), tmp_path / "a.pt")
    run = tiny(loss="ce", seed=3, weights=tmp_path / "a.pt")
    whole = fit(run)
    assert (
        whole.history[0]["test_accuracy"] > fit(tiny(loss="ce", seed=3)).history[0]["test_accuracy"]
    )
    with pytest.raises(StopError):
        fit(run, out=tmp_path / "out", on_epoch=stop_after(1))
    assert but_seconds(fit(run, out=tmp_path / "out").history) == but_seconds(whole.history)
    resolved = run.resolve()
    torch.save(flat_net().state_dict(), tmp_path / "a.pt")
    with pytest.raises(UsageError, match=r"a.pt has changed since the run was made"):
        fit(resolved)
    with pytest.raises(UsageError, match=r"no weights of .*a.pt fit the network"):
        fit(run)
    (tmp_path / "a.pt").unlink()
    with pytest.raises(UsageError, match=r"the file of weights a.pt is not here: .*a.pt"):
        fit(resolved)
    (record,) = results.read(tmp_path / "out").records
    with pytest.raises(UsageError, match=r"a.pt is not here; give the Run with weights=FILE"):
        fit(record.run)


def test_a_head_for_other_classes_starts_anew(tmp_path):
    other = conv_net()
    other[-1] = nn.Linear(144, 7)
    torch.save(other.state_dict(), tmp_path / "seven.pt")
    network = conv_net(seed=1)
    head = network[-1].weight.clone()
    with pytest.warns(WeightsWarning, match=r"left as they start, of another shape: 4.weight \[7"):
        fit(tiny(weights=tmp_path / "seven.pt", lr=0.0, momentum=0.0, epochs=1), network=network)
    assert torch.equal(network[0].weight, other[0].weight)
    assert torch.equal(network[-1].weight, head)


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_frozen_layers_stay(ema, tmp_path):
    network = conv_net()
    before = {k: t.clone() for k, t in network.state_dict().items()}
    run = tiny(freeze=["0.*", "1.*"], ema=ema, lr=0.05)
    result = fit(run, network=network, out=tmp_path, name="x")
    for trained in (network, result.ema_network if ema else network):
        for name, tensor in trained.state_dict().items():
            assert torch.equal(tensor, before[name]) == name.startswith(("0.", "1.")), name
    with pytest.raises(StopError):
        fit(run, network=conv_net(), out=tmp_path, name="y", on_epoch=stop_after(1))
    resumed = fit(run, network=conv_net(), out=tmp_path, name="y")
    assert but_seconds(resumed.history) == but_seconds(result.history)


def test_batch_norms_that_are_not_frozen_move_on():
    network = conv_net()
    before = {k: t.clone() for k, t in network.state_dict().items()}
    fit(tiny(freeze=["0.*", "1.weight"], lr=0.05), network=network)
    after = network.state_dict()
    assert torch.equal(after["1.weight"], before["1.weight"])
    for name in ("1.bias", "1.running_mean", "1.running_var", "1.num_batches_tracked"):
        assert not torch.equal(after[name], before[name]), name


def test_what_cannot_be_frozen():
    with pytest.raises(UsageError, match=r"freeze 'layer9' matches no parameter; the network has"):
        fit(tiny(freeze=["layer9"]))
    with pytest.raises(UsageError, match="the network has no parameter that can be trained"):
        fit(tiny(freeze=["*"]))


def test_the_example_of_the_documentation(own_modules):
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    nets, losses = re.findall(r"```py\n(.*?)```", page, flags=re.DOTALL)
    own_modules(mynets=nets, mylosses=losses)
    assert "--model mynets:small --loss mylosses:smooth" in page
    assert len(fit(tiny(model="mynets:small", loss="mylosses:smooth")).history) == 2
    assert '--model mynets:small --import mylosses --loss "nce + normalize(squared)"' in page
    run = tiny(model="mynets:small", imports=["mylosses"], loss="nce + normalize(squared)")
    assert len(fit(run).history) == 2


MISTAKEN = """
import torch
from torch import nn

class Late(nn.Linear):
    def forward(self, x):
        if self.training:
            raise RuntimeError("not yet")
        return super().forward(x.flatten(1))

class Pair(nn.Linear):
    def forward(self, x):
        return super().forward(x.flatten(1)), None

def late(num_classes): return Late(64, num_classes)
def pair(num_classes): return Pair(64, num_classes)
def inputs(num_classes): return nn.Sequential(nn.Flatten(), nn.Linear(3, num_classes))
def outputs(): return nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
def failing():
    return torch.zeros(3).reshape(2)
def lazy(num_classes): return nn.Sequential(nn.Flatten(), nn.LazyLinear(num_classes))
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("inputs", r"model mistaken:inputs fails on inputs \[N, 1, 8, 8\]: RuntimeError: .*mat1"),
        ("outputs", r"gives \[2, 3\] for two inputs; logits \[N, 10\] are needed"),
        ("pair", "model mistaken:pair gives a tuple, and logits"),
        ("failing", r"model mistaken:failing cannot be made: .* \(mistaken.py, line 20\)$"),
    ],
)
def test_a_network_that_does_not_fit_is_one_clear_line(own_modules, name, message):
    own_modules(mistaken=MISTAKEN)
    with pytest.raises(UsageError, match=message):
        fit(tiny(model=f"mistaken:{name}"))


def test_a_lazy_network_is_drawn_from_the_seed(own_modules):
    own_modules(mistaken=MISTAKEN)
    runs = [tiny(model="mistaken:lazy", lr=0.0, epochs=1, seed=s) for s in (0, 1)]
    one, other = (fit(run).network for run in runs)
    torch.seed()
    assert same(weights(one), weights(fit(runs[0]).network))
    assert not same(weights(one), weights(other))


def test_an_error_of_the_user_s_is_not_called_ours(own_modules, capsys, monkeypatch):
    own_modules(mistaken=MISTAKEN)
    command = ["noiseproof", "train", "--model", "mistaken:late", "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit, match="1"):
        main()
    last = capsys.readouterr().err.splitlines()[-1]
    line = "noiseproof: this is an error of your own module: RuntimeError: not yet (mistaken.py, "
    assert last.startswith(line)
