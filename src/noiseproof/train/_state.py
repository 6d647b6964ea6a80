"""The weights of one network in training, as flat buffers, and their update.

Parameters lie one after another in one float32 tensor, and so do their momenta: clipping and SGD
are a few operations on two tensors, however many layers there are. In low precision the network
computes with a copy of its matrices in 16 bits, cast once a step and not once a layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

_COUNT = "num_batches_tracked"


@dataclass(frozen=True)
class Settings:
    """What an update depends on, beside the learning rate."""

    momentum: float
    nesterov: bool
    weight_decay: float
    clip: float
    l1: float
    ema: float


class State:
    """What training changes: weights, momenta, the averages, and the network's buffers.

    Args:
        network: where the weights start; it is not changed until `write_back`.
        device: where they are kept.
        low: the type of the matrices that the network computes with, if not float32.
        average: whether an exponential average of the weights is kept as well.
    """

    def __init__(
        self, network: nn.Module, device: torch.device, low: torch.dtype | None, average: bool
    ) -> None:
        parameters = {n: p for n, p in network.named_parameters() if p.requires_grad}
        if not parameters:
            raise ValueError("the network has no parameter that can be trained")
        for name, parameter in parameters.items():
            if parameter.dtype != torch.get_default_dtype():
                wanted, found = (str(d)[6:] for d in (torch.get_default_dtype(), parameter.dtype))
                raise ValueError(
                    f"weights are kept in {wanted}, and {name} is {found}: give network.float(); "
                    "what the network computes in is the run's precision"
                )
        # Matrices first, so that those of low precision are one piece of the buffer.
        names = sorted(parameters, key=lambda n: parameters[n].dim() < 2)
        self.shapes = {n: parameters[n].shape for n in names}
        self._wide = sum(parameters[n].numel() for n in names if parameters[n].dim() >= 2)
        self._channels_last = device.type == "cuda"
        self._adopted: nn.Module | None = None
        size = sum(p.numel() for p in parameters.values())
        self.weights = torch.empty(size, device=device)
        for name, view in self.views(self.weights):
            view.copy_(parameters[name].detach())
        self.momenta = torch.zeros_like(self.weights)
        self._buffers = {n: b.detach().to(device).clone() for n, b in network.named_buffers()}
        self._counted = {n: b.clone() for n, b in self.buffers.items() if n.endswith(_COUNT)}
        self.frozen = {
            n: p.detach().to(device) for n, p in network.named_parameters() if n not in parameters
        }
        self.low = self.weights[: self._wide].to(low) if low is not None else None
        self.leaves = self._leaves(self.weights, self.low)
        wide = self._wide if low is not None else 0
        self.low_gradient = torch.zeros(wide, dtype=low or torch.float32, device=device)
        self.gradient = torch.zeros(size - wide, device=device)
        self._gradient_views = [
            *(v for _, v in self.views(self.low_gradient, stop=wide)),
            *(v for _, v in self.views(self.gradient, start=wide)),
        ]
        self.average = self.weights.clone() if average else None
        self.average_buffers = {n: b.clone() for n, b in self.buffers.items()} if average else {}

    def _leaves(self, weights: Tensor, low: Tensor | None) -> dict[str, Tensor]:
        """The tensors that the network computes with, which gradients are taken of."""
        leaves = dict(self.views(weights))
        if low is not None:
            leaves |= dict(self.views(low, stop=self._wide))
        return {n: v.detach().requires_grad_() for n, v in leaves.items()}

    def views(
        self, flat: Tensor, *, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[str, Tensor]]:
        """Each parameter's piece of a flat buffer, in the parameter's shape.

        ``start`` and ``stop`` say what part of all parameters the buffer holds.
        """
        at = 0
        for name, shape in self.shapes.items():
            here, at = at, at + shape.numel()
            if here < start:
                continue
            if stop is not None and here >= stop:
                return
            piece = flat[here - start : at - start]
            if len(shape) == 4 and self._channels_last:
                o, i, h, w = shape
                yield name, piece.view(o, h, w, i).permute(0, 3, 1, 2)
            else:
                yield name, piece.view(shape)

    def gather(self, gradients: Sequence[Tensor | None]) -> None:
        """Gradients of the leaves into the flat buffers that the update reads."""
        # One kernel for all that are of one type and laid out alike; any other would slow down all.
        alike: dict[torch.dtype, tuple[list[Tensor], list[Tensor]]] = {}
        for view, gradient in zip(self._gradient_views, gradients, strict=True):
            if gradient is None:  # a parameter that this loss does not reach
                view.zero_()
            elif gradient.stride() == view.stride() and gradient.dtype == view.dtype:
                into, values = alike.setdefault(view.dtype, ([], []))
                into.append(view)
                values.append(gradient)
            else:
                view.copy_(gradient)
        for into, values in alike.values():
            torch._foreach_copy_(into, values)

    def adopt(self, network: nn.Module) -> None:
        """Let a network compute with these tensors as its own, which saves exchanging them."""
        if self.low is not None:
            return
        parameters = dict(network.named_parameters())
        for name, view in self.views(self.weights):
            parameters[name].data = view
            self.leaves[name] = parameters[name]
        self._adopted = network

    @property
    def buffers(self) -> dict[str, Tensor]:
        """Of a network that was adopted its own, which it may have replaced by others."""
        return self._buffers if self._adopted is None else dict(self._adopted.named_buffers())

    def tensors(self) -> dict[str, Tensor] | None:
        """What the network is called with: leaves, frozen parameters, buffers; None for its own."""
        if self._adopted is not None:
            return None
        return {**self.leaves, **self.frozen, **self.buffers}

    def averaged(self) -> dict[str, Tensor]:
        """The same for the averaged weights."""
        assert self.average is not None
        low = None if self.low is None else self.average[: self._wide].to(self.low.dtype)
        leaves = self._leaves(self.average, low)
        return {**leaves, **self.frozen, **self.average_buffers}

    def saved(self) -> dict[str, Tensor]:
        """All that must be kept to go on from here; the tensors themselves, not copies."""
        kept = {"weights": self.weights, "momenta": self.momenta}
        kept |= {f"buffer.{n}": b for n, b in self.buffers.items()}
        if self.average is not None:
            kept["average"] = self.average
            kept |= {f"average.{n}": b for n, b in self.average_buffers.items()}
        return kept

    @torch.no_grad()
    def restore(self, saved: Mapping[str, Tensor]) -> None:
        """Take over what `saved` gave; in place, so that captured graphs see it."""
        own = self.saved()
        if own.keys() != saved.keys() or any(own[k].shape != saved[k].shape for k in own):
            raise ValueError("what was saved belongs to another network")
        for name, tensor in own.items():
            tensor.copy_(saved[name])
        self.refresh()

    def refresh(self) -> None:
        """The 16-bit copy anew from the weights."""
        if self.low is not None:
            self.low.copy_(self.weights[: self._wide])

    @torch.no_grad()
    def count(self, steps: Tensor) -> None:
        """Tell batch norms how many batches they saw, which lean layers do not count."""
        for name, before in self._counted.items():
            self.buffers[name].copy_(before + steps)

    @torch.no_grad()
    def write_back(self, network: nn.Module, *, averaged: bool = False) -> None:
        """Put the weights and buffers into a network of the same shape."""
        flat = self.average if averaged and self.average is not None else self.weights
        buffers = self.average_buffers if averaged and self.average is not None else self.buffers
        parameters = dict(network.named_parameters())
        for name, view in self.views(flat):
            parameters[name].copy_(view)
        for name, buffer in network.named_buffers():
            if name in buffers and buffer is not buffers[name]:
                buffer.copy_(buffers[name])

    @torch.no_grad()
    def update(self, sgd: Callable[..., Tensor], rate: Tensor, settings: Settings) -> Tensor:
        """One step by the gathered gradient; returns its norm before it was clipped."""
        low = self.low if self.low is not None else self.low_gradient
        norm: Tensor = sgd(
            self.weights, self.momenta, self.low_gradient, self.gradient, rate, low,
            settings.momentum, settings.nesterov, settings.weight_decay, settings.clip, settings.l1,
        )  # fmt: skip
        if self.average is not None:
            self._follow(1 - settings.ema)
        return norm

    def _follow(self, share: float) -> None:
        assert self.average is not None
        self.average.lerp_(self.weights, share)
        for name, average in self.average_buffers.items():
            if average.is_floating_point():
                average.lerp_(self.buffers[name], share)
            else:
                average.copy_(self.buffers[name])


def sgd(
    weights: Tensor, momenta: Tensor, low_gradient: Tensor, gradient: Tensor, rate: Tensor,
    low: Tensor, momentum: float, nesterov: bool, weight_decay: float, clip: float, l1: float,
) -> Tensor:  # fmt: skip
    """torch.optim.SGD after clip_grad_norm_, on flat tensors and in place."""
    if low_gradient.numel():
        gradient = torch.cat([low_gradient.float(), gradient])
    if l1:  # a part of the loss, so it is clipped with the rest
        gradient = gradient.add(weights.sign(), alpha=l1)
    norm: Tensor = torch.linalg.vector_norm(gradient)
    if clip:
        gradient = gradient * (clip / (norm + 1e-6)).clamp(max=1)
    if weight_decay:
        gradient = gradient.add(weights, alpha=weight_decay)
    momenta.mul_(momentum).add_(gradient)
    direction = gradient.add(momenta, alpha=momentum) if nesterov else momenta
    weights.addcmul_(direction, rate, value=-1)
    low.copy_(weights[: low.numel()])
    return norm
