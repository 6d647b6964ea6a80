"""The losses that are not sums over classes, declared by the matrix L(f, j) for every label j."""

from __future__ import annotations

import math

import torch
from torch import Tensor, exp, expm1, log1p

from ..syntax import hyper
from ._module import MatrixLoss


class LabelDistributionallyRobust(
    MatrixLoss,
    name="ldr",
    formula="lam log mean_k exp((z_k - z_y + c [k != y]) / lam)",
    reference=(
        "Zhu et al., Label Distributionally Robust Losses for Multi-class Classification, ICML 2023"
    ),
):
    r"""LDR-KL on logits z: between cross entropy with a margin and the loss of the worst class.

    .. math:: L = \lambda \log \tfrac{1}{K} \sum_k e^{(z_k - z_y + c [k \ne y]) / \lambda}

    Its paper applies it to softplus of the logits, divided by its mean: ``softplus(ldr)``.

    Args:
        lam: temperature, lam > 0; as it goes to 0 the loss becomes max_k (z_k - z_y + c [k != y]).
            Default: 1.
        c: margin that is added to the logits of the other classes, c >= 0. Default: 0.1.

    >>> import torch
    >>> LabelDistributionallyRobust(lam=1, c=0)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(0.)
    """

    lam: float = hyper(default=1.0, above=0)
    c: float = hyper(default=0.1, at_least=0)

    @staticmethod
    def matrix(logits: Tensor, *, lam: float, c: float) -> Tensor:
        # With small logits / lam the mean of exp is near 1: expm1 and log1p keep its digits.
        d = (logits - logits.amax(1, keepdim=True)) / lam
        log_mean = log1p(expm1(d).mean(1, keepdim=True))
        # The margin is added to all classes, and then taken from the label, whose share is p_y.
        p = exp(d - log_mean) / logits.shape[1]
        return lam * (log_mean - d + log1p(p * math.expm1(-c / lam))) + c


class BiTempered(
    MatrixLoss,
    name="bitempered",
    formula="-log_t1 p_y - (1 - sum_k p_k^(2 - t1)) / (2 - t1), p the tempered softmax of t2",
    reference=(
        "Amid et al., Robust Bi-Tempered Logistic Loss Based on Bregman Divergences, NeurIPS 2019"
    ),
):
    r"""The bi-tempered logistic loss: bounded (t1 < 1) and heavy-tailed (t2 > 1).

    .. math:: L = -\log_{t_1} p_y - \frac{1 - \sum_k p_k^{2 - t_1}}{2 - t_1},
        \quad p_k = \exp_{t_2}(z_k - \lambda), \quad \sum_k p_k = 1

    where log_t x = (x^(1 - t) - 1) / (1 - t) and exp_t is its inverse.

    Args:
        t1: temperature of the logarithm, 0 <= t1 < 1; the loss is at most 1 / (1 - t1).
            Default: 0.8.
        t2: temperature of the softmax, t2 > 1: the larger, the heavier its tails. Default: 1.2.

    >>> import torch
    >>> BiTempered(t1=0.8, t2=1.2)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.0089)
    """

    t1: float = hyper(default=0.8, at_least=0, below=1)
    t2: float = hyper(default=1.2, above=1)

    @staticmethod
    def matrix(logits: Tensor, *, t1: float, t2: float) -> Tensor:
        p = _tempered_softmax(logits, t2)
        powers = (p ** (2 - t1)).sum(1, keepdim=True)
        return (1 - p ** (1 - t1)) / (1 - t1) - (1 - powers) / (2 - t1)


NEWTON_STEPS = 5  # enough for float64 at t up to 4, K up to 10,000 and logits up to 1e4


def _tempered_softmax(logits: Tensor, t: float) -> Tensor:
    """p_k = (1 + (t - 1) (lambda - z_k))^(1 / (1 - t)), with lambda such that they sum to 1; t > 1.

    Newton's method solves sum(p)^(1 - t) = 1 for lambda. The left side is increasing and concave,
    so from a start below the solution (lambda = max z, where one class alone has p = 1) the steps
    never overshoot. Autograd records only the last two steps: with one of them the first derivative
    of the solution is exact, with both all derivatives up to the third.
    """
    z = logits - logits.amax(1, keepdim=True).detach()
    power = 1 / (1 - t)

    def newton(shift: Tensor) -> Tensor:
        base = 1 + (t - 1) * (shift - z)
        p = base**power
        total, slope = p.sum(1, keepdim=True), (p / base).sum(1, keepdim=True)
        return shift + total * (total ** (t - 1) - 1) / ((t - 1) * slope)

    with torch.no_grad():
        shift = torch.zeros_like(z[:, :1])
        for _ in range(NEWTON_STEPS):
            shift = newton(shift)
    shift = newton(newton(shift))
    return (1 + (t - 1) * (shift - z)) ** power
