"""A run as a user gives it: one frozen value, what is not given left open."""

from __future__ import annotations

import dataclasses
import math
import numbers
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .. import catalogue, syntax
from .._errors import UsageError
from .._hints import match_name, nearest
from .._imports import is_import, load
from ..sources import Source, is_source, meant_source, source_named
from ._own import Own
from ._resolved import ResolvedRun, check_name
from ._schedules import SCHEDULES

if TYPE_CHECKING:
    from ..sources import Content

NUMBER: Any = numbers.Real  # NumPy's are too
_MAX = 1e38  # of a float32
_OF_SOURCES = (
    "test", "label", "text", "image", "truth", "ignore", "image_size", "skip_unreadable",
)  # fmt: skip
_HOLDOUT = 0.1  # to choose an epoch by, where there is a part to test on
_NLNL_EPOCHS = 10  # how many times the protocol's epochs the three stages of NLNL take together


@dataclass(frozen=True, kw_only=True)
class Run:
    """One network, one noisy data set, one loss. What is None is taken from the protocol.

    >>> run = Run(dataset="cifar10", noise="symmetric", rate=0.8, loss="nce+rce")
    >>> run.resolve().model, run.resolve().epochs
    ('cnn8', 120)
    """

    dataset: str = "digits"
    """data set by name; or data of your own: folder:DIR (one folder a class), csv:FILE,
    parquet:FILE, npz:FILE"""
    test: str = ""
    """of your own data, the file or folder to test on; without one a part is held out"""
    label: str = ""
    """of a table, the column of the labels; by default label"""
    text: str = ""
    """of a table, the column of the texts to classify"""
    image: str = ""
    """of a table, the column of the image files to classify"""
    truth: str = ""
    """of a table, the column of the true labels, where they are known"""
    ignore: tuple[str, ...] = ()
    """of a table, columns that are no features"""
    image_size: int = 0
    """the side in pixels that your images are brought to; 0 for what suits them"""
    skip_unreadable: bool = False
    """go on without files and rows of your data that cannot be read"""
    noise: str | None = None
    """kind of label noise, or the name of a set of human labels; by default symmetric, and for data
    of one's own the labels as they are given"""
    rate: float = 0.4
    """fraction of the labels that are made wrong, from 0 to 1"""
    variant: Literal["paper", "authors"] | None = None
    """how the noise is drawn: as the paper says, or as its authors' code draws it"""
    loss: str = "nce+rce"
    """a loss by its text, such as "10*nce + 0.1*rce(A=-4)", or a published one by its name, with
    the settings of the protocol for the data set: nce+rce, anl-ce, jal-ce, ...; or nlnl; or auto,
    one setting for any noise; or one of your own, mymodule:name"""
    imports: tuple[str, ...] = ()
    """modules of your own to import first, whose registered losses a text may then name"""
    model: str | None = None
    """network by name; or one of your own, mymodule:name, torchvision:resnet18 or timm:resnet18"""
    weights: str = ""
    """a file of weights to start from: a state dict, .pt or .safetensors"""
    freeze: tuple[str, ...] = ()
    """patterns of the names of parameters that are not trained, such as "layer1.*"; batch norms
    that are frozen keep their statistics too"""
    protocol: Literal["paper", "authors"] = "paper"
    """where settings that are not given come from: the paper, or its authors' code"""
    epochs: int | None = None
    """passes over the training set"""
    batch_size: int | None = None
    """samples a step"""
    lr: float | None = None
    """learning rate at the start, or at the end of the warm-up"""
    schedule: str | None = None
    """of the learning rate (exponential: by 0.97 an epoch)"""
    schedule_by: Literal["epoch", "step"] = "epoch"
    """whether the learning rate is set once an epoch or anew for every step"""
    warmup: float = 0.0
    """epochs, also a part of one, in which the learning rate grows linearly, step by step"""
    lr_floor: float | None = None
    """the learning rate that the cosine schedule ends at"""
    optimizer: str | None = None
    """the optimizer; adamw by default has lr 0.001 and weight_decay 0.01"""
    momentum: float | None = None
    """of SGD"""
    nesterov: bool | None = None
    """Nesterov's form of the momentum"""
    beta1: float | None = None
    """of AdamW: decay of the mean of the gradient"""
    beta2: float | None = None
    """of AdamW: decay of the mean of its square"""
    eps: float | None = None
    """of AdamW: added to the root of that mean"""
    weight_decay: float | None = None
    """of SGD: added to the gradient; of AdamW: decoupled from it"""
    decay_on: Literal["all", "matrices"] = "all"
    """which parameters decay: all, or matrices and kernels of convolutions alone, not biases and
    norms"""
    clip: float | None = None
    """the largest norm of the gradient; 0 for no limit"""
    crop: int | None = None
    """padding of the random crop; 0 for none"""
    crop_size: int | None = None
    """the side in pixels of the random part of an image that is trained on, and of its middle that
    is tested on; 0 for the whole image"""
    crop_scale: float | None = None
    """the smallest share of an image that is brought to crop_size (a random resized crop); 0 cuts
    crop_size out as it is"""
    jitter: float | None = None
    """by how much brightness, contrast and saturation are changed at most, and hue by half of it; 0
    for none"""
    flip: bool | None = None
    """random horizontal flip"""
    rotate: float | None = None
    """largest angle of the random rotation, in degrees; 0 for none"""
    l1: float | None = None
    """weight of the L1 norm of all parameters, added to the loss"""
    shrink: float | None = None
    """how many times over a weight of usual size that nothing else moves would be shrunk to zero by
    the end: an L1 penalty in units of the schedule, which takes the place of weight decay and L1
    where these are not given; 0 for none"""
    shrink_schedule: Literal["constant", "linear"] | None = None
    """whether weights are shrunk in proportion to the learning rate alone, or also to how much of
    the run is over"""
    ema: float = 0.0
    """decay of an exponential moving average of the weights, tested beside them; 0 for none"""
    ema_horizon: float | None = None
    """the same by the length of the run: how far back the average reaches, as a share of all steps;
    0.02 of 50,000 steps is a decay of 0.999"""
    class_weight: Literal["none", "balanced"] = "none"
    """weights of the classes in the loss; balanced gives every class the same share, which robust
    losses need where some classes are rare"""
    label_smoothing: float = 0.0
    """the part of each label that is spread evenly over all classes, below 1"""
    mixup: float = 0.0
    """alpha of the Beta distribution from which each step's weight of mixed samples is drawn; 0 for
    none"""
    balance: float = 0.0
    """weight of a penalty on the batch's mean prediction: its KL divergence from the classes'
    prior, which is uniform"""
    holdout: float | None = None
    """fraction of the noisy training set that is kept for validation; by default none, or of your
    own data without a test part a tenth to a fifth"""
    choose_epoch: bool | None = None
    """keep the weights of the epoch that is best on what is held out, if it is better than the last
    by a paired standard error; holds out a tenth where holdout is not given"""
    fold: int = 0
    """which part is held out, of the equal parts of that fraction: 1 is the first, each has its
    share of every class; 0 for one at random"""
    precision: Literal["auto", "bf16", "tf32", "fp32"] = "auto"
    """of the network's arithmetic (weights are float32): auto is bf16 on a GPU, fp32 on a CPU"""
    device: str = "auto"
    """cpu, cuda, cuda:1, ...; auto takes a GPU where there is one"""
    stream: Literal["auto", "yes", "no"] = "auto"
    """whether image files are decoded as they are read; auto does so where they do not fit into
    memory. It changes no number"""
    cache: str = ""
    """a folder in which decoded images are kept, so that they are decoded once"""
    seed: int = 0
    """of the noise, the start, the order and the augmentation, each drawn independently"""

    def __post_init__(self) -> None:
        for name, expected, low, high in (
            ("rate", float, 0, 1), ("ema", float, 0, 1), ("holdout", float, 0, 1),
            ("ema_horizon", float, 0, 1),
            ("momentum", float, 0, 1), ("lr", float, 0, _MAX), ("lr_floor", float, 0, _MAX),
            ("weight_decay", float, 0, _MAX), ("clip", float, 0, _MAX),
            ("l1", float, 0, _MAX), ("shrink", float, 0, _MAX), ("balance", float, 0, _MAX),
            ("beta1", float, 0, 1), ("beta2", float, 0, 1), ("eps", float, 0, _MAX),
            ("warmup", float, 0, _MAX), ("label_smoothing", float, 0, 1), ("mixup", float, 0, 1e6),
            ("rotate", float, 0, 180), ("crop", int, 0, math.inf), ("epochs", int, 1, math.inf),
            ("batch_size", int, 2, math.inf), ("seed", int, 0, 2**32 - 1),
            ("image_size", int, 0, 4096), ("crop_size", int, 0, 4096),
            ("crop_scale", float, 0, 1), ("jitter", float, 0, 1), ("fold", int, 0, 1000),
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
        for name in ("test", "weights", "cache"):
            if isinstance(getattr(self, name), os.PathLike):
                object.__setattr__(self, name, os.fspath(getattr(self, name)))
        for name in (
            "dataset", "loss", "model", "device", "optimizer", "test", "label", "text", "image",
            "truth", "weights", "cache",
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                remedy = "; a loss of your own goes to fit(run, loss=...)" if name == "loss" else ""
                raise UsageError(f"{name} must be a text; it was {value!r}{remedy}")
        for name in ("nesterov", "flip", "skip_unreadable", "choose_epoch"):
            value = getattr(self, name)
            if type(value).__name__ in ("bool", "bool_"):  # NumPy's too
                object.__setattr__(self, name, bool(value))
            elif value is not None:
                raise UsageError(f"{name} is true or false; it was {value!r}")
        for name in ("imports", "freeze", "ignore"):
            object.__setattr__(self, name, _texts(name, getattr(self, name)))
        for name, known in CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in known:
                hint = nearest(str(value), known)
                raise UsageError(f"{name} is one of {', '.join(known)}; it was {value!r}{hint}")
        for name in ("ema", "holdout", "label_smoothing", "beta1", "beta2"):
            if getattr(self, name) == 1:
                raise UsageError(f"{name} must be below 1")
        shrinks = self.shrink or (self.shrink is None and self._is_auto)
        if self.shrink_schedule not in (None, "constant") and not shrinks:
            raise UsageError("shrink_schedule says how weights are shrunk: give shrink too")
        if self.choose_epoch and self.holdout == 0:
            raise UsageError("choose_epoch chooses by what is held out: give holdout=0.1")
        if self.ema and self.ema_horizon:
            raise UsageError("ema and ema_horizon say the same thing in two ways: give one of them")
        if self.eps == 0:
            raise UsageError("eps must be above 0: a gradient of zero would be divided by it")
        if self.optimizer is not None:
            self._check_optimizer_settings(self.optimizer)
        if not is_source(self.dataset):
            for name in _OF_SOURCES:
                lists = name == "skip_unreadable" and self._has_lists()
                if getattr(self, name) and not lists:
                    raise UsageError(
                        f"{name} is for data of your own, and dataset is {self.dataset!r}"
                        f"{meant_source(self.dataset)}: give csv:FILE, folder:DIR or npz:FILE"
                    )

    @property
    def _is_auto(self) -> bool:
        return not is_import(self.loss) and catalogue.method_named(self.loss) == catalogue.AUTO

    def _has_lists(self) -> bool:
        """Whether its data set is images in files with lists, of which some may be damaged."""
        known = catalogue.DATASETS.get(self.dataset.strip().lower())
        return known is not None and known.lists is not None

    def _check_optimizer_settings(self, optimizer: str) -> None:
        """Refuse what was given and belongs to another optimizer."""
        known = catalogue.OPTIMIZERS[optimizer].settings
        for other, entry in catalogue.OPTIMIZERS.items():
            for name in entry.settings:
                if name not in known and getattr(self, name) is not None:
                    raise UsageError(
                        f"{name} is a setting of {other}, and the optimizer is {optimizer}: "
                        "leave it out"
                    )

    def resolve(
        self,
        *,
        on_gpu: bool = False,
        overrides: Mapping[str, str] | None = None,
        data: catalogue.DataSummary | None = None,
        name: str = "",
    ) -> ResolvedRun:
        """The run as it will be trained: every setting that is left open gets its value.

        Args:
            on_gpu: whether it is trained on a GPU, which decides the precision where it is auto.
            overrides: what is given in place of what the settings name, each by the name to show:
                ``data``, ``labels``, ``loss``, ``network``, ``prior``.
            data: what the data is like that is given.
            name: of the run, by which its results are found again.
        """
        given = dict(overrides or {})
        own = Own()
        content = None if "data" in given else self.content()
        if content is not None:
            dataset, own.paths["data"] = content.name, self._source().to_json()
            data = catalogue.DataSummary(
                content.kind, content.shape, len(content.train), len(content.classes),
                content.test is not None,
            )  # fmt: skip
        else:
            dataset = given["data"] if "data" in given else self._known_dataset()
        noise, rate, variant = self._resolved_noise(dataset, given)
        imports = self._imported(own)
        setting = self._resolved_loss(dataset, noise, rate, data, given, own)
        brought = self._brought(setting)
        holdout = self.holdout
        if holdout is None:
            holdout = 0.0 if data is None else data.usual_holdout
            holdout = holdout or (_HOLDOUT if brought["choose_epoch"] else 0.0)
        if self.fold and (not holdout or self.fold > round(1 / holdout)):
            parts = f"one of {round(1 / holdout)} parts" if holdout else "a part of a holdout"
            raise UsageError(f"fold={self.fold} is {parts}; give holdout=0.2 for five folds, say")
        protocol = (
            catalogue.protocol_of(self.protocol, dataset)
            if data is None
            else data.protocol(holdout)
        )
        optimizer = self.optimizer or protocol.optimizer
        self._check_optimizer_settings(optimizer)
        defaults = vars(protocol) | {"holdout": holdout}
        if optimizer != protocol.optimizer:
            defaults |= catalogue.OPTIMIZERS[optimizer].defaults
        elif optimizer != "sgd":
            defaults |= {"momentum": 0.0, "nesterov": False}
        if self.cache:
            own.paths["cache"] = str(Path(self.cache).expanduser().absolute())
        if self.skip_unreadable and content is None:
            own.paths["skip_unreadable"] = "yes"
        values: dict[str, Any] = {}
        for field in dataclasses.fields(ResolvedRun):
            if hasattr(self, field.name):
                value = getattr(self, field.name)
                if value is None:
                    fixed = None if field.default is dataclasses.MISSING else field.default
                    value = defaults.get(field.name, fixed)
                values[field.name] = value
        loss = setting.loss
        if loss == catalogue.NLNL:
            self._check_nlnl()
            if self.epochs is None:
                values["epochs"] *= _NLNL_EPOCHS
        if self.warmup >= values["epochs"]:
            raise UsageError(
                f"warmup={self.warmup:g} epochs leaves none of epochs={values['epochs']}"
            )
        if "network" in given:
            values["model"] = given["network"]
        elif is_import(values["model"]):
            values["model"] = own.identified(values["model"], "model")
        else:
            values["model"] = match_name(values["model"], catalogue.NETWORKS, "network")
        own_parts = "loss" in given or "network" in given or is_import(values["model"])
        if imports and not own_parts and not is_import(loss) and not _uses_own_loss(loss):
            imports = ()  # it needs none of them: their files are no part of what it is
        values["imports"] = imports
        if self.weights:
            values["weights"] = own.file(self.weights, "weights")
        l1 = setting.l1 if self.l1 is None else self.l1
        decay = setting.weight_decay if self.weight_decay is None else self.weight_decay
        if brought["shrink"]:  # it is a penalty on the weights itself
            l1, decay = self.l1 or 0.0, self.weight_decay or 0.0
        else:
            brought["shrink_schedule"] = "constant"
        if decay is not None:
            values["weight_decay"] = decay
        values |= brought
        if not values["weight_decay"]:
            values["decay_on"] = "all"  # none
        if values["schedule"] == "constant":
            values["schedule_by"] = "epoch"
        values |= {
            "dataset": dataset, "noise": noise, "rate": rate, "variant": variant, "loss": loss,
            "l1": l1, "precision": self._resolved_precision(on_gpu),
            "overrides": tuple(sorted(given)), "name": check_name(name) if name else "",
            "paths": tuple(own.paths.items()),
        }  # fmt: skip
        return ResolvedRun(**values)

    def resolutions(self) -> tuple[ResolvedRun, ...]:
        """Every resolved run whose record answers this one: precision auto is satisfied by any."""
        on_cpu = self.resolve()
        on_gpu = dataclasses.replace(on_cpu, precision=self._resolved_precision(on_gpu=True))
        return (on_gpu,) if on_gpu == on_cpu else (on_gpu, on_cpu)

    def note(self) -> str:
        """What a user should know of the published numbers that the loss's name brings."""
        content = self.content()
        dataset = self._known_dataset() if content is None else content.name
        noise, rate, _ = self._resolved_noise(dataset, {})
        if is_import(self.loss):
            return ""
        self._imported(Own())
        if self._is_auto:
            listed = catalogue.DATASETS.get(dataset)
            classes = (content or listed).classes  # type: ignore[union-attr]  # one is there
            return catalogue.auto_note(len(classes), self.resolve().settings())
        return catalogue.resolve_loss(
            self.loss, dataset, noise=noise, rate=rate, protocol=self.protocol
        ).note

    def _check_nlnl(self) -> None:
        for name in ("mixup", "label_smoothing", "class_weight"):
            if getattr(self, name) not in (0.0, "none"):
                raise UsageError(
                    f"nlnl learns from labels that a sample does not have, and takes no {name}: "
                    "leave it out, or choose another loss"
                )

    def _known_dataset(self) -> str:
        try:
            return match_name(self.dataset, catalogue.DATASETS, "data set")
        except UsageError as error:
            hint = meant_source(self.dataset)
            raise (
                UsageError(f"unknown data set {self.dataset!r}{hint}") if hint else error
            ) from None

    def _source(self) -> Source:
        options = {name: getattr(self, name) for name in _OF_SOURCES}
        return source_named(self.dataset, **options)

    def content(self) -> Content | None:
        """What is in the data of the user's own that it names, if it names such."""
        if not is_source(self.dataset):
            return None
        from ..sources import read  # which takes NumPy

        return read(self._source())

    def _resolved_noise(self, dataset: str, given: Mapping[str, str]) -> tuple[str, float, str]:
        own = "data" in given or is_source(self.dataset)
        if self.noise is None and own and "data" not in given and self.rate != Run.rate:
            raise UsageError(
                f"rate={self.rate:g} says how many labels are made wrong, and those of your own "
                "data are taken as they are given: add noise='symmetric'"
            )
        if "labels" in given or (self.noise is None and own):
            return catalogue.GIVEN, 0.0, "paper"
        known = catalogue.DATASETS.get(dataset)
        noise = self.noise or ("symmetric" if known is None else known.noise)
        entry = catalogue.NOISES[noise]
        if entry.group == "human" and "data" not in given:
            labelled = catalogue.HUMAN_FILES[entry.file].dataset
            if labelled != dataset:
                raise UsageError(f"{noise} are labels of {labelled}, and the data set is {dataset}")
        if noise == "asymmetric" and is_source(self.dataset) and "data" not in given:
            raise UsageError(
                "asymmetric noise needs to know which class is mistaken for which: take pairflip, "
                "or in Python fit(..., labels=noise.asymmetric(..., mapping=...))"
            )
        if self.variant not in (None, *entry.variants):
            raise UsageError(f"the authors have no {noise} noise: give variant='paper'")
        variant = self.protocol if self.protocol in entry.variants else "paper"
        if not entry.has_rate or not self.rate:
            clean = catalogue.CLEAN if entry.has_rate else noise
            return clean, 0.0, "paper"
        return noise, self.rate, self.variant or variant

    def _imported(self, own: Own) -> tuple[str, ...]:
        """Import the modules whose losses the text may name."""
        found = tuple(sorted({own.identified(name, "import") for name in self.imports}))
        for name in found:
            load(name, "import")
        return found

    def _resolved_loss(
        self,
        dataset: str,
        noise: str,
        rate: float,
        data: catalogue.DataSummary | None,
        given: dict[str, str],
        own: Own,
    ) -> catalogue.Setting:
        """The loss, its text canonical, with what it brings."""
        if "loss" in given:
            return catalogue.Setting(given["loss"], "")
        if is_import(self.loss):
            return catalogue.Setting(own.identified(self.loss, "loss"), "")
        found = catalogue.resolve_loss(
            self.loss, dataset, noise=noise, rate=rate, protocol=self.protocol,
            classes=None if data is None else data.classes,
        )  # fmt: skip
        if _uses_own_loss(found.loss, but_of=own.modules):
            given["loss"] = found.loss  # nobody can tell it from another of that name
        return found

    def _brought(self, setting: catalogue.Setting) -> dict[str, Any]:
        """Penalty, average and choice: as they are given, else as the method has them."""
        found: dict[str, Any] = {}
        for name, default in (
            ("shrink", 0.0), ("shrink_schedule", "constant"), ("ema_horizon", 0.0),
            ("choose_epoch", False),
        ):  # fmt: skip
            given = getattr(self, name)
            found[name] = setting.brings.get(name, default) if given is None else given
        if self.ema and self.ema_horizon is None:
            found["ema_horizon"] = 0.0  # another average was given
        if self.holdout == 0 and self.choose_epoch is None:
            found["choose_epoch"] = False  # there is nothing to choose by
        return found

    def _resolved_precision(self, on_gpu: bool) -> str:
        if self.precision != "auto":
            return self.precision
        return "bf16" if on_gpu else "fp32"

    def __str__(self) -> str:
        known = catalogue.DATASETS.get(self.dataset)
        usual = catalogue.GIVEN if is_source(self.dataset) else "symmetric"
        noise = self.noise or (usual if known is None else known.noise)
        noise = catalogue.noise_title(noise, self.rate)
        return f"{self.dataset}, {noise}, {self.loss}, seed {self.seed}"


def _uses_own_loss(loss: str, but_of: Sequence[str] = ()) -> bool:
    """Whether a canonical text names a loss that a user declared, in another of these modules."""
    if loss == catalogue.NLNL:
        return False
    return syntax.uses_user_losses(syntax.read(loss), but_of=but_of)


def _texts(name: str, value: Any) -> tuple[str, ...]:
    values = (value,) if isinstance(value, str) else value
    if not isinstance(values, list | tuple) or not all(isinstance(v, str) and v for v in values):
        raise UsageError(f"{name} is a list of texts; it was {value!r}")
    return tuple(sorted(set(values)))


CHOICES: dict[str, tuple[str, ...]] = {
    "noise": tuple(name for name, n in catalogue.NOISES.items() if n.group != "given"),
    "variant": catalogue.PROTOCOLS,
    "protocol": catalogue.PROTOCOLS,
    "schedule": tuple(SCHEDULES),
    "schedule_by": ("epoch", "step"),
    "optimizer": tuple(catalogue.OPTIMIZERS),
    "decay_on": ("all", "matrices"),
    "shrink_schedule": ("constant", "linear"),
    "class_weight": ("none", "balanced"),
    "precision": ("auto", "bf16", "tf32", "fp32"),
    "stream": ("auto", "yes", "no"),
}
"""The settings that take one of a few values."""
