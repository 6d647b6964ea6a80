"""One run in training: its data, its weights, and a step. Written once for every device.

A step reads where it stands from tensors and leaves its numbers in tensors, so that it can be run
as it is or captured once and replayed: nothing in it depends on a value that Python sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from .. import kernels
from .._seeds import derive
from ..data import Loader
from ..losses import Loss
from ..models import Padding, padded
from ._measure import accuracy, calibration_error, first_bad, fit_to_labels
from ._objective import Objective
from ._run import Run
from ._state import Settings, State, sgd

Forward = Callable[..., Tensor]


@dataclass(frozen=True)
class Held:
    """Images that are kept for a test: uint8, with their labels."""

    images: Tensor
    labels: Tensor


def forward(
    network: nn.Module, tensors: dict[str, Tensor] | None, x: Tensor, low: torch.dtype | None
) -> Tensor:
    """Images to logits, by a network with these tensors or, if None, its own."""
    with torch.autocast(
        x.device.type, low or torch.bfloat16, enabled=low is not None, cache_enabled=False
    ):
        logits: Tensor = network(x) if tensors is None else functional_call(network, tensors, (x,))
    return logits.float()


class Trainee:
    """A run that is being trained.

    Args:
        run: its settings, filled.
        network: the architecture.
        start: a network of that architecture, whose weights training starts from. On a CPU it is
            the network itself, which then holds the weights throughout.
        loader: the training set, on the device.
        clean: the true labels of the training set.
        objective: what is minimised.
        test: the clean test set, on the device.
        validation: what was kept of the noisy training set, if any.
        low: the type that the network computes in, if not float32.
        weight_decay: of every parameter.
        l1: the weight of the L1 norm of all parameters.
    """

    def __init__(
        self,
        run: Run,
        network: nn.Module,
        start: nn.Module,
        loader: Loader,
        clean: Tensor,
        objective: Objective,
        test: Held,
        validation: Held | None,
        low: torch.dtype | None,
        weight_decay: float,
        l1: float,
    ) -> None:
        self.run = run
        self.network = network
        self.loader = loader
        self.clean = clean
        self.objective = objective
        self.test = test
        self.validation = validation
        self.low = low
        assert run.momentum is not None
        assert run.nesterov is not None
        assert run.clip is not None
        self.settings = Settings(run.momentum, run.nesterov, weight_decay, run.clip, l1, run.ema)
        device = loader.device
        self.state = State(start, device, low, average=bool(run.ema))
        self.start = start
        if device.type == "cpu" and network is start:
            self.state.adopt(network)
        self.forward: Forward = forward  # a compiled one may take its place
        self._fused = kernels.available(loader.images)
        self._sgd = kernels.sgd if self._fused else sgd
        channels = loader.images.shape[1]
        self._channels = padded(channels) if isinstance(network, Padding) else channels
        n, batch = len(loader.images), loader.batch_size
        self.steps = len(loader)
        self.tail = n % batch  # the size of the last batch where it is short
        # What steps read. A chunk holds the next images, augmented; steps move `place` along it.
        self.chunk = min(n, batch * max(1, loader.samples_at_once() // batch))
        shape = loader.images.shape[1:]
        self._pixels = torch.empty(
            (self.chunk, *shape), dtype=torch.uint8, device=device,
            memory_format=torch.channels_last if device.type == "cuda" else torch.contiguous_format,
        )  # fmt: skip
        self._index = torch.zeros(self.chunk, dtype=torch.int64, device=device)
        self._place = torch.zeros((), dtype=torch.int64, device=device)
        self._step = torch.zeros((), dtype=torch.int64, device=device)
        self._total = torch.zeros((), dtype=torch.int64, device=device)
        self._rate = torch.zeros((), device=device)
        self._ahead = torch.arange(batch, device=device)
        # What steps write.
        self._losses = torch.zeros(self.steps, device=device)
        self._norms = torch.zeros(self.steps, device=device)
        self._predicted = torch.zeros(n, dtype=torch.int64, device=device)

    def begin(self, epoch: int) -> None:
        """Draw the epoch's order and augmentation, and set its learning rate."""
        self._order, self._draws = self.loader.order(epoch), self.loader.draws(epoch)
        self.objective.begin(epoch)
        self._rate.fill_(self.run.learning_rate(epoch))
        self._step.zero_()
        self._total.fill_((epoch + 1) * self.steps)

    def fill(self, start: int) -> None:
        """Augment the next chunk of the epoch into the buffer that steps read."""
        part = slice(start, start + self.chunk)
        index = self._order[part]
        self._pixels[: len(index)].copy_(self.loader.pixels(index, self._draws[part]))
        self._index[: len(index)].copy_(index)
        self._place.zero_()

    def step(self, size: int) -> None:
        """One batch: forward, loss, backward, clip, update."""
        rows = self._ahead[:size] + self._place
        index = self._index[rows]
        labels = self.loader.labels[index]
        logits = self.forward(self.network, self.state.tensors(), self._batch(rows), self.low)
        loss = self.objective(logits, labels, index)
        leaves = self.state.leaves
        gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
        with torch.no_grad():
            self.state.gather(gradients)
            norm = self.state.update(self._sgd, self._rate, self.settings)
            at = self._step.view(1)
            self._losses.index_copy_(0, at, loss.detach().to(self._losses.dtype).view(1))
            self._norms.index_copy_(0, at, norm.view(1))
            self._predicted.index_copy_(0, index, logits.detach().argmax(1))
            self._step.add_(1)
            self._place.add_(size)

    def _batch(self, rows: Tensor) -> Tensor:
        """The images at these rows of the chunk, which follow each other from `place`."""
        if not self._fused:
            return self.loader.normalise(self._pixels.index_select(0, rows))
        return kernels.take(
            self._pixels, self._place, len(rows), self.loader.scale, self.loader.shift,
            self.low or torch.float32, self._channels,
        )  # fmt: skip

    @torch.no_grad()
    def measure(self) -> Tensor:
        """The row of the epoch that has just ended, in the order of `columns`."""
        self.state.count(self._total)
        row = fit_to_labels(self._predicted, self.loader.labels, self.clean)
        logits = self._logits(self.state.tensors(), self.test.images)
        row["test_accuracy"] = accuracy(logits, self.test.labels)
        row["calibration_error"] = calibration_error(logits, self.test.labels)
        if self.validation is not None:
            held = self._logits(self.state.tensors(), self.validation.images)
            row["validation_accuracy"] = accuracy(held, self.validation.labels)
        if self.state.average is not None:
            averaged = self._logits(self.state.averaged(), self.test.images)
            row["test_accuracy_ema"] = accuracy(averaged, self.test.labels)
        row["train_loss"] = self._losses.mean()
        row["gradient_norm"] = self._norms.mean()
        row["first_bad"] = first_bad(self._losses + self._norms)
        return torch.stack([row[name].double() for name in (*self.columns, "first_bad")])

    @property
    def columns(self) -> list[str]:
        """What `measure` gives, and after these the first step whose loss was not finite."""
        names = ["train_loss", "train_accuracy", "train_accuracy_clean", "wrong_accuracy",
                 "memorised", "test_accuracy", "calibration_error", "gradient_norm"]  # fmt: skip
        names += ["validation_accuracy"] * (self.validation is not None)
        return names + ["test_accuracy_ema"] * (self.state.average is not None)

    def _logits(self, tensors: dict[str, Tensor] | None, images: Tensor) -> Tensor:
        """The network's answers as it is used, not as it is trained."""
        was = self.network.training
        self.network.eval()
        size = max(self.loader.batch_size, min(2048, self.loader.samples_at_once()))
        parts = [
            forward(self.network, tensors, self.loader.normalise(part), self.low)
            for part in torch.split(images, size)
        ]
        self.network.train(was)
        return torch.cat(parts)

    def saved(self) -> dict[str, Tensor]:
        """All that must be kept to go on from here; the tensors themselves, not copies."""
        return {**self.state.saved(), **self._loss_buffers()}

    def restore(self, saved: Mapping[str, Tensor]) -> None:
        """Take over what `saved` gave."""
        buffers = self._loss_buffers()
        self.state.restore({k: v for k, v in saved.items() if k not in buffers})
        for name, buffer in buffers.items():
            buffer.copy_(saved[name])

    def _loss_buffers(self) -> dict[str, Tensor]:
        """What a user's own loss remembers; ours remember nothing."""
        loss = getattr(self.objective, "loss", None)
        if not isinstance(loss, nn.Module) or isinstance(loss, Loss):
            return {}
        return {f"loss.{name}": buffer for name, buffer in loss.named_buffers()}

    def moving(self) -> list[Tensor]:
        """All that a step changes."""
        state = [*self.saved().values(), self._place, self._step]
        return state if self.state.low is None else [*state, self.state.low]

    def seed_global(self, epoch: int) -> int:
        """The seed for what draws from the global generators, such as dropout."""
        return derive(self.run.seed, "global", epoch) % 2**32
