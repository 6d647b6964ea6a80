"""Steps as the trainer takes them, and the same steps with what torch has."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from noiseproof.train._state import TrainState
from noiseproof.train.optimizers._adamw import AdamW
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


def torch_optimizer(network: nn.Module, ours: SGD | AdamW, lr: float) -> torch.optim.Optimizer:
    """Torch's of the same settings; where matrices alone decay, with two groups of parameters."""
    trained = [p for p in network.parameters() if p.requires_grad]
    groups = [{"params": trained, "weight_decay": ours.weight_decay}]
    if ours.decay_on == "matrices":
        groups[0]["params"] = [p for p in trained if p.dim() >= 2]
        groups.append({"params": [p for p in trained if p.dim() < 2], "weight_decay": 0.0})
    if isinstance(ours, AdamW):
        return torch.optim.AdamW(groups, lr, betas=(ours.beta1, ours.beta2), eps=ours.eps)
    return torch.optim.SGD(groups, lr, ours.momentum, nesterov=ours.nesterov)


def take_torch_steps(network: nn.Module, sgd: SGD | AdamW, lr: float) -> list[float]:
    """The same with what torch has."""
    network.train()
    trained = [p for p in network.parameters() if p.requires_grad]
    optimizer = torch_optimizer(network, sgd, lr)
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
