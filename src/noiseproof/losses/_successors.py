"""Losses that were published after the paper, or that it leaves out.

p_y is the probability that the network gives to the label y, K the number of classes.
"""

from __future__ import annotations

import math

from torch import Tensor, exp, expm1, log, log1p, logsumexp, stack, where

from ..syntax import hyper
from ._module import NegativeLoss, SeparableLoss, SymmetrizedLoss
from ._paper import CrossEntropy, FocalLoss

_ZHOU = "Zhou et al., Asymmetric Loss Functions for Learning with Noisy Labels, ICML 2021"
_YE = "Ye et al., Active Negative Loss Functions for Learning with Noisy Labels, NeurIPS 2023"


class NormalizedNegativeCrossEntropy(
    NegativeLoss,
    of=CrossEntropy,
    name="nnce",
    formula="1 - (A + log p_y) / sum_k (A + log p_k), A = -log 1e-7",
    reference=_YE,
):
    r"""Normalized negative cross entropy: the passive half of the active negative loss ANL-CE.

    .. math:: L = 1 - (A + \log p_y) \,/ \sum_k (A + \log p_k), \quad A = -\log 10^{-7}

    Probabilities are clamped to at least 1e-7; the sum over labels is K - 1.

    >>> import torch
    >>> NormalizedNegativeCrossEntropy()(torch.zeros(1, 4), torch.tensor([2]))
    tensor(0.7500)
    """


class NormalizedNegativeFocalLoss(
    NegativeLoss,
    of=FocalLoss,
    name="nnfl",
    formula="1 - (A - FL(p_y)) / sum_k (A - FL(p_k)), A = FL(1e-7)",
    reference=_YE,
):
    r"""Normalized negative focal loss: the passive half of the active negative loss ANL-FL.

    .. math:: L = 1 - (A - FL(p_y)) \,/ \sum_k (A - FL(p_k)), \quad A = FL(10^{-7})

    Args:
        gamma: focusing parameter of the focal loss FL, gamma >= 0; at 0 the loss is normalized
            negative cross entropy. Default: 0.5.

    >>> import torch
    >>> NormalizedNegativeFocalLoss()(torch.zeros(1, 4), torch.tensor([2]))
    tensor(0.7500)
    """

    gamma: float = FocalLoss.gamma


class Unhinged(
    SymmetrizedLoss,
    of=CrossEntropy,
    name="unhinged",
    formula="-log p_y + mean_k log p_k = mean_k z_k - z_y",
    reference=(
        "van Rooyen et al., Learning with Symmetric Label Noise: The Importance of Being Unhinged, "
        "NeurIPS 2015"
    ),
):
    r"""The unhinged loss on logits z: cross entropy minus its mean over labels.

    .. math:: L = \tfrac{1}{K} \sum_k z_k - z_y

    Its sum over labels is 0, and it has no lower bound: use ``logit_clip`` or weight decay.

    >>> import torch
    >>> Unhinged()(torch.tensor([[3.0, 0.0, 1.0]]), torch.tensor([0]))
    tensor(-1.6667)
    """


class AsymmetricGeneralizedCrossEntropy(
    SeparableLoss,
    name="agce",
    formula="((a + 1)^q - (a + p_y)^q) / q",
    reference=_ZHOU,
):
    r"""Asymmetric generalized cross entropy.

    .. math:: L = \left((a + 1)^q - (a + p_y)^q\right) / q

    Args:
        a: offset of p_y, a > 0: the larger, the closer the loss is to a straight line in p_y.
            Default: 0.6.
        q: exponent, q > 0; at 1 the loss is half of MAE, for any a. Default: 0.6.

    >>> import torch
    >>> AsymmetricGeneralizedCrossEntropy(a=0.6, q=0.6)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(0.6978)
    """

    a: float = hyper(default=0.6, above=0)
    q: float = hyper(default=0.6, above=0)

    @staticmethod
    def summand(p: Tensor, e: Tensor, *, a: float, q: float) -> Tensor:
        term: Tensor = e * ((a + 1) ** q - (a + p) ** q) / q
        return term

    @staticmethod
    def target(log_p: Tensor, *, a: float, q: float) -> Tensor:
        # (a + p)^q is (a + 1)^q times the power of a mixture of 1 and p. No digits cancel as p goes
        # to 1, and none are lost where a and p are small.
        log_mixture = _log_of_mixture(log_p, a / (a + 1), 1 / (a + 1))
        return expm1(q * log_mixture) * (-math.pow(a + 1, q) / q)


class AsymmetricUnhinged(
    SeparableLoss,
    name="aul",
    formula="((a - p_y)^q - (a - 1)^q) / q",
    reference=_ZHOU,
):
    r"""Asymmetric unhinged loss.

    .. math:: L = \left((a - p_y)^q - (a - 1)^q\right) / q

    Args:
        a: what p_y is subtracted from, a > 1: the larger, the closer the loss is to a straight
            line in p_y. Default: 5.5.
        q: exponent, q > 0; at 1 the loss is half of MAE, for any a. Default: 3.

    >>> import torch
    >>> AsymmetricUnhinged(a=5.5, q=3)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(17.8594)
    """

    a: float = hyper(default=5.5, above=1)
    q: float = hyper(default=3.0, above=0)

    @staticmethod
    def summand(p: Tensor, e: Tensor, *, a: float, q: float) -> Tensor:
        term: Tensor = e * ((a - p) ** q - (a - 1) ** q) / q
        return term

    @staticmethod
    def target(log_p: Tensor, *, a: float, q: float) -> Tensor:
        return expm1(q * log1p(expm1(log_p) / (1 - a))) * (math.pow(a - 1, q) / q)


class AsymmetricExponential(
    SeparableLoss,
    name="ael",
    formula="exp(-p_y / a)",
    reference=_ZHOU,
):
    r"""Asymmetric exponential loss.

    .. math:: L = e^{-p_y / a}

    Args:
        a: scale of p_y, a > 0: the larger, the closer the loss is to a straight line in p_y.
            Default: 2.5.

    >>> import torch
    >>> AsymmetricExponential(a=2.5)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(0.9048)
    """

    a: float = hyper(default=2.5, above=0)

    @staticmethod
    def summand(p: Tensor, q: Tensor, *, a: float) -> Tensor:
        return q * exp(-p / a)

    @staticmethod
    def target(log_p: Tensor, *, a: float) -> Tensor:
        return exp(exp(log_p) * (-1 / a))


class AsymmetricMeanSquaredError(
    SeparableLoss,
    name="amse",
    formula="||a e_y - p||^2 / K = (a^2 - 2 a p_y + ||p||^2) / K",
    reference=("Wang et al., Joint Asymmetric Loss for Learning with Noisy Labels, ICCV 2025"),
):
    r"""Asymmetric mean squared error: the squared distance to a times the one-hot label.

    .. math:: L = \tfrac{1}{K} \lVert a e_y - p \rVert^2

    The passive half of the joint asymmetric losses JAL-CE and JAL-FL.

    Args:
        a: factor of the one-hot label, a > 0; at 1 the loss is the mean squared error.
            Default: 30.

    >>> import torch
    >>> AsymmetricMeanSquaredError(a=30)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(221.3125)
    """

    a: float = hyper(default=30.0, above=0)

    @staticmethod
    def summand(p: Tensor, q: Tensor, *, a: float, K: int) -> Tensor:
        return (a * q - p) ** 2 / K

    @staticmethod
    def target(log_p: Tensor, *, a: float, K: int) -> Tensor:
        return (exp(log_p) - a) ** 2 * (1 / K)

    @staticmethod
    def other(log_p: Tensor, *, a: float, K: int) -> Tensor:
        return exp(2 * log_p) * (1 / K)


class JensenShannon(
    SeparableLoss,
    name="js",
    formula="(H(m) - (1 - pi) H(p)) / (-(1 - pi) log(1 - pi)), m = pi e_y + (1 - pi) p",
    reference=(
        "Englesson and Azizpour, Generalized Jensen-Shannon Divergence Loss for Learning with "
        "Noisy Labels, NeurIPS 2021"
    ),
):
    r"""Jensen-Shannon divergence to the label: between cross entropy and MAE.

    .. math:: L = \frac{H(m) - (1 - \pi) H(p)}{-(1 - \pi) \log(1 - \pi)},
        \quad m = \pi e_y + (1 - \pi) p

    H is the entropy.

    Args:
        pi: weight of the label in the mixture m, 0 < pi < 1; as it goes to 0 the loss becomes cross
            entropy, as it goes to 1 half of MAE. Default: 0.5.

    >>> import torch
    >>> JensenShannon(pi=0.5)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.0976)
    """

    pi: float = hyper(default=0.5, above=0, below=1)

    @staticmethod
    def summand(p: Tensor, q: Tensor, *, pi: float) -> Tensor:
        m = pi * q + (1 - pi) * p
        return (m * log(m) - (1 - pi) * p * log(p)) / ((1 - pi) * log1p(_constant(-pi, p)))

    @staticmethod
    def complement(*, pi: float) -> float:
        return 1.0  # the summand of every other class is p_k, and they sum to 1 - p_y

    @staticmethod
    def target(log_p: Tensor, *, pi: float) -> Tensor:
        # The difference of entropies is pi log m + (1 - pi) p log(m / p), two terms of order pi.
        # With v = log(m / p), where m - p = pi (1 - p), p v is pi (1 - p) v / expm1(v).
        log_m = _log_of_mixture(log_p, pi, 1 - pi)
        factor = -pi / math.log1p(-pi)
        return factor * (expm1(log_p) * _over_expm1(log_m - log_p) - log_m * (1 / (1 - pi)))


def _log_of_mixture(log_p: Tensor, one: float, rest: float) -> Tensor:
    """log(one + rest * p) for one + rest = 1, with all digits for p and ``one`` near 0 and 1."""
    below_one = rest * expm1(log_p)
    small = log_p.clamp(max=-math.log(2))  # a mixture below a half has p below a half
    # It is p + one * (1 - p), of which each part may underflow.
    log_mixture = logsumexp(stack([small, log(-expm1(small)) + math.log(one)]), 0)
    return where(below_one > -0.5, log1p(below_one.clamp(min=-0.5)), log_mixture)


def _over_expm1(v: Tensor) -> Tensor:
    """v / expm1(v) for v >= 0; near 0, where its derivative would cancel, as a series."""
    v = v.clamp(max=80)  # where it is 1e-33
    series = 1 - v / 2 + v**2 / 12 - v**4 / 720
    not_small = v.clamp(min=0.01)
    return where(v < 0.01, series, not_small / expm1(not_small))


def _constant(value: float, like: Tensor) -> Tensor:
    """``value`` as a number of the type of ``like``, which the tests replace by mpmath's."""
    return 0 * like + value


class TaylorCrossEntropy(
    SeparableLoss,
    name="taylor",
    formula="sum_{i <= t} (1 - p_y)^i / i",
    reference=("Feng et al., Can Cross Entropy Loss Be Robust to Label Noise?, IJCAI 2020"),
):
    r"""The first t terms of the Taylor series of cross entropy around p_y = 1.

    .. math:: L = \sum_{i=1}^{t} (1 - p_y)^i / i

    Args:
        t: number of terms, an integer, 1 <= t <= 1000; at 1 the loss is half of MAE, as it grows
            the loss becomes cross entropy. Default: 2.

    >>> import torch
    >>> TaylorCrossEntropy(t=3)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.1719)
    """

    t: float = hyper(default=2.0, at_least=1, at_most=1000, integer=True)

    @staticmethod
    def summand(p: Tensor, q: Tensor, *, t: float) -> Tensor:
        return sum((q * (1 - p) ** i / i for i in range(1, int(t) + 1)), 0 * p)

    @staticmethod
    def target(log_p: Tensor, *, t: float) -> Tensor:
        rest = -expm1(log_p)
        value = rest / t
        for i in range(int(t) - 1, 0, -1):  # Horner
            value = rest * (value + 1 / i)
        return value


class PartiallyHuberisedCrossEntropy(
    SeparableLoss,
    name="phuber",
    formula="-log p_y where p_y > 1 / tau, else -tau p_y + log tau + 1",
    reference=("Menon et al., Can Gradient Clipping Mitigate Label Noise?, ICLR 2020"),
):
    r"""Partially Huberised cross entropy: a straight line below p_y = 1 / tau.

    .. math:: L = -\log p_y \text{ if } p_y > 1 / \tau, \text{ else } -\tau p_y + \log \tau + 1

    Args:
        tau: largest slope of the loss in p_y, tau > 1; below p_y = 1 / tau the loss is a straight
            line. Default: 10.

    >>> import torch
    >>> PartiallyHuberisedCrossEntropy(tau=10)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.3863)
    """

    tau: float = hyper(default=10.0, above=1)

    @staticmethod
    def summand(p: Tensor, q: Tensor, *, tau: float) -> Tensor:
        line = -tau * p + log(_constant(tau, p)) + 1
        return q * where(p > 1 / tau, -log(p), line)

    @staticmethod
    def target(log_p: Tensor, *, tau: float) -> Tensor:
        line = exp(log_p) * -tau + (math.log(tau) + 1)
        return where(log_p > -math.log(tau), -log_p, line)


class TruncatedGeneralizedCrossEntropy(
    SeparableLoss,
    name="tgce",
    formula="(1 - max(p_y, k)^rho) / rho",
    reference=(
        "Zhang and Sabuncu, Generalized Cross Entropy Loss for Training Deep Neural Networks "
        "with Noisy Labels, NeurIPS 2018"
    ),
):
    r"""Truncated generalized cross entropy: constant, and so without gradient, below p_y = k.

    .. math:: L = (1 - \max(p_y, k)^\rho) / \rho

    Start training with ``gce``: until the network has learned, p_y is below k for most samples.

    Args:
        rho: exponent, 0 < rho <= 1; its paper calls it q. Default: 0.7.
        k: threshold of p_y, 0 < k < 1. Default: 0.5.

    >>> import torch
    >>> TruncatedGeneralizedCrossEntropy(k=0.5)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(0.5492)
    """

    rho: float = hyper(default=0.7, above=0, at_most=1)
    k: float = hyper(default=0.5, above=0, below=1)

    @staticmethod
    def summand(p: Tensor, q: Tensor, *, rho: float, k: float) -> Tensor:
        return q * (1 - where(p > k, p, _constant(k, p)) ** rho) / rho

    @staticmethod
    def target(log_p: Tensor, *, rho: float, k: float) -> Tensor:
        return expm1(rho * log_p.clamp(min=math.log(k))) * (-1 / rho)
