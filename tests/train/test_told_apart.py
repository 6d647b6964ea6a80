"""Runs with something of the user's own, or forced: told apart, found again or trained anew."""

from __future__ import annotations

import copy
import functools
import json

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import noiseproof
import noiseproof.syntax
from noiseproof import UsageError, data, noise, results
from noiseproof.bench import Bench, plan
from noiseproof.train import fit, fit_many
from noiseproof.train._digest import digests_of

from .subjects import (
    StopError,
    conv_net,
    flat_net,
    run_folders,
    stop_after,
    tiny,
)

OWN = {
    "data": lambda: data.from_arrays(
        data.load("digits").train.images.roll(1, 0),
        data.load("digits").train.labels.roll(1, 0),
        data.load("digits").test.images,
        data.load("digits").test.labels,
    ),
    "network": lambda: flat_net(seed=1),
    "loss": lambda: nn.CrossEntropyLoss(label_smoothing=0.1),
    "labels": lambda: noise.make(
        "symmetric", data.load("digits").train.labels, 0.1, num_classes=10, seed=5
    ),
    "prior": lambda: torch.linspace(0.05, 0.15, 10),
}


SMALL = tiny(model="mlp")  # which digits have without a word, and data of one's own have not


@pytest.mark.parametrize("what", OWN)
def test_without_a_name_each_run_has_a_folder_of_its_own(what, tmp_path):
    override = {what: OWN[what]()}
    one = fit(SMALL, out=tmp_path, **copy.deepcopy(override))
    two = fit(SMALL, out=tmp_path, **copy.deepcopy(override))
    assert two.network is not None  # it was trained, not read
    assert one.folder != two.folder
    named = fit(SMALL, out=tmp_path)
    assert named.folder.name == SMALL.resolve().hash
    found = results.read(tmp_path)
    assert found.problems == []
    assert sorted(r.run.overrides for r in found.records) == [(), (what,), (what,)]
    bench = Bench("one", "One", "", (SMALL,))
    assert [r.hash for r in plan(bench, tmp_path).done] == [SMALL.resolve().hash]


@pytest.mark.parametrize("what", OWN)
def test_a_named_run_is_read_or_goes_on(what, tmp_path):
    def again(**more):
        return fit(SMALL, out=tmp_path, name="mine", **{what: OWN[what]()}, **more)

    with pytest.raises(StopError):
        again(on_epoch=stop_after(1))
    epochs = []
    again(on_epoch=lambda p: epochs.append(p.epoch))
    assert epochs == [2]
    assert again().network is None
    assert [p.name for p in run_folders(tmp_path)] == ["mine"]
    (record,) = results.read(tmp_path).records
    assert (record.run.name, record.run.overrides) == ("mine", (what,))


def test_a_named_run_of_something_else_is_refused(tmp_path):
    fit(tiny(), out=tmp_path, name="mine", loss=weighted(0.1), network=flat_net())
    for changed, reason in (
        ({"loss": weighted(0.5)}, r"\(the loss differs\)"),
        ({"network": conv_net()}, "the network differs"),
        ({"run": tiny(seed=1)}, r"\(seed is 0 there and 1 here\)"),
        ({"labels": data.load("digits").train.labels}, "noise is 'symmetric' there and 'given'"),
    ):
        given = {"run": tiny(), "loss": weighted(0.1), "network": flat_net(), **changed}
        with pytest.raises(UsageError, match=f"another run of this name .*{reason}.*give an"):
            fit(out=tmp_path, name="mine", **given)
    trained = fit(tiny(seed=1), out=tmp_path, name="mine", loss=weighted(0.5), force=True)
    assert trained.network is not None


class Edited(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        return self.linear(x.flatten(1))


def test_an_edited_forward_is_not_answered_with_the_old_result(tmp_path, monkeypatch):
    fit(tiny(), out=tmp_path, name="net", network=Edited())
    assert fit(tiny(), out=tmp_path, name="net", network=Edited()).network is None

    def forward(self, x):
        return self.linear(x.flatten(1)) * 2

    monkeypatch.setattr(Edited, "forward", forward)
    with pytest.raises(UsageError, match="the network differs"):
        fit(tiny(), out=tmp_path, name="net", network=Edited())
    other = fit(tiny(), out=tmp_path, network=Edited())
    assert other.network is not None


def test_other_weights_to_start_from_do_not_keep_a_named_run_from_going_on(tmp_path):
    with pytest.raises(StopError):
        fit(tiny(), out=tmp_path, name="net", network=flat_net(seed=1), on_epoch=stop_after(1))
    result = fit(tiny(), out=tmp_path, name="net", network=flat_net(seed=2))
    assert [row["epoch"] for row in result.history] == [1, 2]


def test_a_loss_that_a_user_registered_is_the_user_s_own(tmp_path):
    @noiseproof.losses.register
    def spread(logits):
        return 1 - logits.softmax(1)

    one, two = (fit(tiny(loss="nce + spread"), out=tmp_path) for _ in range(2))
    assert one.folder != two.folder
    assert one.run.overrides == ("loss",)
    noiseproof.losses._module.declared_losses.pop("spread")
    noiseproof.syntax.SIGNATURES.pop("spread")


@pytest.mark.parametrize("name", ["", "../x", ".hidden", "a b", "-x", "a/b", "x" * 101, 3])
def test_names_are_those_of_folders(name, tmp_path):
    if name == "":
        return  # as none
    with pytest.raises(UsageError, match="the name of a run is letters, digits"):
        fit(tiny(), out=tmp_path, name=name, loss=F.cross_entropy)
    assert run_folders(tmp_path) == []


def weighted(weight):
    return lambda logits, labels: float(weight) * F.cross_entropy(logits, labels)


def smoothed(logits, labels, *, by):
    return F.cross_entropy(logits, labels, label_smoothing=by)


def by_keyword(factor):
    def loss(logits, labels, *, by=factor):
        return by * F.cross_entropy(logits, labels)

    return loss


class Scaled(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, logits, labels):
        return self.factor * F.cross_entropy(logits, labels)


@pytest.mark.parametrize(
    "make",
    [
        weighted,
        by_keyword,
        lambda by: functools.partial(smoothed, by=by),
        Scaled,
        lambda f: Scaled(f).forward,
        lambda f: weighted(np.array(f)),
    ],
    ids=["closure", "keyword", "partial", "module", "method", "array"],
)
def test_losses_that_differ_in_a_number_are_told_apart(make, tmp_path):
    one, two = (fit(tiny(epochs=1), loss=make(x)) for x in (0.1, 0.5))
    assert one.history[0]["train_loss"] != two.history[0]["train_loss"]
    first = fit(tiny(epochs=1), loss=make(0.1), out=tmp_path, name="mine")
    assert fit(tiny(epochs=1), loss=make(0.1), out=tmp_path, name="mine").folder == first.folder
    with pytest.raises(UsageError, match="the loss differs"):
        fit(tiny(epochs=1), loss=make(0.5), out=tmp_path, name="mine")


def test_what_cannot_be_compared_is_trained_and_kept(tmp_path):
    generator = torch.Generator()

    def loss(logits, labels):
        return F.cross_entropy(logits, labels) * torch.rand((), generator=generator)

    assert len(fit(tiny(epochs=1), loss=loss, out=tmp_path).history) == 1


def test_force_removes_what_is_a_run_s_and_nothing_else(tmp_path):
    notes = tmp_path / "thesis" / "chapter.tex"
    notes.parent.mkdir()
    notes.write_text("mine")
    for force in (False, True):
        with pytest.raises(UsageError, match=r"thesis holds chapter\.tex and no run; give another"):
            fit(tiny(), out=tmp_path, name="thesis", force=force)
    result = fit(tiny(), out=tmp_path, name="run")
    (result.folder / "notes.txt").write_text("mine")
    fit(tiny(epochs=3), out=tmp_path, name="run", force=True)
    assert (result.folder / "notes.txt").read_text() == "mine"
    assert notes.read_text() == "mine"


def test_force_trains_anew_whatever_precision_there_is(tmp_path):
    fit(tiny(precision="bf16"), out=tmp_path)
    assert fit(tiny(), out=tmp_path).network is None
    assert fit(tiny(), out=tmp_path, force=True).network is not None


def test_a_precision_by_name_is_not_answered_with_another(tmp_path):
    fit(tiny(precision="bf16"), out=tmp_path)
    _, named = fit_many([tiny(), tiny(precision="fp32")], out=tmp_path)
    assert named.network is not None
    assert named.run.precision == "fp32"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (nn.CrossEntropyLoss(torch.ones(10)), nn.CrossEntropyLoss(torch.arange(10.0))),
        (noiseproof.forward_correction(noiseproof.parse("ce"), torch.eye(10)),
         noiseproof.forward_correction(noiseproof.parse("ce"), torch.full((10, 10), 0.1))),
        (noiseproof.from_function(lambda z: z.exp(), name="f"),
         noiseproof.from_function(lambda z: z.square(), name="f")),
    ],
    ids=["weights", "matrix", "function"],
)  # fmt: skip
def test_what_a_loss_holds_is_compared(one, other):
    assert digests_of({"loss": one}) != digests_of({"loss": other})
    assert digests_of({"loss": one}) == digests_of({"loss": copy.deepcopy(one)})


def test_two_lambdas_of_one_line_differ():
    one, other = (lambda z, y: z.sum() * 2), (lambda z, y: z.sum() * 3)
    assert digests_of({"loss": one}) != digests_of({"loss": other})


def test_what_refers_to_itself_is_digested():
    def loss(logits, labels):
        return loss if logits is None else F.cross_entropy(logits, labels)

    class Holder:
        def __init__(self) -> None:
            self.call = self.__call__

        def __call__(self, logits, labels):
            return F.cross_entropy(logits, labels)

    assert digests_of({"loss": loss})
    assert digests_of({"loss": Holder()})


def test_networks_that_differ_are_not_averaged_as_seeds(tmp_path):
    for hidden in (16, 32):
        network = nn.Sequential(nn.Flatten(), nn.Linear(64, hidden), nn.Linear(hidden, 10))
        fit(tiny(), network=network, out=tmp_path)
    for name in ("a", "b"):
        fit(tiny(), network=flat_net(), out=tmp_path, name=name)
    found = results.cells(results.read(tmp_path).records)
    assert sorted(cell.seeds for cell in found) == [[0], [0], [0]]


def test_a_record_without_a_setting_that_came_later_goes_on(tmp_path):
    run = tiny(epochs=3)
    with pytest.raises(StopError):
        fit(run, out=tmp_path, name="x", loss=weighted(1), on_epoch=stop_after(2))
    for file in (tmp_path / "x" / "run.json",):
        content = json.loads(file.read_text())
        del content["settings"]["optimizer"]
        file.write_text(json.dumps(content))
    assert len(fit(run, out=tmp_path, name="x", loss=weighted(1)).history) == 3
