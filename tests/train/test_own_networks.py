"""Networks as users write them: with more than tensors, in other types, compiled."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from noiseproof import UsageError, data, models
from noiseproof.train import DivergedError, fit, load

from .subjects import StopError, but_seconds, flat_net, same, stop_after, tiny, weights


class Counting(nn.Module):
    """Counts its batches in plain Python, and saves the count as torch says."""

    def __init__(self, scale: Any = 1.0) -> None:
        super().__init__()
        self.body, self.count, self.scale = flat_net(), 0, scale

    def forward(self, x: Tensor) -> Tensor:
        self.count += self.training
        return self.body(x) * (1 + self.count / 20)  # type: ignore[no-any-return]

    def get_extra_state(self) -> dict[str, Any]:
        return {"count": self.count, "scale": self.scale}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.count, self.scale = state["count"], state["scale"]


class CountingLoss(Counting):
    """The same as a loss."""

    def forward(self, z: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        self.count += 1
        return F.cross_entropy(z, y) / (1 + self.count / 20)


@pytest.mark.parametrize(
    "own", [lambda: {"network": Counting()}, lambda: {"loss": CountingLoss().requires_grad_(False)}]
)
def test_extra_state_is_kept(own, tmp_path):
    run = tiny(epochs=4, ema=0.9, choose_epoch=True)
    given = own()
    whole = fit(run, **given)
    for epoch in (1, 3):
        with pytest.raises(StopError):
            fit(run, **own(), out=tmp_path, name="mine", on_epoch=stop_after(epoch))
    resumed = fit(run, **own(), out=tmp_path, name="mine")
    assert but_seconds(resumed.history) == but_seconds(whole.history)
    if "network" in given:
        again = load(resumed.folder, network=Counting)
        assert again.network.count == resumed.network.count == given["network"].count > 0


def test_extra_state_is_given_back_where_a_run_does_not_end():
    network = Counting()
    before = weights(network.body)
    for settings, error in (({}, StopError), ({"lr": 1e30, "clip": 0}, DivergedError)):
        with pytest.raises(error):
            fit(tiny(**settings), network=network, on_epoch=stop_after(1))
        assert network.count == 0
        assert same(before, weights(network.body))


def test_extra_state_that_is_code_is_refused_before_a_run_is_kept(tmp_path):
    network = Counting(scale=stop_after)
    line = (
        "get_extra_state of the network gives what only code could read again: a run that is kept"
    )
    with pytest.raises(UsageError, match=line):
        fit(tiny(), network=network, out=tmp_path)
    assert fit(tiny(epochs=1), network=network).network is network


def test_weights_to_start_from_beside_extra_state(tmp_path):
    file = tmp_path / "weights.pt"
    torch.save(Counting().state_dict(), file)
    network = Counting()
    for p in network.parameters():
        nn.init.zeros_(p)
    models.load_weights(network, file)  # without a warning of what is no tensor
    assert same(weights(network.body), weights(flat_net()))


class Nested(nn.Module):
    """Has a state dict of its own form, which it alone takes."""

    def __init__(self) -> None:
        super().__init__()
        self.body = flat_net()

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)  # type: ignore[no-any-return]

    def state_dict(self) -> dict[str, Any]:  # type: ignore[override]
        return {"version": 3, "body": self.body.state_dict()}

    def load_state_dict(self, state: dict[str, Any], assign: bool = False) -> None:  # type: ignore[override]
        self.body.load_state_dict(state["body"])


def test_a_state_dict_of_another_form(tmp_path):
    network = Nested()
    with pytest.raises(StopError):
        fit(tiny(), network=network, on_epoch=stop_after(1))
    assert same(weights(network.body), weights(flat_net()))
    result = fit(tiny(), network=network, out=tmp_path)
    again = load(result.folder, network=Nested)
    assert same(weights(again.network.body), weights(network.body))


def test_what_a_compiled_network_keeps_has_the_names_of_the_network(tmp_path):
    compiled = torch.compile(flat_net(), backend="eager")
    result = fit(tiny(epochs=1, freeze=("1",)), network=compiled, out=tmp_path)
    images = data.load("digits").test.images
    expected = load(result.folder, network=flat_net()).predict_proba(images)
    again = load(result.folder, network=torch.compile(flat_net(seed=1), backend="eager"))
    torch.testing.assert_close(again.predict_proba(images), expected)
    file = result.folder / "model.pt"
    older = {f"_orig_mod.{name}": t for name, t in torch.load(file).items()}
    torch.save(older, file)
    torch.testing.assert_close(
        load(result.folder, network=flat_net).predict_proba(images), expected
    )


class OnlyInBF16(nn.Module):
    """Has a layer for bf16 alone, as kernels of attention are."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head = nn.Conv2d(1, 4, 3), nn.Linear(144, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(x)
        if x.dtype != torch.bfloat16:
            raise RuntimeError("this kernel takes bf16")
        return self.head(x.flatten(1))  # type: ignore[no-any-return]


def test_a_network_is_tried_in_the_precision_of_the_run():
    assert len(fit(tiny(precision="bf16"), network=OnlyInBF16()).history) == 2
    assert models.takes_channels_last(OnlyInBF16(), (1, 8, 8), torch.bfloat16)
    with pytest.raises(UsageError, match=r"model OnlyInBF16 fails on inputs .*: this kernel takes"):
        fit(tiny(precision="fp32"), network=OnlyInBF16())
    ends_in_softmax = nn.Sequential(flat_net(), nn.Softmax(1))
    with pytest.warns(UserWarning, match="seems to end in a softmax"):
        fit(tiny(epochs=1, precision="bf16"), network=ends_in_softmax)


class FrozenFirst(nn.Module):
    """Has a frozen part in another type, which it brings its inputs to; or fails to."""

    def __init__(self, converts: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Linear(64, 32).double().requires_grad_(False)
        self.head, self.converts = nn.Linear(32, 10), converts

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1)
        return self.head(self.body(x.double() if self.converts else x).float())  # type: ignore[no-any-return]


def test_a_frozen_part_may_be_in_another_type():
    assert len(fit(tiny(), network=FrozenFirst(converts=True)).history) == 2
    with pytest.raises(UsageError, match="model FrozenFirst fails on inputs"):
        fit(tiny(), network=FrozenFirst(converts=False))


class Auxiliary(nn.Module):
    """Gives another output in training, as inception networks do."""

    def __init__(self) -> None:
        super().__init__()
        self.body = flat_net()

    def forward(self, x: Tensor) -> Any:
        return (self.body(x), x) if self.training else self.body(x)


class Mapping(Auxiliary):
    """Gives its logits under a name, as networks for texts do."""

    def forward(self, x: Tensor) -> Any:
        return {"logits": self.body(x)}


def test_several_outputs_are_refused_with_the_remedy():
    line = "gives a tuple, and logits .* are needed: wrap it in a module that returns these alone"
    with pytest.raises(UsageError, match=f"model Auxiliary {line}"):
        fit(tiny(), network=Auxiliary())
    with pytest.raises(UsageError, match=f"model Mapping {line.replace('tuple', 'dict')}"):
        fit(tiny(), network=Mapping())


@contextlib.contextmanager
def double_by_default() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    "inside",
    [torch.no_grad, torch.inference_mode, double_by_default, lambda: torch.device("meta")],
    ids=["no_grad", "inference_mode", "default dtype", "default device"],
)
def test_it_trains_wherever_it_is_called(inside, tmp_path):
    run = tiny(model="cnn4", loss="auto", mixup=0.2, crop=1)
    images = data.load("digits").test.images
    expected, own = fit(run, out=tmp_path / "expected"), fit(tiny(), network=flat_net())
    network = flat_net()
    with inside():
        found = fit(run, out=tmp_path / "found")
        of_network = fit(tiny(), network=network)
        model = load(found.folder)
        data.from_arrays(images, data.load("digits").test.labels)
    assert but_seconds(found.history) == but_seconds(expected.history)
    assert but_seconds(of_network.history) == but_seconds(own.history)
    predicted = load(expected.folder).predict_proba(images)
    torch.testing.assert_close(model.predict_proba(images), predicted)


def test_what_was_made_in_inference_mode_cannot_be_trained():
    with torch.inference_mode():
        network = flat_net()
    with pytest.raises(UsageError, match=r"network was made in torch\.inference_mode, and its"):
        fit(tiny(), network=network)


class Scaled(nn.Module):
    """A loss with a parameter, as of a learnt temperature."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(z * self.scale, y)


def test_parameters_of_a_loss_are_warned_of(recwarn):
    loss = Scaled()
    with pytest.warns(
        UserWarning, match=r"the loss Scaled has parameters \(scale\), which are not"
    ):
        fit(tiny(epochs=1), loss=loss)
    assert loss.scale == 1
    recwarn.clear()
    fit(tiny(epochs=1), loss=loss.requires_grad_(False))
    assert not recwarn.list


def test_a_callback_is_a_function():
    with pytest.raises(
        UsageError, match=r"on_epoch must be a function of a train\.Progress, not 3"
    ):
        fit(tiny(), on_epoch=3)


def test_sparse_gradients_are_those_of_dense_ones():
    ids, labels = torch.arange(120).view(40, 3) % 50, torch.arange(40) % 3

    def train(sparse: bool) -> list[Tensor]:
        torch.manual_seed(0)
        bag = nn.EmbeddingBag(50, 8, sparse=sparse)
        network = nn.Sequential(bag, nn.Linear(8, 3))
        run = tiny(batch_size=16, epochs=2, holdout=0.2)
        fit(run, data=data.from_arrays(ids, labels), network=network)
        return weights(network)

    for one, other in zip(train(sparse=True), train(sparse=False), strict=True):
        torch.testing.assert_close(one, other)
