"""A run: everything that decides its numbers, as one frozen value. Nothing here imports torch."""

from __future__ import annotations

import dataclasses
import math
import numbers
import re
from dataclasses import dataclass
from typing import Any, Literal

from .._hints import nearest
from ..results import hash_of
from ._protocols import Protocol, protocol_of

NUMBER: Any = numbers.Real  # NumPy's are too
NLNL = "nlnl"  # a loss by name alone: a procedure of three stages
_LONGER = 10  # how many times the protocol's epochs the three stages of NLNL take together


@dataclass(frozen=True, kw_only=True)
class Run:
    """One network, one noisy data set, one loss. What is None is as the protocol has it.

    >>> run = Run(dataset="cifar10", noise="symmetric", rate=0.8, loss="nce+rce")
    >>> run.filled().model, run.filled().epochs
    ('cnn8', 120)
    """

    dataset: str = "digits"
    """data set: digits, mnist, fashion-mnist, cifar10, cifar100"""
    noise: str | None = None
    """kind of label noise: none, symmetric, asymmetric, pairflip, instance, or the name of a set of
    human labels: cifar10n-worst, cifar10n-aggregate, cifar10n-random1 to 3, cifar100n; by default
    symmetric, and none for data of one's own"""
    rate: float = 0.4
    """how many of the labels are made wrong, from 0 to 1"""
    variant: Literal["paper", "authors"] | None = None
    """how the noise is drawn: as the paper says, or the very labels of its authors' code"""
    loss: str = "nce+rce"
    """a loss by its text, such as "10*nce + 0.1*rce(A=-4)", or a published one by its name, with
    the settings of the protocol for the data set: nce+rce, anl-ce, jal-ce, ...; or nlnl"""
    model: str | None = None
    """network: mlp, cnn4, cnn8, resnet18, resnet34, resnet50, resnet50-imagenet"""
    protocol: Literal["paper", "authors"] = "paper"
    """where settings that are not given come from: the paper, or its authors' code"""
    epochs: int | None = None
    """passes over the training set"""
    batch_size: int | None = None
    """samples a step"""
    lr: float | None = None
    """learning rate at the start"""
    schedule: Literal["cosine", "exponential", "constant"] | None = None
    """how the rate falls from epoch to epoch (exponential: by 0.97)"""
    lr_floor: float | None = None
    """the rate that the cosine schedule ends at"""
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
    """decay of an average of the weights that is tested beside the last ones; 0 for none"""
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
        for name, kind, low, high in (
            ("rate", float, 0, 1), ("ema", float, 0, 1), ("holdout", float, 0, 1),
            ("momentum", float, 0, 1), ("lr", float, 0, math.inf), ("lr_floor", float, 0, math.inf),
            ("weight_decay", float, 0, math.inf), ("clip", float, 0, math.inf),
            ("l1", float, 0, math.inf), ("balance", float, 0, math.inf),
            ("rotate", float, 0, 180), ("crop", int, 0, math.inf), ("epochs", int, 1, math.inf),
            ("batch_size", int, 2, math.inf), ("seed", int, 0, 2**32 - 1),
        ):  # fmt: skip
            value: Any = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, NUMBER):
                raise ValueError(f"{name} must be a number; it was {value!r}")
            if not low <= value <= high:
                most = f"{high:g}" if high < 1e6 else high
                raise ValueError(f"{name} goes from {low} to {most}; it was {value}")
            if value == math.inf or kind(value) != value:
                what = "finite" if kind is float else "whole"
                raise ValueError(f"{name} must be a {what} number; it was {value}")
            object.__setattr__(self, name, kind(value))  # 1 and 1.0 are one run
        for name in ("dataset", "loss", "model", "device"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                remedy = "; one of your own goes to fit(run, loss=...)" if name == "loss" else ""
                raise ValueError(f"{name} must be a text; it was {value!r}{remedy}")
        for name in ("nesterov", "flip"):
            if getattr(self, name) not in (None, True, False):
                raise ValueError(f"{name} is true or false; it was {getattr(self, name)!r}")
        for name, known in _CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in known:
                hint = nearest(str(value), known)
                raise ValueError(f"{name} is one of {', '.join(known)}; it was {value!r}{hint}")
        for name in ("ema", "holdout"):
            if getattr(self, name) == 1:
                raise ValueError(f"{name} must be below 1")

    def filled(self) -> Run:
        """The same run with the protocol's values in place of what was None.

        ``weight_decay`` and ``l1`` stay None: a published loss may bring its own.
        """
        protocol = protocol_of(self.protocol, self.dataset)
        values = {
            f.name: getattr(protocol, f.name)
            for f in dataclasses.fields(Protocol)
            if f.name != "weight_decay" and getattr(self, f.name) is None
        }
        if self.is_nlnl and self.epochs is None:
            values["epochs"] *= _LONGER
        values["noise"] = noise = self.noise or "symmetric"
        if self.variant is None:
            drawn = noise in ("symmetric", "asymmetric")  # the kinds that the authors have
            values["variant"] = self.protocol if drawn else "paper"
        if noise in _FIXED:
            values["rate"] = 0.0
        return dataclasses.replace(self, **values)

    @property
    def kind(self) -> tuple[Any, ...]:
        """Runs of one kind can be trained side by side."""
        f = self.filled()
        return (f.dataset, f.model, f.epochs, f.batch_size, f.holdout, f.precision, f.device)

    @property
    def is_nlnl(self) -> bool:
        return self.loss.strip().lower() == NLNL

    def settings(self) -> dict[str, Any]:
        """What decides the numbers: every field but the device, the loss without its blanks."""
        values = dataclasses.asdict(self.filled())
        del values["device"]
        values["loss"] = _NAME.sub(lambda name: name[0].lower(), "".join(self.loss.split()))
        return values

    @property
    def hash(self) -> str:
        """The run's name: the same for the same settings, however they were given."""
        return hash_of(self.settings())

    def __str__(self) -> str:
        noise = self.noise or "symmetric"
        noise = noise if noise in _FIXED else f"{noise} {self.rate:g}"
        return f"{self.dataset}, {noise}, {self.loss}, seed {self.seed}"

    def learning_rate(self, epoch: int) -> float:
        """The rate of an epoch, the first being 0; the schedule is stepped once an epoch."""
        run = self.filled()
        assert run.lr is not None
        assert run.epochs is not None
        assert run.lr_floor is not None
        if run.schedule == "constant":
            return run.lr
        if run.schedule == "exponential":
            return run.lr * 0.97**epoch
        return (
            run.lr_floor
            + (run.lr - run.lr_floor) * (1 + math.cos(math.pi * epoch / run.epochs)) / 2
        )


_FIXED = (  # noise that has no rate to choose
    "none", "cifar10n-worst", "cifar10n-aggregate", "cifar10n-random1", "cifar10n-random2",
    "cifar10n-random3", "cifar100n",
)  # fmt: skip


_CHOICES = {
    "noise": ("none", "symmetric", "asymmetric", "pairflip", "instance", *_FIXED[1:], "real"),
    "variant": ("paper", "authors"),
    "protocol": ("paper", "authors"),
    "schedule": ("cosine", "exponential", "constant"),
    "precision": ("auto", "bf16", "tf32", "fp32"),
}
# Names of losses are read in either case; hyper-parameters, such as A in rce(A=-4), are not.
_NAME = re.compile(r"\w+(?![\w=])")
