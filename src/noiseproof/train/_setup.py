"""From a run's settings to what is trained: data, noise, network, loss."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import data as datasets
from .. import models, noise
from .._seeds import derive
from ..data import Augment, Dataset, Loader
from ..losses import Loss, parse, recipe
from ..noise import NoisyLabels
from ._objective import LossObjective, NLNLObjective, Objective
from ._protocols import protocol_of
from ._run import Run
from ._trainee import Held, Trainee

Own = dict[str, Any]


def device_of(name: str) -> torch.device:
    """The device that a run asks for; auto takes a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"unknown device {name!r}; give cpu, cuda, cuda:1 or auto") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {name!r} was asked for, but torch sees no GPU; give --device cpu")
    return device


def precision_of(run: Run, device: torch.device) -> torch.dtype | None:
    """The 16-bit type that the network computes in, or None for float32."""
    low = run.precision == "bf16" or (run.precision == "auto" and device.type == "cuda")
    return torch.bfloat16 if low else None


def loss_of(run: Run) -> tuple[Loss, float, float]:
    """The loss of a run's text, its weight decay and its L1 weight.

    The name of a published loss brings the settings of the protocol for the data set; any other
    text is read as it stands.
    """
    run = run.filled()
    decay = protocol_of(run.protocol, run.dataset).weight_decay
    l1 = 0.0
    assert run.noise is not None
    try:
        found = recipe(run.loss, run.dataset, noise=run.noise, rate=run.rate, protocol=run.protocol)
    except ValueError as no_recipe:
        try:
            loss = parse(run.loss)
        except ValueError:
            if str(no_recipe).startswith("unknown recipe"):
                raise
            raise no_recipe from None
    else:
        loss, l1 = found.loss, found.l1
        decay = decay if found.weight_decay is None else found.weight_decay
    decay = decay if run.weight_decay is None else run.weight_decay
    return loss, decay, l1 if run.l1 is None else run.l1


class Setup:
    """Makes trainees, and keeps what several of them share: data on the device, architectures."""

    def __init__(self, data_root: Path | str | None = None, *, download: bool = True) -> None:
        self.data_root = data_root
        self.download = download
        self._shared: dict[tuple[Any, ...], Any] = {}

    def trainee(
        self,
        run: Run,
        *,
        data: Dataset | None = None,
        network: nn.Module | None = None,
        loss: Callable[[Tensor, Tensor], Tensor] | None = None,
        labels: NoisyLabels | Tensor | None = None,
        prior: Tensor | None = None,
    ) -> Trainee:
        """A run ready to be trained; what is given stands in for what the run names."""
        run = run.filled()
        device = device_of(run.device)
        if data is None:
            data = self._once(("data", run.dataset), lambda: self._load(run.dataset))
        if labels is None:
            noisy = self._noise(run, data)
        elif isinstance(labels, NoisyLabels):
            noisy = labels
        else:
            noisy = noise.from_labels(data.train.labels, labels, data.num_classes)
        if len(noisy) != len(data.train):
            raise ValueError(
                f"{len(noisy)} noisy labels were given for {len(data.train)} training images"
            )
        given, clean = (
            torch.as_tensor(t).to(device, torch.int64) for t in (noisy.labels, noisy.clean)
        )
        images = self._on(device, data.train.images)
        test = Held(self._on(device, data.test.images), self._on(device, data.test.labels))
        validation = None
        if run.holdout:
            kept, held = _held_out(len(given), run.holdout, run.seed, device)
            validation = Held(images[held], given[held])
            images, given, clean = images[kept], given[kept], clean[kept]
        assert run.batch_size is not None
        assert run.crop is not None
        assert run.flip is not None
        assert run.rotate is not None
        assert run.epochs is not None
        loader = Loader(
            images, given, mean=data.mean, std=data.std, batch_size=run.batch_size,
            augment=Augment(run.crop, run.flip, run.rotate), device=device, seed=run.seed,
        )  # fmt: skip
        architecture, start = self._network(run, data, network, device)
        _check_last_batch(start, len(images), run.batch_size)
        objective: Objective
        if run.is_nlnl and loss is None:
            objective = NLNLObjective(given, data.num_classes, run.epochs, run.seed)
            decay, l1 = _plain_decay(run)
        else:
            if loss is None:
                loss, decay, l1 = loss_of(run)
            else:
                decay, l1 = _plain_decay(run)
            if isinstance(loss, nn.Module):
                loss = loss.to(device)
            classes = data.num_classes
            prior = torch.full((classes,), 1 / classes) if prior is None else prior
            objective = LossObjective(loss, run.balance, prior.to(device, torch.float32))
        low = precision_of(run, device)
        return Trainee(
            run, architecture, start, loader, clean, objective, test, validation, low, decay, l1
        )

    def _load(self, name: str) -> Dataset:
        return datasets.load(name, root=self.data_root, download=self.download)

    def _noise(self, run: Run, data: Dataset) -> NoisyLabels:
        assert run.noise is not None
        if run.noise in datasets.human_names():
            return datasets.human(run.noise, root=self.data_root, download=self.download)
        features = data.train.images.flatten(1).float() if run.noise == "instance" else None
        assert run.variant is not None
        known = data.name if run.noise == "asymmetric" else None  # whose classes are confused
        return noise.make(
            run.noise, data.train.labels, run.rate, num_classes=data.num_classes,
            dataset=known, variant=run.variant, seed=run.seed, features=features,
        )  # fmt: skip

    def _network(
        self, run: Run, data: Dataset, network: nn.Module | None, device: torch.device
    ) -> tuple[nn.Module, nn.Module]:
        """The architecture, one object for all runs that share it, and where this run starts."""
        if network is not None:
            return network, network
        channels, size = data.train.images.shape[1:3]
        assert run.model is not None
        start = models.build(
            run.model, data.num_classes, channels, image_size=size, seed=derive(run.seed, "start")
        )
        if device.type == "cpu":
            return start, start
        key = ("network", run.model, data.num_classes, channels, size)
        return self._once(key, lambda: copy.deepcopy(start)), start

    def _on(self, device: torch.device, tensor: Tensor) -> Tensor:
        if tensor.device == device:
            return tensor
        key = ("tensor", device, id(tensor))
        return self._once(key, lambda: (tensor, tensor.to(device)))[1]  # type: ignore[no-any-return]

    def _once(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]


def _plain_decay(run: Run) -> tuple[float, float]:
    decay = protocol_of(run.protocol, run.dataset).weight_decay
    return decay if run.weight_decay is None else run.weight_decay, run.l1 or 0.0


def _held_out(n: int, fraction: float, seed: int, device: torch.device) -> tuple[Tensor, Tensor]:
    order = torch.randperm(n, generator=torch.Generator().manual_seed(derive(seed, "holdout")))
    count = round(n * fraction)
    if not 0 < count < n - 1:
        raise ValueError(f"holdout={fraction:g} of {n} samples leaves nothing to train or to hold")
    held = order[:count].sort().values.to(device)
    return order[count:].sort().values.to(device), held


def _check_last_batch(network: nn.Module, n: int, batch_size: int) -> None:
    normed = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in network.modules())
    if normed and n % batch_size == 1:
        better = next(b for b in range(batch_size + 1, n + 2) if n % b != 1)
        raise ValueError(
            f"batch_size={batch_size} leaves a last batch of one of the {n} samples, of which "
            f"batch norm has no statistics; give batch_size={better}"
        )
