"""One run in training: its data, its weights, and a step. Written once for every device.

A step reads its position from tensors and writes its numbers to tensors, so that it can be run as
it is or captured once and replayed: nothing in it depends on a value that Python sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from .. import kernels
from .._errors import UsageError
from .._seeds import derive
from ..data import ImageFiles, Loader, parts_of, select
from ..data import Inputs as Samples
from ..losses import Loss
from ..models import AcceptsPaddedChannels, frozen_norms, not_logits, padded_channels
from ..results import HELD_OUT_ACCURACY, TEST_ACCURACY, HeldOut
from ..runs import ResolvedRun
from ._choice import BestEpoch
from ._measure import (
    CHANGED,
    CHOSEN_EPOCH,
    DIVERGED_STEP,
    MIN_TEST_SAMPLES,
    UNPREDICTED,
    accuracy,
    calibration_error,
    disbelieved,
    first_nonfinite,
    fit_to_labels,
    unpredicted,
)
from ._mixing import Mixup
from ._model import Inputs
from ._objective import Objective
from ._ranks import ALONE, Ranks
from ._state import TrainState, extra_states, set_extra_states
from .optimizers import optimizer_of

Forward = Callable[..., Tensor]


@dataclass(frozen=True)
class EvalSplit:
    """Inputs to evaluate on, not yet normalized, with their labels."""

    inputs: Samples
    labels: Tensor
    indices: Tensor | None = None
    """of what was held out: in the training set before"""


def forward(
    network: nn.Module,
    tensors: dict[str, Tensor] | None,
    x: Tensor,
    compute_dtype: torch.dtype | None,
) -> Tensor:
    """Inputs to float32 logits, by a network with these tensors or, if None, its own."""
    with torch.autocast(
        x.device.type,
        compute_dtype or torch.bfloat16,
        enabled=compute_dtype is not None,
        cache_enabled=False,
    ):
        logits = network(x) if tensors is None else functional_call(network, tensors, (x,))
    if not isinstance(logits, Tensor):
        raise UsageError(not_logits(type(network).__name__, type(logits).__name__))
    return logits.float()


class RunTrainer:
    """Trains one run, step by step.

    Args:
        run: its settings.
        network: the architecture.
        start: a network of that architecture, whose weights training starts from. On a CPU it is
            the network itself, which then holds the weights throughout.
        loader: the training set, on the device.
        clean: the true labels of the training set, if they are known.
        objective: what is minimised.
        test: the test set, on the device; it may be empty.
        validation: what was kept of the noisy training set, if any.
        compute_dtype: that the network computes in; None for float32.
        inputs: the kind, shape and normalization of the inputs, and the classes.
        ranks: the processes that train the run together, of which each computes a part of a batch.
        left_out: a line on each sample that could not be read, for the record.
        index: of the samples of the loader, in the whole training set; None if they are all.
        channels_last: whether convolutions, and what they give, lie in memory channels last.
    """

    def __init__(
        self,
        run: ResolvedRun,
        network: nn.Module,
        start: nn.Module,
        loader: Loader,
        clean: Tensor | None,
        objective: Objective,
        test: EvalSplit,
        validation: EvalSplit | None,
        compute_dtype: torch.dtype | None,
        inputs: Inputs,
        ranks: Ranks = ALONE,
        left_out: Sequence[str] = (),
        index: Tensor | None = None,
        channels_last: bool = False,
    ) -> None:
        self.run = run
        self.index = index
        self.ranks = ranks
        self.left_out = left_out
        self.inputs = inputs
        self.network = network
        self.loader = loader
        self.clean = clean
        self.objective = objective
        self.test = test
        self.validation = validation
        self.compute_dtype = compute_dtype
        device = loader.device
        self.state = TrainState(
            start,
            device,
            compute_dtype,
            optimizer_of(run),
            run.ema_decay(steps=len(loader)),
            shrinks=run.shrink > 0,
            channels_last=channels_last,
        )
        self.start = start
        if device.type == "cpu" and network is start:
            self.state.adopt(network)
        self._frozen_norms = frozen_norms(network) if run.freeze else {}
        for name in self._frozen_norms:
            self.state.leave_uncounted(name)
        self.forward: Forward = forward  # a compiled one may take its place
        self._fused = kernels.available(loader.labels)
        self._fused_batch = self._fused and inputs.kind == "image" and channels_last
        channels = loader.shape[0]
        accepts_padding = isinstance(network, AcceptsPaddedChannels)
        self._channels = padded_channels(channels) if accepts_padding else channels
        n, batch = len(loader.inputs), loader.batch_size
        self.steps = len(loader)
        # What steps read. A chunk holds the next inputs, augmented; `_chunk_position` is where the
        # next batch begins in it.
        self.chunk = min(n, batch * max(1, loader.chunk_size() // batch))
        shape = loader.shape
        # A CPU selects a batch into contiguous memory, and its convolutions lay it as they lie.
        lies_last = channels_last and device.type == "cuda"
        self._chunk = torch.empty(
            (self.chunk, *shape), dtype=loader.inputs.dtype, device=device,
            memory_format=torch.channels_last if lies_last else torch.contiguous_format,
        )  # fmt: skip
        self._index = torch.zeros(self.chunk, dtype=torch.int64, device=device)
        self._chunk_position = torch.zeros((), dtype=torch.int64, device=device)
        self._step = torch.zeros((), dtype=torch.int64, device=device)
        self._total_steps = torch.zeros((), dtype=torch.int64, device=device)
        self._lr = torch.zeros((self.steps,) if run.lr_varies else (), device=device)
        self._shrink = torch.zeros(self.steps, device=device) if run.shrink else None
        self._mixup = Mixup(run.mixup, n, batch, device, run.seed) if run.mixup else None
        self._batch_offsets = torch.arange(batch, device=device)
        # A partner in mixup may be another rank's, so that all are read.
        self._reads_all = ranks.alone or self._mixup is not None
        self._outputs: tuple[int, ...] = ()  # of the network, for a rank without samples
        # What steps write.
        self._losses = torch.zeros(self.steps, device=device)
        self._norms = torch.zeros(self.steps, device=device)
        self._predicted = torch.zeros(n, dtype=torch.int64, device=device)
        # What an epoch is chosen by, and the predictions of the epoch before.
        self.best = None
        if run.choose_epoch and validation is not None:
            self.best = BestEpoch(*self.state.averaged(), len(validation.labels))
            self._predicted_before = torch.zeros_like(self._predicted)
        # Without a test set, what was held out of the noisy training set is evaluated on.
        self._evaluated = test if len(test.labels) else validation
        self._evaluated_name = TEST_ACCURACY if len(test.labels) else HELD_OUT_ACCURACY
        # What `measure` writes: the classes that nothing is predicted as.
        expected = test.labels if self._evaluated is None else self._evaluated.labels
        counts = torch.bincount(expected, minlength=len(inputs.classes))
        self._expected = counts >= MIN_TEST_SAMPLES
        self._unpredicted = torch.zeros_like(self._expected)

    def begin_epoch(self, epoch: int) -> None:
        """Draw the epoch's order, augmentation and partners, and set its learning rate."""
        self._order = self.loader.order(epoch)
        self._augment_params = self.loader.augment_params(epoch)
        self.loader.expect(epoch, self.chunk, None if self._reads_all else self._own_rows)
        self.objective.begin_epoch(epoch)
        if self._mixup is not None:
            self._mixup.begin_epoch(epoch)
        if self.run.lr_varies:
            lr = [self.run.lr_at(epoch, i, steps=self.steps) for i in range(self.steps)]
            self._lr.copy_(torch.tensor(lr))
        else:
            self._lr.fill_(self.run.lr_at(epoch))
        if self._shrink is not None and self.state.start_scale is not None:
            shares = self.run.shrink_at(epoch, steps=self.steps)
            self._shrink.copy_(torch.tensor(shares)).mul_(self.state.start_scale)
            if self.run.shrink_limit:
                self._shrink.clamp_(max=self.run.shrink_limit * self._lr)
        self._step.zero_()
        self._total_steps.fill_((epoch + 1) * self.steps)

    def fill_chunk(self, start: int) -> None:
        """Augment the next inputs of the epoch into the buffer that steps read."""
        part = slice(start, start + self.chunk)
        index, params = self._order[part], self._augment_params[part]
        rows = None if self._reads_all else self._own_rows(len(index))
        taken = self.loader.take(index, params, rows)
        self._index[: len(index)].copy_(index)
        self._chunk[: len(taken)].copy_(taken)
        self._chunk_position.zero_()

    def _own_rows(self, n: int) -> Tensor:
        """Of the next n samples, which are whole batches and the last, those of this rank."""
        rows = torch.split(torch.arange(n), self.loader.batch_size)
        return torch.cat([r[self.ranks.part(len(r))] for r in rows])

    def step(self, size: int) -> None:
        """One batch: forward, loss, backward, clip, update."""
        rows = self._batch_offsets[:size] + self._chunk_position
        index = self._index[rows]
        labels = self.loader.labels[index]
        mixed = None if self._mixup is None else self._mixup.at(self._step, size)
        part = self.ranks.part(size)
        if self._reads_all:
            inputs = self._batch(rows, self._chunk_position)
            if mixed is not None:
                inputs = mixed.inputs(inputs)
            inputs = inputs if self.ranks.alone else inputs[part]
        else:
            a_batch = self.ranks.part(self.loader.batch_size)
            position = self._chunk_position // self.loader.batch_size * _length(a_batch)
            inputs = self._batch(self._batch_offsets[: _length(part)] + position, position)
        own = self._logits(inputs)
        logits = self.ranks.gather(own, part, size)
        if mixed is None:
            loss = self.objective(logits, labels, index)
        else:
            loss = mixed.loss(self.objective, logits, labels, index)
        leaves = list(self.state.leaves.values())
        grads: Sequence[Tensor | None] = [None] * len(leaves)
        if len(own):
            grads = torch.autograd.grad(loss, leaves, allow_unused=True)
        with torch.no_grad():
            self.state.gather(grads)
            self.ranks.sum_(self.state.compute_grad, self.state.grad)
            at = self._step.view(1)
            lr = self._lr.index_select(0, at) if self.run.lr_varies else self._lr
            shrink = None if self._shrink is None else self._shrink.index_select(0, at)
            norm = self.state.step(lr, fused=self._fused, shrink=shrink)
            self._losses.index_copy_(0, at, loss.detach().to(self._losses.dtype).view(1))
            self._norms.index_copy_(0, at, norm.view(1))
            self._predicted.index_copy_(0, index, logits.detach().argmax(1))
            self._step.add_(1)
            self._chunk_position.add_(size)

    def _logits(self, inputs: Tensor) -> Tensor:
        """The network's logits; those of no inputs without calling it."""
        if not len(inputs):
            return self._no_logits()
        logits = self.forward(self.network, self.state.tensors(), inputs, self.compute_dtype)
        self._outputs = tuple(logits.shape[1:])
        return logits

    def _no_logits(self) -> Tensor:
        return torch.zeros(0, *self._outputs, dtype=torch.float32, device=self.loader.device)

    def _batch(self, rows: Tensor, position: Tensor) -> Tensor:
        """The normalized inputs at these rows of the chunk, consecutive from the position."""
        scale, shift = self.loader.scale, self.loader.shift
        if not self._fused_batch or scale is None or shift is None:
            return self.loader.normalize(self._chunk.index_select(0, rows))
        return kernels.normalized_batch(
            self._chunk, position, len(rows), scale, shift,
            self.compute_dtype or torch.float32, self._channels,
        )  # fmt: skip

    @torch.no_grad()
    def measure(self) -> dict[str, Tensor]:
        """What is measured of the epoch that has just ended, each a tensor of one element.

        The keys are the columns of the history, in their order, and `DIVERGED_STEP`.
        """
        self.state.count_batches(self._total_steps)
        if not self.ranks.alone:
            self.ranks.average_(self.state.running_statistics())
            self.copy_first_rank()  # what differs is rounded otherwise, on another kind of machine
        row = {"train_loss": self._losses.mean()}
        row |= fit_to_labels(self._predicted, self.loader.labels, self.clean)
        evaluated, name = self._evaluated, self._evaluated_name
        held_out = None  # the logits by which an epoch is chosen
        if evaluated is not None:
            logits = self._split_logits(self.state.tensors(), evaluated.inputs)
            row[name] = accuracy(logits, evaluated.labels)
            row["calibration_error"] = calibration_error(logits, evaluated.labels)
            self._unpredicted.copy_(unpredicted(logits, self._expected))
            row[UNPREDICTED] = self._unpredicted.sum()
            held_out = logits
        row["gradient_norm"] = self._norms.mean()
        if self.validation is not None and self.validation is not evaluated:
            held_out = self._split_logits(self.state.tensors(), self.validation.inputs)
            row[HELD_OUT_ACCURACY] = accuracy(held_out, self.validation.labels)
        if self.state.ema_weights is not None and evaluated is not None:
            averaged = self.state.ema_tensors()
            held_out = self._split_logits(averaged, evaluated.inputs)
            row[f"{name}_ema"] = accuracy(held_out, evaluated.labels)
            if self.validation is not None and self.validation is not evaluated:
                held_out = self._split_logits(averaged, self.validation.inputs)
                row[f"{HELD_OUT_ACCURACY}_ema"] = accuracy(held_out, self.validation.labels)
        if self.best is not None and self.validation is not None and held_out is not None:
            row |= self._choose(self.best, held_out.argmax(1) == self.validation.labels)
        row[DIVERGED_STEP] = first_nonfinite(self._losses + self._norms)
        return row

    def _choose(self, best: BestEpoch, correct: Tensor) -> dict[str, Tensor]:
        epoch = self._total_steps // self.steps
        changed = (self._predicted != self._predicted_before).float().mean()
        self._predicted_before.copy_(self._predicted)
        return {
            CHOSEN_EPOCH: best.offer(epoch, correct, *self.state.averaged()),
            CHANGED: torch.where(epoch == 1, torch.nan, changed),
        }

    def copy_first_rank(self) -> None:
        """Make all that training changes what it is on rank 0."""
        self.ranks.copy_first(self.state_dict().values())
        self.state.refresh_compute_weights()

    @torch.no_grad()
    def held_out(self, tensors: dict[str, Tensor] | None) -> HeldOut | None:
        """What the network with these weights says of what was held out; None if nothing was."""
        split = self.validation
        if split is None or split.indices is None:
            return None
        logits = self._eval_logits(tensors, split.inputs)
        columns = (split.indices, split.labels, logits.argmax(1))
        return HeldOut(*(column.tolist() for column in columns))

    def disbelieved(self) -> list[tuple[str, str, int]]:
        """The given labels that the last epoch's predictions differ from, the most frequent."""
        return disbelieved(self._predicted, self.loader.labels, self.inputs.classes)

    def unpredicted_classes(self) -> list[str]:
        """The names of the classes that nothing was predicted as when last measured."""
        return [self.inputs.classes[k] for k in self._unpredicted.nonzero().flatten().tolist()]

    def _split_logits(self, tensors: dict[str, Tensor] | None, inputs: Samples) -> Tensor:
        """The same of a whole split, of which each rank computes a part."""
        if self.ranks.alone:
            return self._eval_logits(tensors, inputs)
        part = self.ranks.part(len(inputs))
        own = (
            self._eval_logits(tensors, select(inputs, part)) if _length(part) else self._no_logits()
        )
        return self.ranks.gather(own, part, len(inputs))

    def _eval_logits(self, tensors: dict[str, Tensor] | None, inputs: Samples) -> Tensor:
        """The network's logits in eval mode; with its own weights where there are no others."""
        was_training = self.network.training
        self.network.eval()
        parts = [
            forward(self.network, tensors, self.loader.evaluated(part), self.compute_dtype)
            for part in parts_of(inputs, self.loader.test_batch_size())
        ]
        if was_training:
            self.train_mode()
        return torch.cat(parts)

    @property
    def evaluates_files(self) -> bool:
        """Whether a measurement decodes images, which no graph can capture."""
        splits = (self.test, self.validation)
        return any(s is not None and isinstance(s.inputs, ImageFiles) for s in splits)

    def train_mode(self) -> None:
        """Set the network to training mode, but batch norms that the run freezes."""
        self.network.train()
        for norm in self._frozen_norms.values():
            norm.eval()

    def state_dict(self) -> dict[str, Tensor]:
        """All that must be saved to go on from here; the tensors themselves, not copies."""
        return {**self.state.state_dict(), **self._loss_buffers(), **self._choice()}

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Copy in what `state_dict` gave."""
        buffers = self._loss_buffers() | self._choice()
        if not buffers.keys() <= state_dict.keys():
            raise UsageError("what was saved belongs to another loss or way to choose an epoch")
        self.state.load_state_dict({k: v for k, v in state_dict.items() if k not in buffers})
        for name, buffer in buffers.items():
            buffer.copy_(state_dict[name])

    def _choice(self) -> dict[str, Tensor]:
        """What is kept to choose an epoch."""
        if self.best is None:
            return {}
        return {**self.best.state_dict(), "predicted_before": self._predicted_before}

    def _loss_buffers(self) -> dict[str, Tensor]:
        """The buffers of a user's own loss; ours have none that change."""
        loss = getattr(self.objective, "loss", None)
        if not isinstance(loss, nn.Module) or isinstance(loss, Loss):
            return {}
        return {f"loss.{name}": buffer for name, buffer in loss.named_buffers()}

    def extra_states(self) -> dict[str, Any]:
        """What the network and the loss keep beside tensors (`nn.Module.get_extra_state`)."""
        return extra_states(self._modules())

    def set_extra_states(self, states: Mapping[str, Any]) -> None:
        """Give it back."""
        set_extra_states(self._modules(), states)

    def _modules(self) -> nn.ModuleDict:
        loss = getattr(self.objective, "loss", None)
        of_loss = {"loss": loss} if isinstance(loss, nn.Module) else {}
        return nn.ModuleDict({"network": self.network, **of_loss})

    def mutable_tensors(self) -> list[Tensor]:
        """All that a step changes."""
        changed = [*self.state_dict().values(), self._chunk_position, self._step]
        compute = self.state.compute_weights
        return changed if compute is None else [*changed, compute]

    def global_seed(self, epoch: int) -> int:
        """The seed for what draws from the global generators, such as dropout; each rank's own."""
        rank = () if self.ranks.first else ("rank", self.ranks.rank)
        return derive(self.run.seed, "global", epoch, *rank) % 2**32


def _length(part: slice) -> int:
    return int(part.stop - part.start)
