"""What the trainer asks of an optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from torch import Tensor

from ...runs import ResolvedRun


class Optimizer(Protocol):
    """Updates flat weights in place, from tensors alone, so that a step can be captured.

    Attributes:
        buffers: the names of its state tensors, each float32 of the size of the weights and zero at
            the start. They are part of the state dict of a run.
        scalars: the names of those of one element, such as a count of steps; likewise.
    """

    buffers: ClassVar[tuple[str, ...]]
    scalars: ClassVar[tuple[str, ...]]

    @classmethod
    def from_run(cls, run: ResolvedRun) -> Optimizer: ...

    def step(
        self,
        weights: Tensor,
        buffers: Mapping[str, Tensor],
        compute_grad: Tensor,
        grad: Tensor,
        lr: Tensor,
        compute_weights: Tensor,
        *,
        num_matrix_weights: int,
        fused: bool,
        shrink: Tensor | None = None,
    ) -> Tensor:
        """One update; returns the norm of the gradient before clipping.

        Args:
            weights: float32 [P], all weights; updated.
            buffers: its state tensors by name, [P] each and scalars []; updated.
            compute_grad: compute dtype [M], the gradient of the first M weights.
            grad: float32 [P - M], the gradient of the others.
            lr: the learning rate, a tensor of one element.
            compute_weights: compute dtype [M], the copy of the first M weights that the network
                computes with; updated.
            num_matrix_weights: how many of the weights belong to matrices, which come first.
            fused: whether Triton kernels can be used.
            shrink: by how much every weight is brought closer to zero after the update, a tensor of
                one element; None for no such penalty.
        """
        ...
