"""From a resolved run to what is trained: data, noise, network, loss."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import catalogue, models, noise
from .. import data as datasets
from .._devices import named_device
from .._errors import UsageError
from .._imports import is_import
from .._seeds import derive
from ..data import (
    Augment,
    Dataset,
    ImageFiles,
    Keeping,
    Loader,
    channel_statistics,
    resident,
    select,
)
from ..data import Inputs as Samples
from ..losses._wrappers import check_own_loss
from ..noise import NoisyLabels
from ..noise._checks import check_labels
from ..runs import ResolvedRun
from ..sources import Content, Source, read
from ._model import Inputs
from ._objective import LossObjective, NLNLObjective, Objective
from ._own import Factory, compute_dtype_of, import_modules, loss_of, network_of, prepare
from ._ranks import ALONE, Ranks, local_gpu
from ._trainer import EvalSplit, RunTrainer


def device_of(name: str) -> torch.device:
    """The device that a run asks for; auto takes a GPU where there is one."""
    device = named_device(name, "give --device cpu")
    return local_gpu("cuda" if name == "auto" else name) if device.type == "cuda" else device


class Setup:
    """Makes trainers, and keeps what several of them share: data on the device, architectures."""

    def __init__(
        self,
        data_root: Path | str | None = None,
        *,
        download: bool = True,
        ranks: Ranks = ALONE,
    ) -> None:
        self.data_root = data_root
        self.ranks = ranks
        self.download = download
        self._shared: dict[tuple[Any, ...], Any] = {}

    def trainer(
        self,
        run: ResolvedRun,
        *,
        data: Dataset | None = None,
        network: nn.Module | Factory | None = None,
        loss: Callable[[Tensor, Tensor], Tensor] | None = None,
        labels: NoisyLabels | Tensor | None = None,
        prior: Tensor | None = None,
    ) -> RunTrainer:
        """A run ready to be trained; what is given overrides what the run names."""
        device = device_of(run.device)
        import_modules(run)
        own = data is not None or run.source is not None
        data, noisy = self.samples(run, data=data, labels=labels)
        given = torch.as_tensor(noisy.labels).to(device, torch.int64)
        clean: Tensor | None = torch.as_tensor(noisy.clean).to(device, torch.int64)
        if labels is None and run.noise == catalogue.GIVEN and data.train.truth is None:
            clean = None  # nobody knows which of the labels are wrong
        inputs = self._on(device, data.train.inputs)
        test_labels = data.test.labels.to(device)
        test = EvalSplit(self._on(device, data.test.inputs), test_labels)
        validation, kept = None, None
        if run.holdout:
            kept, held_out = split(
                given, run.holdout, run.seed, stratified=own or run.fold > 0, fold=run.fold
            )
            validation = EvalSplit(select(inputs, held_out), given[held_out], held_out)
            if clean is not None and not len(test.labels):
                test = EvalSplit(validation.inputs, clean[held_out])
            inputs, given = select(inputs, kept), given[kept]
            clean = None if clean is None else clean[kept]
            if data.learnt:  # what is held out is no part of the training set
                mean, std = channel_statistics(inputs)
                data = replace(data, mean=mean, std=std)
        batch_size = min(run.batch_size, len(given))
        if run.fold or (run.source is not None and run.source.skip_unreadable):
            batch_size = catalogue.whole_batch(len(given), batch_size)  # what is read, is known now
        loader = Loader(
            inputs, given, mean=data.mean, std=data.std, batch_size=batch_size,
            augment=Augment(
                run.crop, run.flip, run.rotate, run.crop_size, run.crop_scale, run.jitter
            ),
            device=device, seed=run.seed,
        )  # fmt: skip
        known = Inputs.of(data, run.crop_size)
        architecture, start = self._network(run, data, known, network, device)
        own_network = network is not None or is_import(run.model)
        compute_dtype = compute_dtype_of(run)
        channels_last = models.channels_last_pays(device, known.shape, start) and (
            not own_network or models.takes_channels_last(start, known.shape, compute_dtype)
        )
        _check_last_batch(start, len(inputs), batch_size)
        _check_shares(self.ranks, loader.batch_size)
        objective: Objective
        if run.loss == catalogue.NLNL and loss is None:
            objective = NLNLObjective(given, data.num_classes, run.epochs, run.seed)
        else:
            loss = loss_of(run, loss, given, data.num_classes)
            check_own_loss(loss)
            if isinstance(loss, nn.Module):
                loss = loss.to(device)
            prior = _checked_prior(prior, data.num_classes).to(device)
            objective = LossObjective(loss, run.balance, prior, run.label_smoothing)
        return RunTrainer(
            run, architecture, start, loader, clean, objective, test, validation, compute_dtype,
            known, self.ranks, data.left_out, kept, channels_last,
        )  # fmt: skip

    def samples(
        self,
        run: ResolvedRun,
        *,
        data: Dataset | None = None,
        labels: NoisyLabels | Tensor | None = None,
    ) -> tuple[Dataset, NoisyLabels]:
        """The data of a run and its labels, as given and as they should be."""
        if data is None:
            device = device_of(run.device)
            data = self._once(("data", run.dataset), lambda: self._load(run, device))
        assert data is not None
        return data, self._noisy_labels(run, data, labels)

    def _load(self, run: ResolvedRun, device: torch.device) -> Dataset:
        cache = Path(run.place("cache")) if run.place("cache") else None
        keeping = Keeping(run.stream, cache, device)
        if run.source is not None:
            content = read(run.source)
            if content.name != run.dataset:
                raise UsageError(
                    f"{run.source.path} has changed since the run was made; start again"
                )
            return _tensors(content, run.source, keeping)
        return datasets.load(
            run.dataset, root=self.data_root, download=self.download, keeping=keeping,
            skip_unreadable=bool(run.place("skip_unreadable")),
        )  # fmt: skip

    def _noisy_labels(
        self, run: ResolvedRun, data: Dataset, labels: NoisyLabels | Tensor | None
    ) -> NoisyLabels:
        known = self._draw(run, data) if labels is None else labels
        given = known if isinstance(known, NoisyLabels) else check_labels(known).values
        if len(given) != len(data.train):
            raise UsageError(
                f"{len(given)} noisy labels were given for {len(data.train)} training samples"
            )
        if isinstance(given, NoisyLabels):
            return given
        return noise.from_labels(data.train.labels, given, data.num_classes)

    def _draw(self, run: ResolvedRun, data: Dataset) -> NoisyLabels:
        group = catalogue.noise_group(run.noise)
        if group == "human":
            return datasets.human(run.noise, root=self.data_root, download=self.download)
        drawn = run.noise if group == "drawn" else catalogue.CLEAN
        if drawn == catalogue.CLEAN and data.train.truth is not None:
            return noise.from_labels(data.train.truth, data.train.labels, data.num_classes)
        if drawn == "instance" and data.train.kind == "tokens":
            raise UsageError(
                "instance noise depends on numbers, and token ids are names; take pairflip"
            )
        features = None
        if drawn == "instance":
            features = resident(data.train.inputs, "instance noise").flatten(1).float()
        known = data.name if drawn == "asymmetric" else None  # whose classes are confused
        made = noise.make(
            drawn, data.train.labels, run.rate, num_classes=data.num_classes,
            dataset=known, variant=run.variant, seed=run.seed, features=features,
        )  # fmt: skip
        if data.train.truth is None:
            return made
        return noise.from_labels(data.train.truth, made.labels, data.num_classes)

    def _network(
        self,
        run: ResolvedRun,
        data: Dataset,
        inputs: Inputs,
        network: nn.Module | Factory | None,
        device: torch.device,
    ) -> tuple[nn.Module, nn.Module]:
        """The architecture, one object for all runs that share it, and where this run starts."""
        if network is not None or is_import(run.model):
            start = network_of(run, network, inputs, device)
            return start, start
        shape, vocabulary = inputs.shape, data.vocabulary
        start = models.build(
            run.model, data.num_classes, shape=shape, vocabulary=vocabulary,
            seed=derive(run.seed, "start"),
        )  # fmt: skip
        prepare(run, start)
        if device.type == "cpu":
            return start, start
        key = ("network", run.model, data.num_classes, shape, vocabulary, run.freeze)
        return self._once(key, lambda: copy.deepcopy(start)), start

    def _on(self, device: torch.device, tensor: Samples) -> Samples:
        if isinstance(tensor, ImageFiles):
            return tensor.on(device)
        if tensor.device == device:
            return tensor
        key = ("tensor", device, id(tensor))
        return self._once(key, lambda: (tensor, tensor.to(device)))[1]  # type: ignore[no-any-return]

    def _once(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]


def _checked_prior(given: Any, classes: int) -> Tensor:
    """The share of each class, [K]; uniform if not given."""
    if given is None:
        return torch.full((classes,), 1 / classes)
    prior = torch.as_tensor(given, dtype=torch.float32)
    total = float(prior.sum())
    if prior.shape != (classes,) or not (prior.min() >= 0 and abs(total - 1) < 1e-3):
        raise UsageError(
            f"prior is the share of each of {classes} classes, numbers from 0 that sum to 1; it is "
            f"{list(prior.shape)} and sums to {total:g}"
        )
    return prior


@functools.lru_cache(maxsize=1)
def _tensors(content: Content, source: Source, keeping: Keeping) -> Dataset:
    """What was read, as tensors; kept, so that the runs of a bench decode and hash it once."""
    return datasets.load_content(content, source, keeping)


def split(
    labels: Tensor, fraction: float, seed: int, *, stratified: bool, fold: int = 0
) -> tuple[Tensor, Tensor]:
    """The indices to train on, and those held out for validation.

    Args:
        labels: of all.
        fraction: to hold out.
        seed: of the order in which they are taken.
        stratified: whether every class is held out in its share, and one of a few samples not.
        fold: which of the parts of that fraction is held out, from 1; 0 is the first as well.
    """
    n = len(labels)
    first = round(n * fraction * max(fold - 1, 0))
    count = min(n, round(n * fraction * max(fold, 1))) - first
    order = torch.randperm(n, generator=torch.Generator().manual_seed(derive(seed, "holdout")))
    if not 0 < count < n - 1:
        raise UsageError(
            f"holdout={fraction:g} of {n} samples leaves nothing to train or to hold; give more, "
            "or something to test on"
        )
    if stratified:
        order = order[_even_places(labels.cpu()[order]).argsort(stable=True)]
    order = order.to(labels.device)
    held_out = order[first : first + count]
    kept = torch.cat((order[:first], order[first + count :]))
    return kept.sort().values, held_out.sort().values


def _even_places(labels: Tensor) -> Tensor:
    """A number from 0 to 1 for each, those of a class evenly spread in their order.

    >>> _even_places(torch.tensor([0, 1, 0, 0, 0])).tolist()
    [0.125, 0.5, 0.375, 0.625, 0.875]
    """
    by_class, sizes = labels.argsort(stable=True), torch.bincount(labels)
    sorted_labels = labels[by_class]
    rank = torch.arange(len(labels)) - (sizes.cumsum(0) - sizes)[sorted_labels]
    places = torch.empty(len(labels), dtype=torch.float64)
    places[by_class] = (rank.double() + 0.5) / sizes[sorted_labels]
    return places


def _check_last_batch(network: nn.Module, n: int, batch_size: int) -> None:
    normed = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in network.modules())
    if normed and n % batch_size == 1:
        better = catalogue.whole_batch(n, batch_size)
        raise UsageError(
            f"batch_size={batch_size} leaves a last batch of one of the {n} samples, of which "
            f"batch norm has no statistics; give batch_size={better}"
        )


def _check_shares(ranks: Ranks, batch_size: int) -> None:
    if batch_size < 2 * ranks.size > 2:
        raise UsageError(
            f"a batch of {batch_size} samples is that of all {ranks.size} ranks together, and each "
            f"needs 2: give batch_size={2 * ranks.size} and as much data, or start fewer ranks"
        )
