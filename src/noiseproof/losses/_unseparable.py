"""The losses that are not sums over classes, declared by the matrix L(f, j) for every label j."""

from __future__ import annotations

import math

import torch
from torch import Tensor, exp, expm1, log, log1p, where

from ..syntax import hyper
from ._module import MatrixLoss
from ._prediction import is_largest


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
    >>> LabelDistributionallyRobust(lam=1, c=1)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(0.8280)
    """

    lam: float = hyper(default=1.0, above=0)
    c: float = hyper(default=0.1, at_least=0)

    @staticmethod
    def matrix(logits: Tensor, *, lam: float, c: float) -> Tensor:
        # Between these the exponents fit float32; beyond them the limit is right to all digits.
        lam = min(max(lam, 1e-30), 1e30)
        # From every mean the largest exponent is taken out; it is detached, since the loss does not
        # depend on what is taken out. -z_y, which all exponents share, is added at the end.
        top = is_largest(logits)
        gap = logits - logits.amax(1, keepdim=True).detach()
        # For the top class as label, the largest is its own or that of the second class.
        margins = where(top, gap, gap + c)
        largest = margins.amax(1, keepdim=True).detach()
        of_top = _log_mean_exp((margins - largest) / lam, 0.0)
        # For any other label it is that of the top class, with its margin c. The label has none:
        # its term is exp(-c / lam) times as large as in the sum over all classes.
        x = gap / lam
        of_others = _log_mean_exp(x, where(top, 0.0, exp(x) * math.expm1(-c / lam)))
        return where(top, largest, c) - gap + lam * where(top, of_top, of_others)


def _log_mean_exp(x: Tensor, correction: Tensor | float) -> Tensor:
    """The logarithm of (correction + sum over classes of exp(x)) / K, where the largest x is 0.

    Where the mean is near 1, as for a large temperature, it is computed from expm1, which keeps the
    digits of its distance to 1; where it is small, from exp, whose sum is at least 1.
    """
    num_classes = x.shape[1]
    below_one = (expm1(x).sum(1, keepdim=True) + correction) / num_classes
    mean = (exp(x).sum(1, keepdim=True) + correction) / num_classes
    return where(below_one > -0.5, log1p(below_one.clamp(min=-0.5)), log(mean))


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
        log_p = _tempered_log_softmax(logits, t2)
        # Powers from log p: where p underflows, the derivative of p^(1 - t1) would be infinite. And
        # 1 - sum p^(2 - t1) is the sum of p (1 - p^(1 - t1)), in which nothing cancels.
        missing = -expm1((1 - t1) * log_p)
        return missing / (1 - t1) - (exp(log_p) * missing).sum(1, keepdim=True) / (2 - t1)


def _newton_steps(t: float, num_classes: int) -> int:
    """How many steps :func:`_tempered_log_softmax` takes for all digits of float64.

    The slowest are predictions whose top class leads all others by about K^(t - 1) / (t - 1): by
    less it gets next to nothing, by more nearly all. The steps that these need grow as
    (t - 1) log K. The tests try t up to 11, K up to 10,000 and gaps up to 1e12.
    """
    return 5 + math.ceil(0.6 * min((t - 1) * math.log(num_classes), 30))


def _tempered_log_softmax(logits: Tensor, t: float) -> Tensor:
    """log p_k = -log(1 + (t - 1) (lambda - z_k)) / (t - 1), with sum p_k = 1; t > 1.

    With m = -log p of the top class, which is between 0 and log K, and d_k = max z - z_k,

        -log p_k = m + log(1 + x_k) / (t - 1),   x_k = (t - 1) d_k exp(-(t - 1) m)

    in which nothing overflows, and which for t near 1 becomes m + d_k, the softmax. Newton's method
    solves sum(p)^(1 - t) = 1 for lambda. The left side is increasing and concave in lambda, so from
    a start below the solution (m = 0, where the top class alone has p = 1) the steps never
    overshoot. Autograd records only the last two steps: with one of them the first derivative of
    the solution is exact, with both all derivatives up to the third.
    """
    a = t - 1
    d = logits.amax(1, keepdim=True).detach() - logits

    def newton(m: Tensor) -> Tensor:
        x = a * d * exp(-a * m)
        p = exp(-m - log1p(x) / a)
        total = p.sum(1, keepdim=True)
        ratio = total / (p / (1 + x)).sum(1, keepdim=True)
        error = a * log(total)
        return m + (error + log1p((ratio - 1) * -expm1(-error))) / a

    with torch.no_grad():
        m = torch.zeros_like(d[:, :1])
        for _ in range(_newton_steps(t, d.shape[1]) - 2):
            m = newton(m)
    m = newton(newton(m))
    return -m - log1p(a * d * exp(-a * m)) / a
