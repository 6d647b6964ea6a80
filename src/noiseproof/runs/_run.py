"""A run as a user gives it: one frozen value, what is not given left open."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .. import catalogue, syntax
from .._errors import UsageError
from .._hints import match_name, nearest
from ._resolved import ResolvedRun, check_name
from ._schedules import SCHEDULES

NUMBER: Any = numbers.Real  # NumPy's are too
_MAX = 1e38  # of a float32
_NLNL_EPOCHS = 10  # how many times the protocol's epochs the three stages of NLNL take together


@dataclass(frozen=True, kw_only=True)
class Run:
    """One network, one noisy data set, one loss. What is None is taken from the protocol.

    >>> run = Run(dataset="cifar10", noise="symmetric", rate=0.8, loss="nce+rce")
    >>> run.resolve().model, run.resolve().epochs
    ('cnn8', 120)
    """

    dataset: str = "digits"
    """data set by name"""
    noise: str | None = None
    """kind of label noise, or the name of a set of human labels; by default symmetric, and for data
    of one's own the labels as they are given"""
    rate: float = 0.4
    """fraction of the labels that are made wrong, from 0 to 1"""
    variant: Literal["paper", "authors"] | None = None
    """how the noise is drawn: as the paper says, or as its authors' code draws it"""
    loss: str = "nce+rce"
    """a loss by its text, such as "10*nce + 0.1*rce(A=-4)", or a published one by its name, with
    the settings of the protocol for the data set: nce+rce, anl-ce, jal-ce, ...; or nlnl"""
    model: str | None = None
    """network by name"""
    protocol: Literal["paper", "authors"] = "paper"
    """where settings that are not given come from: the paper, or its authors' code"""
    epochs: int | None = None
    """passes over the training set"""
    batch_size: int | None = None
    """samples a step"""
    lr: float | None = None
    """learning rate at the start"""
    schedule: str | None = None
    """of the learning rate, stepped once an epoch (exponential: by 0.97)"""
    lr_floor: float | None = None
    """the learning rate that the cosine schedule ends at"""
    optimizer: str = "sgd"
    """the optimizer"""
    momentum: float | None = None
    """of SGD"""
    nesterov: bool | None = None
    """Nesterov's form of the momentum"""
    weight_decay: float | None = None
    """on every parameter"""
    clip: float | None = None
    """the largest norm of the gradient; 0 for no limit"""
    crop: int | None = None
    """padding of the random crop; 0 for none"""
    flip: bool | None = None
    """random horizontal flip"""
    rotate: float | None = None
    """largest angle of the random rotation, in degrees; 0 for none"""
    l1: float | None = None
    """weight of the L1 norm of all parameters, added to the loss"""
    ema: float = 0.0
    """decay of an exponential moving average of the weights, tested beside them; 0 for none"""
    balance: float = 0.0
    """weight of a penalty on the batch's mean prediction: its KL divergence from the classes'
    prior, which is uniform"""
    holdout: float = 0.0
    """fraction of the noisy training set that is kept for validation"""
    precision: Literal["auto", "bf16", "tf32", "fp32"] = "auto"
    """of the network's arithmetic (weights are float32): auto is bf16 on a GPU, fp32 on a CPU"""
    device: str = "auto"
    """cpu, cuda, cuda:1, ...; auto takes a GPU where there is one"""
    seed: int = 0
    """of the noise, the start, the order and the augmentation, each drawn independently"""

    def __post_init__(self) -> None:
        for name, expected, low, high in (
            ("rate", float, 0, 1), ("ema", float, 0, 1), ("holdout", float, 0, 1),
            ("momentum", float, 0, 1), ("lr", float, 0, _MAX), ("lr_floor", float, 0, _MAX),
            ("weight_decay", float, 0, _MAX), ("clip", float, 0, _MAX),
            ("l1", float, 0, _MAX), ("balance", float, 0, _MAX),
            ("rotate", float, 0, 180), ("crop", int, 0, math.inf), ("epochs", int, 1, math.inf),
            ("batch_size", int, 2, math.inf), ("seed", int, 0, 2**32 - 1),
        ):  # fmt: skip
            value: Any = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, NUMBER):
                raise UsageError(f"{name} must be a number; it was {value!r}")
            if not low <= value <= high:
                most = f"{high:g}" if isinstance(high, float) or high < 1e6 else high
                raise UsageError(f"{name} goes from {low} to {most}; it was {value}")
            if value == math.inf or expected(value) != value:
                what = "finite" if expected is float else "whole"
                raise UsageError(f"{name} must be a {what} number; it was {value}")
            object.__setattr__(self, name, expected(value) + 0)  # 1 and 1.0, -0.0 and 0 are one
        for name in ("dataset", "loss", "model", "device", "optimizer"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                remedy = "; a loss of your own goes to fit(run, loss=...)" if name == "loss" else ""
                raise UsageError(f"{name} must be a text; it was {value!r}{remedy}")
        for name in ("nesterov", "flip"):
            value = getattr(self, name)
            if type(value).__name__ in ("bool", "bool_"):  # NumPy's too
                object.__setattr__(self, name, bool(value))
            elif value is not None:
                raise UsageError(f"{name} is true or false; it was {value!r}")
        for name, known in CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in known:
                hint = nearest(str(value), known)
                raise UsageError(f"{name} is one of {', '.join(known)}; it was {value!r}{hint}")
        for name in ("ema", "holdout"):
            if getattr(self, name) == 1:
                raise UsageError(f"{name} must be below 1")

    def resolve(
        self, *, on_gpu: bool = False, overrides: Mapping[str, str] | None = None, name: str = ""
    ) -> ResolvedRun:
        """The run as it will be trained: every setting that is left open gets its value.

        Args:
            on_gpu: whether it is trained on a GPU, which decides the precision where it is auto.
            overrides: what is given in place of what the settings name, each by the name to show:
                ``data``, ``labels``, ``loss``, ``network``, ``prior``.
            name: of the run, by which its results are found again.
        """
        given = dict(overrides or {})
        dataset = given["data"] if "data" in given else self._known_dataset()
        protocol = catalogue.protocol_of(self.protocol, dataset)
        values: dict[str, Any] = {}
        for field in dataclasses.fields(ResolvedRun):
            if hasattr(self, field.name):
                value = getattr(self, field.name)
                values[field.name] = getattr(protocol, field.name, None) if value is None else value
        noise, rate, variant = self._resolved_noise(dataset, given)
        loss, l1, decay = self._resolved_loss(dataset, noise, rate, given)
        if loss == catalogue.NLNL and self.epochs is None:
            values["epochs"] *= _NLNL_EPOCHS
        if "network" in given:
            values["model"] = given["network"]
        else:
            values["model"] = match_name(values["model"], catalogue.NETWORKS, "network")
        if decay is not None:
            values["weight_decay"] = decay
        values |= {
            "dataset": dataset, "noise": noise, "rate": rate, "variant": variant, "loss": loss,
            "l1": l1, "precision": self._resolved_precision(on_gpu),
            "overrides": tuple(sorted(given)), "name": check_name(name) if name else "",
        }  # fmt: skip
        return ResolvedRun(**values)

    def resolutions(self) -> tuple[ResolvedRun, ...]:
        """Every resolved run whose record answers this one: precision auto is satisfied by any."""
        on_gpu, on_cpu = self.resolve(on_gpu=True), self.resolve(on_gpu=False)
        return (on_gpu,) if on_gpu == on_cpu else (on_gpu, on_cpu)

    def note(self) -> str:
        """What a user should know of the published numbers that the loss's name brings."""
        dataset = self._known_dataset()
        noise, rate, _ = self._resolved_noise(dataset, {})
        return catalogue.resolve_loss(
            self.loss, dataset, noise=noise, rate=rate, protocol=self.protocol
        ).note

    def _known_dataset(self) -> str:
        return match_name(self.dataset, catalogue.DATASETS, "data set")

    def _resolved_noise(self, dataset: str, given: Mapping[str, str]) -> tuple[str, float, str]:
        if "labels" in given or (self.noise is None and "data" in given):
            return catalogue.GIVEN, 0.0, "paper"
        known = catalogue.DATASETS.get(dataset)
        noise = self.noise or ("symmetric" if known is None else known.noise)
        entry = catalogue.NOISES[noise]
        if entry.group == "human" and "data" not in given:
            labelled = catalogue.HUMAN_FILES[entry.file].dataset
            if labelled != dataset:
                raise UsageError(f"{noise} are labels of {labelled}, and the data set is {dataset}")
        if self.variant not in (None, *entry.variants):
            raise UsageError(f"the authors have no {noise} noise: give variant='paper'")
        variant = self.protocol if self.protocol in entry.variants else "paper"
        if not entry.has_rate or not self.rate:
            clean = catalogue.CLEAN if entry.has_rate else noise
            return clean, 0.0, "paper"
        return noise, self.rate, self.variant or variant

    def _resolved_loss(
        self, dataset: str, noise: str, rate: float, given: dict[str, str]
    ) -> tuple[str, float, float | None]:
        """The loss's text, the L1 weight, and the weight decay where not the protocol's."""
        if "loss" in given:
            return given["loss"], self.l1 or 0.0, self.weight_decay
        found = catalogue.resolve_loss(
            self.loss, dataset, noise=noise, rate=rate, protocol=self.protocol
        )
        if found.loss != catalogue.NLNL and syntax.uses_user_losses(syntax.read(found.loss)):
            given["loss"] = found.loss
        l1 = found.l1 if self.l1 is None else self.l1
        return (
            found.loss,
            l1,
            found.weight_decay if self.weight_decay is None else self.weight_decay,
        )

    def _resolved_precision(self, on_gpu: bool) -> str:
        if self.precision != "auto":
            return self.precision
        return "bf16" if on_gpu else "fp32"

    def __str__(self) -> str:
        known = catalogue.DATASETS.get(self.dataset)
        noise = self.noise or ("symmetric" if known is None else known.noise)
        noise = catalogue.noise_title(noise, self.rate)
        return f"{self.dataset}, {noise}, {self.loss}, seed {self.seed}"


CHOICES: dict[str, tuple[str, ...]] = {
    "noise": tuple(name for name, n in catalogue.NOISES.items() if n.group != "given"),
    "variant": catalogue.PROTOCOLS,
    "protocol": catalogue.PROTOCOLS,
    "schedule": tuple(SCHEDULES),
    "optimizer": tuple(catalogue.OPTIMIZERS),
    "precision": ("auto", "bf16", "tf32", "fp32"),
}
"""The settings that take one of a few values."""
