"""Steps as the trainer takes them, and the same steps with what torch has."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from noiseproof.train._state import TrainState
from noiseproof.train.optimizers._sgd import SGD

CPU = torch.device("cpu")
PLAIN = {"momentum": 0.9, "nesterov": False, "weight_decay": 0.0, "clip": 0.0, "l1": 0.0}


def batches(n: int = 12) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(3)
    images = torch.randn(n, 16, 1, 8, 8, generator=generator)
    labels = torch.randint(10, (n, 16), generator=generator)
    return list(zip(images, labels, strict=True))


def take_steps(state: TrainState, network: nn.Module, lr: float) -> list[float]:
    """Steps as the trainer takes them; the norms of the gradients."""
    network.train()
    norms = []
    for x, y in batches():
        tensors = state.tensors()
        with torch.autocast("cpu", torch.bfloat16, enabled=state.compute_weights is not None):
            logits = network(x) if tensors is None else functional_call(network, tensors, (x,))
        loss = F.cross_entropy(logits.float(), y)
        grads = torch.autograd.grad(loss, list(state.leaves.values()), allow_unused=True)
        state.gather(grads)
        norms.append(float(state.step(torch.tensor(lr), fused=False)))
    return norms


def take_torch_steps(network: nn.Module, sgd: SGD, lr: float) -> list[float]:
    """The same with what torch has."""
    network.train()
    trained = [p for p in network.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(
        trained, lr, sgd.momentum, nesterov=sgd.nesterov,
        weight_decay=sgd.weight_decay,
    )  # fmt: skip
    norms = []
    for x, y in batches():
        loss = F.cross_entropy(network(x), y)
        loss = loss + sgd.l1 * sum(p.abs().sum() for p in trained)
        optimizer.zero_grad()
        loss.backward()
        clip = sgd.clip or float("inf")
        norms.append(float(torch.nn.utils.clip_grad_norm_(trained, clip)))
        optimizer.step()
    return norms
