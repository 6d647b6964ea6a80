"""A training loop for arrays that fit into memory, with as little around a step as there can be."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .._errors import DivergedError, UsageError
from .._hints import match_name
from ..losses import Loss

Criterion = Callable[[Tensor, Tensor], Tensor]
OPTIMIZERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "adamw": (torch.optim.AdamW, {}),
    "adam": (torch.optim.Adam, {}),
    "sgd": (torch.optim.SGD, {"momentum": 0.9}),
}
_EVAL_ROWS = 4096  # of inputs that are predicted at once


class Samples(NamedTuple):
    """Inputs and their labels on the device; ``weight`` is None where all weigh the same."""

    x: Tensor
    y: Tensor
    weight: Tensor | None


@dataclass
class Progress:
    """What was seen of a training by epoch.

    Attributes:
        loss_curve: the mean loss.
        validation_scores: the accuracy on the held-out part, if there is one.
    """

    loss_curve: list[float] = field(default_factory=list)
    validation_scores: list[float] = field(default_factory=list)


def make_optimizer(
    given: Any, network: nn.Module, lr: float, weight_decay: float
) -> torch.optim.Optimizer:
    """An optimizer by name, or what the user's class or function makes of the parameters."""
    trained = [p for p in network.parameters() if p.requires_grad]
    if isinstance(given, str):
        make, settings = OPTIMIZERS[match_name(given, OPTIMIZERS, "optimizer")]
        # On a CPU the update of a small network takes as long as its gradient, unless it is fused.
        fused = all(p.device.type in ("cpu", "cuda") for p in trained)
        settings = {**settings, "fused": fused or None}
        optimizer = make(trained, lr=lr, weight_decay=weight_decay, **settings)
    elif callable(given):
        optimizer = given(trained, lr=lr, weight_decay=weight_decay)
    else:
        raise UsageError(
            f"optimizer is one of {', '.join(OPTIMIZERS)} or a class such as torch.optim.RAdam; "
            f"it was {given!r}"
        )
    assert isinstance(optimizer, torch.optim.Optimizer)
    return optimizer


def train(
    network: nn.Module,
    criterion: Criterion,
    samples: Samples,
    optimizer: torch.optim.Optimizer,
    *,
    epochs: int,
    batch_size: int,
    generator: torch.Generator,
    held_out: Samples | None = None,
    patience: int = 10,
    verbose: bool = False,
) -> Progress:
    """Train a network; the learning rate falls to 0 along a cosine.

    With a held-out part it ends after ``patience`` epochs that were worse there than the best, and
    the network is that of the best epoch, the last of equals: few samples are held out of a small
    table, and early epochs reach the same accuracy on them by luck.
    """
    progress, best_epoch, best_state = Progress(), 0, None
    first_lr = [group["lr"] for group in optimizer.param_groups]
    for epoch in range(epochs):
        for group, lr in zip(optimizer.param_groups, first_lr, strict=True):
            group["lr"] = lr * (1 + math.cos(math.pi * epoch / epochs)) / 2
        network.train()
        total, count = torch.zeros((), device=samples.x.device), 0
        for batch in _batches(samples, batch_size, generator):
            optimizer.zero_grad()
            loss = _mean(criterion, network(batch.x), batch)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            total += loss.detach()
            count += 1
        progress.loss_curve.append(total.item() / count)
        if not math.isfinite(progress.loss_curve[-1]):
            raise DivergedError(
                f"the loss became {progress.loss_curve[-1]} in epoch {epoch + 1}; "
                f"take a smaller lr than {first_lr[0]:g}"
            )
        if held_out is not None:
            scores = progress.validation_scores
            scores.append(_accuracy(network, held_out))
            if best_state is None or scores[-1] >= scores[best_epoch]:
                best_epoch, best_state = epoch, copy.deepcopy(network.state_dict())
        last = epoch == epochs - 1 or (held_out is not None and epoch - best_epoch >= patience)
        if verbose:
            _show(progress, epochs, last)
        if last:
            break
    if best_state is not None:
        network.load_state_dict(best_state)
    network.eval()
    return progress


@torch.no_grad()
def predict(network: nn.Module, x: Tensor) -> Tensor:
    """The logits of a network in eval mode."""
    network.eval()
    return torch.cat([network(part) for part in torch.split(x, _EVAL_ROWS)])


def _batches(samples: Samples, batch_size: int, generator: torch.Generator) -> Iterator[Samples]:
    """Batches in random order, of equal size but for one sample.

    A last batch of one, which has no statistics for a batch norm, is so left by no size from 3 on.
    """
    n = len(samples.x)
    count = -(-n // batch_size)
    if count == 1:
        yield samples
        return
    order = torch.randperm(n, generator=generator).to(samples.x.device)
    for part in order.tensor_split(count):
        weight = None if samples.weight is None else samples.weight[part]
        yield Samples(samples.x[part], samples.y[part], weight)


def _mean(criterion: Criterion, logits: Tensor, batch: Samples) -> Tensor:
    """The mean loss of a batch; weights have a mean of 1 over all samples, not in each batch."""
    values = criterion(logits, batch.y)
    if batch.weight is None:
        return values.mean()
    if values.dim() != 1:
        raise UsageError(
            "sample_weight and class_weight need the loss of each sample: let your loss return "
            f"[N], as with reduction='none'; it returned {list(values.shape)}"
        )
    return (values * batch.weight).mean()


def per_sample(loss: Loss) -> Loss:
    """The same loss, unreduced."""
    return Loss.of(loss.expression, **loss.keywords | {"reduction": "none"})


def _accuracy(network: nn.Module, held_out: Samples) -> float:
    right = (predict(network, held_out.x).argmax(1) == held_out.y).to(torch.float64)
    if held_out.weight is not None:
        return float((right * held_out.weight).sum() / held_out.weight.sum())
    return float(right.mean())


def _show(progress: Progress, epochs: int, last: bool) -> None:
    """A bar in a terminal; elsewhere a line for each tenth of the epochs."""
    done = len(progress.loss_curve)
    text = f"epoch {done}/{epochs}, loss {progress.loss_curve[-1]:.4f}"
    if progress.validation_scores:
        text += f", held-out accuracy {progress.validation_scores[-1]:.4f}"
    if sys.stdout.isatty():
        bar = "━" * (24 * done // epochs)
        print(f"\r\x1b[K{bar:<24} {text}", end="\n" if last else "", flush=True)
    elif last or done % max(1, epochs // 10) == 0:
        print(text, flush=True)
