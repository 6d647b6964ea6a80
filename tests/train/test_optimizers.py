"""An optimizer is one file and one entry of the catalogue."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch

from noiseproof.catalogue import OPTIMIZERS, OptimizerEntry
from noiseproof.train import fit

from .subjects import StopError, but_seconds, stop_after, tiny


@dataclass(frozen=True)
class SignSGD:
    """A step of one size along the sign of an average of the gradients."""

    beta: float
    buffers: ClassVar[tuple[str, ...]] = ("average",)
    scalars: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def from_run(cls, run):
        return cls(run.momentum)

    def step(self, weights, buffers, compute_grad, grad, lr, compute_weights, **more):
        grad = torch.cat([compute_grad.float(), grad])
        buffers["average"].lerp_(grad, 1 - self.beta)
        weights.addcmul_(buffers["average"].sign(), lr, value=-1)
        compute_weights.copy_(weights[: compute_weights.numel()])
        return torch.linalg.vector_norm(grad)


@pytest.fixture
def _sign(monkeypatch):
    module = types.ModuleType("noiseproof.train.optimizers._sign")
    module.SignSGD = SignSGD
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(OPTIMIZERS, "sign", OptimizerEntry("the sign", "_sign", "SignSGD"))


@pytest.mark.usefixtures("_sign")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_another_optimizer_trains_and_goes_on_where_it_stopped(tmp_path, precision):
    run = tiny(loss="ce", noise="none", lr=0.003, epochs=3, precision=precision).resolve()
    run = replace(run, optimizer="sign")
    whole = fit(run)
    assert whole.accuracy > 0.5
    with pytest.raises(StopError):
        fit(run, out=tmp_path, on_epoch=stop_after(2))
    saved = torch.load(tmp_path / run.hash / "checkpoint.pt", weights_only=True)["tensors"]
    assert {"weights", "average"} <= saved.keys()
    assert "momentum_buffer" not in saved
    assert but_seconds(fit(run, out=tmp_path).history) == but_seconds(whole.history)


@pytest.mark.usefixtures("_sign")
def test_an_optimizer_is_a_part_of_the_run():
    run = tiny().resolve()
    assert replace(run, optimizer="sign").hash != run.hash
    assert "optimizer" in run.settings()
