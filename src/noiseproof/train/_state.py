"""The weights of one network in training, as flat buffers, and their update.

Parameters lie one after another in one float32 tensor, and so does the state of the optimizer:
clipping and an update are a few operations on flat tensors, however many layers there are. In low
precision the network computes with a copy of its matrices in 16 bits, cast once a step and not once
a layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .._errors import UsageError
from .optimizers import Optimizer

_COUNT = "num_batches_tracked"


class TrainState:
    """What training changes: weights, the optimizer's state, their EMA, the network's buffers.

    Args:
        network: where the weights start; it is not changed until `write_back`.
        device: where they are kept.
        compute_dtype: of the matrices that the network computes with; None for float32.
        optimizer: what updates the weights.
        ema: decay of an exponential moving average of the weights; 0 for none.
        shrinks: whether updates shrink the weights, in units of their mean size at the start.
        channels_last: whether the weights of convolutions lie in memory channels last.
    """

    def __init__(
        self,
        network: nn.Module,
        device: torch.device,
        compute_dtype: torch.dtype | None,
        optimizer: Optimizer,
        ema: float = 0.0,
        *,
        shrinks: bool = False,
        channels_last: bool = False,
    ) -> None:
        parameters = {n: p for n, p in network.named_parameters() if p.requires_grad}
        if not parameters:
            raise UsageError("the network has no parameter that can be trained")
        for name, parameter in parameters.items():
            if parameter.dtype != torch.get_default_dtype():
                wanted, found = (str(d)[6:] for d in (torch.get_default_dtype(), parameter.dtype))
                raise UsageError(
                    f"weights are kept in {wanted}, and {name} is {found}: give network.float(); "
                    "what the network computes in is the run's precision"
                )
        # Matrices first, so that those with a copy in the compute dtype are one piece.
        names = sorted(parameters, key=lambda n: parameters[n].dim() < 2)
        self.shapes = {n: parameters[n].shape for n in names}
        self._num_matrix_weights = sum(
            parameters[n].numel() for n in names if parameters[n].dim() >= 2
        )
        self.channels_last = channels_last
        self._adopted: nn.Module | None = None
        size = sum(p.numel() for p in parameters.values())
        self.weights = torch.empty(size, device=device)
        for name, view in self.views(self.weights):
            view.copy_(parameters[name].detach())
        self.optimizer = optimizer
        self.optimizer_buffers = {n: torch.zeros_like(self.weights) for n in optimizer.buffers}
        self.optimizer_buffers |= {n: self.weights.new_zeros(()) for n in optimizer.scalars}
        self._buffers = {n: b.detach().to(device).clone() for n, b in network.named_buffers()}
        self._counted = {n: b.clone() for n, b in self.buffers.items() if n.endswith(_COUNT)}
        self.frozen = {
            n: p.detach().to(device) for n, p in network.named_parameters() if n not in parameters
        }
        copied = self._num_matrix_weights if compute_dtype is not None else 0
        self.compute_weights = (
            None if compute_dtype is None else self.weights[:copied].to(compute_dtype)
        )
        self.leaves = self._leaves(self.weights, self.compute_weights)
        self.compute_grad = torch.zeros(copied, dtype=compute_dtype or torch.float32, device=device)
        self.grad = torch.zeros(size - copied, device=device)
        self._grad_views = [
            *(v for _, v in self.views(self.compute_grad, stop=copied)),
            *(v for _, v in self.views(self.grad, start=copied)),
        ]
        self.start_scale = self._mean_size() if shrinks else None
        self.ema_decay = ema
        self.ema_weights = self.weights.clone() if ema else None
        self.ema_buffers = {n: b.clone() for n, b in self.buffers.items()} if ema else {}

    def _mean_size(self) -> Tensor:
        """The mean absolute value of the matrices or, in a network without any, of all weights."""
        return self.weights[: self._num_matrix_weights or None].abs().mean()

    def _leaves(self, weights: Tensor, compute_weights: Tensor | None) -> dict[str, Tensor]:
        """The tensors that the network computes with, which gradients are taken of."""
        leaves = dict(self.views(weights))
        if compute_weights is not None:
            leaves |= dict(self.views(compute_weights, stop=self._num_matrix_weights))
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
            if len(shape) == 4 and self.channels_last:
                o, i, h, w = shape
                yield name, piece.view(o, h, w, i).permute(0, 3, 1, 2)
            else:
                yield name, piece.view(shape)

    def gather(self, grads: Sequence[Tensor | None]) -> None:
        """Copy the gradients of the leaves into the flat buffers that the optimizer reads."""
        # One kernel for all that are of one type and laid out alike; any other would slow down all.
        alike: dict[torch.dtype, tuple[list[Tensor], list[Tensor]]] = {}
        for view, grad in zip(self._grad_views, grads, strict=True):
            if grad is None:  # a parameter that this loss does not reach
                view.zero_()
            elif grad.layout != torch.strided:  # of nn.Embedding(sparse=True)
                view.copy_(grad.to_dense())
            elif grad.stride() == view.stride() and grad.dtype == view.dtype:
                into, values = alike.setdefault(view.dtype, ([], []))
                into.append(view)
                values.append(grad)
            else:
                view.copy_(grad)
        for into, values in alike.values():
            torch._foreach_copy_(into, values)

    def adopt(self, network: nn.Module) -> None:
        """Make these tensors the parameters of a network, which saves exchanging them."""
        if self.compute_weights is not None:
            return
        parameters = dict(network.named_parameters())
        for name, view in self.views(self.weights):
            parameters[name].data = view
            self.leaves[name] = parameters[name]
        self._adopted = network

    def release(self) -> None:
        """Give an adopted network tensors of its own again, contiguous as torch makes them."""
        if self._adopted is not None:
            lay_contiguous(self._adopted)

    @property
    def buffers(self) -> dict[str, Tensor]:
        """The network's; those of an adopted network itself, which may replace them."""
        return self._buffers if self._adopted is None else dict(self._adopted.named_buffers())

    def running_statistics(self) -> list[Tensor]:
        """Those of batch norms, and their EMA: what each rank computes from its own samples."""
        named = [*self.buffers.items(), *self.ema_buffers.items()]
        return [b for n, b in named if n.endswith(("running_mean", "running_var"))]

    def tensors(self) -> dict[str, Tensor] | None:
        """What the network is called with: leaves, frozen parameters, buffers; None for its own."""
        if self._adopted is not None:
            return None
        return {**self.leaves, **self.frozen, **self.buffers}

    def ema_tensors(self) -> dict[str, Tensor]:
        """What the network is called with to compute with the EMA of the weights."""
        assert self.ema_weights is not None
        return self.tensors_of(self.ema_weights, self.ema_buffers)

    def tensors_of(self, flat: Tensor, buffers: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What the network is called with to compute with other weights, flat, and buffers."""
        copied, compute = self._num_matrix_weights, self.compute_weights
        matrices = None if compute is None else flat[:copied].to(compute.dtype)
        return {**self._leaves(flat, matrices), **self.frozen, **buffers}

    def state_dict(self) -> dict[str, Tensor]:
        """All that must be saved to go on from here; the tensors themselves, not copies."""
        saved = {"weights": self.weights, **self.optimizer_buffers}
        saved |= {f"buffer.{n}": b for n, b in self.buffers.items()}
        if self.start_scale is not None:
            saved["start_scale"] = self.start_scale
        if self.ema_weights is not None:
            saved["ema"] = self.ema_weights
            saved |= {f"ema.{n}": b for n, b in self.ema_buffers.items()}
        return saved

    @torch.no_grad()
    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Copy in what `state_dict` gave; in place, so that captured graphs see it."""
        own = self.state_dict()
        if own.keys() != state_dict.keys() or any(own[k].shape != state_dict[k].shape for k in own):
            raise UsageError("what was saved belongs to another network")
        for name, tensor in own.items():
            tensor.copy_(state_dict[name])
        self.refresh_compute_weights()

    def refresh_compute_weights(self) -> None:
        """Cast the weights to the compute dtype again."""
        if self.compute_weights is not None:
            self.compute_weights.copy_(self.weights[: self._num_matrix_weights])

    def leave_uncounted(self, prefix: str) -> None:
        """A batch norm of this name in the network sees no batches: it stays in eval mode."""
        self._counted.pop(f"{prefix}.{_COUNT}", None)

    @torch.no_grad()
    def count_batches(self, steps: Tensor) -> None:
        """Set ``num_batches_tracked`` of batch norms, which the fused layers do not count.

        One that is called several times in a step has counted more, and averages by it where it
        has no momentum.
        """
        for name, before in self._counted.items():
            counted = self.buffers[name]
            counted.copy_(torch.maximum(counted, before + steps))

    @torch.no_grad()
    def write_back(self, network: nn.Module, *, ema: bool = False) -> None:
        """Copy the weights and buffers, or their EMA, into a network of the same shape."""
        self.write(network, *(self.averaged() if ema else (self.weights, self.buffers)))

    def averaged(self) -> tuple[Tensor, Mapping[str, Tensor]]:
        """The EMA of the weights, flat, and of the buffers; without one the last ones."""
        if self.ema_weights is None:
            return self.weights, self.buffers
        return self.ema_weights, self.ema_buffers

    @torch.no_grad()
    def write(self, network: nn.Module, flat: Tensor, buffers: Mapping[str, Tensor]) -> None:
        """Copy flat weights and buffers into a network of the same shape."""
        parameters = dict(network.named_parameters())
        for name, view in self.views(flat):
            parameters[name].copy_(view)
        for name, buffer in network.named_buffers():
            if name in buffers and buffer is not buffers[name]:
                buffer.copy_(buffers[name])

    @torch.no_grad()
    def step(self, lr: Tensor, *, fused: bool, shrink: Tensor | None = None) -> Tensor:
        """One update by the gathered gradient; returns its norm before it was clipped."""
        compute = self.compute_weights if self.compute_weights is not None else self.compute_grad
        norm = self.optimizer.step(
            self.weights, self.optimizer_buffers, self.compute_grad, self.grad, lr, compute,
            num_matrix_weights=self._num_matrix_weights, fused=fused, shrink=shrink,
        )  # fmt: skip
        if self.ema_weights is not None:
            self._update_ema(self.ema_weights, 1 - self.ema_decay)
        return norm

    def _update_ema(self, ema_weights: Tensor, weight: float) -> None:
        ema_weights.lerp_(self.weights, weight)
        now = self.buffers
        floating: tuple[list[Tensor], list[Tensor]] = ([], [])
        others: tuple[list[Tensor], list[Tensor]] = ([], [])
        for name, average in self.ema_buffers.items():
            into, values = floating if average.is_floating_point() else others
            into.append(average)
            values.append(now[name])
        if floating[0]:  # one kernel for the statistics of all layers
            torch._foreach_lerp_(*floating, weight)
        if others[0]:
            torch._foreach_copy_(*others)


def lay_contiguous(network: nn.Module) -> None:
    """Make of each parameter a contiguous tensor of its own: in training they are pieces of one."""
    for parameter in network.parameters():
        if not isinstance(parameter, nn.parameter.UninitializedParameter):
            parameter.data = parameter.data.clone(memory_format=torch.contiguous_format)


def extra_states(module: nn.Module) -> dict[str, Any]:
    """What parts of a module keep beside parameters and buffers, by the names of the parts."""
    usual = nn.Module.get_extra_state
    parts = module.named_modules()
    return {name: m.get_extra_state() for name, m in parts if type(m).get_extra_state is not usual}


def set_extra_states(module: nn.Module, states: Mapping[str, Any]) -> None:
    """Give them back."""
    parts = dict(module.named_modules())
    for name, state in states.items():
        parts[name].set_extra_state(state)
