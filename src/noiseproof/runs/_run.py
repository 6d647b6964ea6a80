"""A run as a user gives it: one frozen value, what is not given left open."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .. import catalogue
from ..sources import is_source
from ._check import check, check_together
from ._resolve import note_of, precision, resolve, source_of
from ._resolved import ResolvedRun

if TYPE_CHECKING:
    from ..sources import Content


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
    """of a table, the column of the labels; label where none is given"""
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
    the end, if there is no shrink_limit: an L1 penalty in units of the schedule, which takes the
    place of weight decay and L1 where these are not given; 0 for none"""
    shrink_schedule: Literal["constant", "linear"] | None = None
    """whether weights are shrunk in proportion to the learning rate alone, or also to how much of
    the run is over"""
    shrink_limit: float | None = None
    """the most that a step shrinks a weight by, in learning rates: a step of AdamW moves a weight
    by about one, however much the loss pulls; 0 for no limit"""
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
        for name, value in check(self).items():
            object.__setattr__(self, name, value)
        check_together(self)

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
        return resolve(self, on_gpu=on_gpu, overrides=overrides, data=data, name=name)

    def resolutions(self) -> tuple[ResolvedRun, ...]:
        """Every resolved run whose record answers this one: precision auto is satisfied by any."""
        on_cpu = self.resolve()
        on_gpu = dataclasses.replace(on_cpu, precision=precision(self, on_gpu=True))
        return (on_gpu,) if on_gpu == on_cpu else (on_gpu, on_cpu)

    def note(self) -> str:
        """What a user should know of the published numbers that the loss's name brings."""
        return note_of(self)

    def content(self) -> Content | None:
        """What is in the data of the user's own that it names, if it names such."""
        if not is_source(self.dataset):
            return None
        from ..sources import read  # which takes NumPy

        return read(source_of(self))

    def __str__(self) -> str:
        known = catalogue.DATASETS.get(self.dataset)
        usual = catalogue.GIVEN if is_source(self.dataset) else "symmetric"
        noise = self.noise or (usual if known is None else known.noise)
        noise = catalogue.noise_title(noise, self.rate)
        lr = "" if self.lr is None else f", lr {self.lr:g}"
        return f"{self.dataset}, {noise}, {self.loss}{lr}, seed {self.seed}"
