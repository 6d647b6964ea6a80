"""The losses of "Normalized Loss Functions for Deep Learning with Noisy Labels" (ICML 2020).

p_y is the probability that the network gives to the label y, K the number of classes. ``summand``
is the term of a class as the paper writes it; the other parts are its sum for a one-hot label.
"""

from __future__ import annotations

from torch import Tensor, abs, expm1, log

from ..syntax import hyper
from ._module import NormalizedLoss, SeparableLoss

_WANG = "Wang et al., Symmetric Cross Entropy for Robust Learning with Noisy Labels, ICCV 2019"
_MA = "Ma et al., Normalized Loss Functions for Deep Learning with Noisy Labels, ICML 2020"


class CrossEntropy(
    SeparableLoss,
    name="ce",
    formula="-log p_y",
    reference="torch.nn.CrossEntropyLoss",
):
    r"""Cross entropy: learns fast, but also learns wrong labels.

    .. math:: L = -\log p_y

    The same values as ``torch.nn.CrossEntropyLoss``.

    >>> import torch
    >>> CrossEntropy()(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.3863)
    """

    @staticmethod
    def summand(p: Tensor, q: Tensor) -> Tensor:
        return -q * log(p)

    @staticmethod
    def logarithm() -> float:
        return 1.0


class FocalLoss(
    SeparableLoss,
    name="fl",
    formula="-(1 - p_y)^gamma log p_y",
    reference="Lin et al., Focal Loss for Dense Object Detection, ICCV 2017",
):
    r"""Focal loss: cross entropy with less weight on samples that are already learned.

    .. math:: L = -(1 - p_y)^\gamma \log p_y

    Args:
        gamma: focusing parameter, gamma >= 0; larger values give less weight to samples with a high
            p_y, at 0 the loss is cross entropy. Default: 0.5.

    >>> import torch
    >>> FocalLoss(gamma=2)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(0.7798)
    """

    gamma: float = hyper(default=0.5, at_least=0)

    @staticmethod
    def summand(p: Tensor, q: Tensor, *, gamma: float) -> Tensor:
        return -q * (1 - p) ** gamma * log(p)

    @staticmethod
    def target(log_p: Tensor, *, gamma: float) -> Tensor:
        # At p = 1 the derivative of (1 - p)^gamma is infinite for gamma < 1, but that of the
        # product is 0. With p clamped just below 1 both derivatives of the power stay finite.
        p_below_one = log_p.clamp(max=-1e-18)
        return -((-expm1(p_below_one)) ** gamma) * log_p


class GeneralizedCrossEntropy(
    SeparableLoss,
    name="gce",
    formula="(1 - p_y^rho) / rho",
    reference=(
        "Zhang and Sabuncu, Generalized Cross Entropy Loss for Training Deep Neural Networks "
        "with Noisy Labels, NeurIPS 2018"
    ),
):
    r"""Generalized cross entropy: between cross entropy (rho to 0) and half of MAE (rho = 1).

    .. math:: L = (1 - p_y^\rho) / \rho

    Args:
        rho: exponent, 0 < rho <= 1; its paper calls it q. Default: 0.7.

    >>> import torch
    >>> GeneralizedCrossEntropy(rho=0.7)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(0.8872)
    """

    rho: float = hyper(default=0.7, above=0, at_most=1)

    @staticmethod
    def summand(p: Tensor, q: Tensor, *, rho: float) -> Tensor:
        return q * (1 - p**rho) / rho

    @staticmethod
    def target(log_p: Tensor, *, rho: float) -> Tensor:
        return expm1(rho * log_p) * (-1 / rho)


class MeanAbsoluteError(
    SeparableLoss,
    name="mae",
    formula="sum_k |p_k - q_k| = 2 (1 - p_y)",
    reference=(
        "Ghosh et al., Robust Loss Functions under Label Noise for Deep Neural Networks, AAAI 2017"
    ),
):
    r"""Mean absolute error between probabilities and the one-hot label: robust, but learns slowly.

    .. math:: L = \sum_k |p_k - q_k| = 2 (1 - p_y)

    It is passive, though 2 (1 - p_y) looks active: the summand of every other class is p_k.

    >>> import torch
    >>> MeanAbsoluteError()(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.5000)
    """

    @staticmethod
    def summand(p: Tensor, q: Tensor) -> Tensor:
        return abs(p - q)

    @staticmethod
    def complement() -> float:
        return 2.0  # 1 - p_y from the label, and p_k from each other class


class ReverseCrossEntropy(
    SeparableLoss,
    name="rce",
    formula="-sum_k p_k log q_k = -A (1 - p_y), log 0 := A",
    reference=_WANG,
):
    r"""Reverse cross entropy: prediction and label are exchanged, and log 0 is set to A.

    .. math:: L = -\sum_k p_k \log q_k = -A (1 - p_y), \quad \log 0 := A

    Args:
        A: stands for log 0, A < 0; at -2 the loss is MAE. Default: -4.

    >>> import torch
    >>> ReverseCrossEntropy(A=-4)(torch.zeros(1, 5), torch.tensor([2]))
    tensor(3.2000)
    """

    A: float = hyper(default=-4.0, below=0)

    @staticmethod
    def summand(p: Tensor, q: Tensor, *, A: float) -> Tensor:
        return -p * A * (1 - q)  # log q is A where q is 0, and 0 where it is 1

    @staticmethod
    def complement(*, A: float) -> float:
        return -A


class SymmetricCrossEntropy(
    SeparableLoss,
    name="sce",
    formula="-alpha log p_y - beta A (1 - p_y)",
    reference=_WANG,
):
    r"""Symmetric cross entropy: alpha times cross entropy plus beta times its reverse.

    .. math:: L = -\alpha \log p_y - \beta A (1 - p_y)

    The defaults are the paper's for CIFAR-10; for MNIST it takes alpha = 0.01 and beta = 1, for
    CIFAR-100 alpha = 6 and beta = 0.1.

    Args:
        alpha: factor of cross entropy, alpha >= 0. Default: 0.1.
        beta: factor of reverse cross entropy, beta >= 0. Default: 1.
        A: stands for log 0 in reverse cross entropy, A < 0. Default: -4.

    >>> import torch
    >>> SymmetricCrossEntropy(alpha=0.1, beta=1)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(3.1386)
    """

    alpha: float = hyper(default=0.1, at_least=0)
    beta: float = hyper(default=1.0, at_least=0)
    A: float = hyper(default=-4.0, below=0)

    @staticmethod
    def summand(p: Tensor, q: Tensor, *, alpha: float, beta: float, A: float) -> Tensor:
        return -alpha * q * log(p) - beta * p * A * (1 - q)

    @staticmethod
    def logarithm(*, alpha: float, beta: float, A: float) -> float:
        return alpha

    @staticmethod
    def complement(*, alpha: float, beta: float, A: float) -> float:
        return -beta * A


class NormalizedCrossEntropy(
    NormalizedLoss,
    of=CrossEntropy,
    name="nce",
    formula="log p_y / sum_k log p_k",
    reference=_MA,
):
    r"""Normalized cross entropy: robust and active; alone it underfits, so add a passive loss.

    .. math:: L = \log p_y \,/ \sum_k \log p_k

    >>> import torch
    >>> NormalizedCrossEntropy()(torch.zeros(1, 4), torch.tensor([2]))
    tensor(0.2500)
    """


class NormalizedFocalLoss(
    NormalizedLoss,
    of=FocalLoss,
    name="nfl",
    formula="FL(y) / sum_j FL(j)",
    reference=_MA,
):
    r"""Normalized focal loss.

    .. math:: L = (1 - p_y)^\gamma \log p_y \,/ \sum_k (1 - p_k)^\gamma \log p_k

    The last line of the paper's equation for it puts the power inside the logarithm; that is
    another function, and not what its Eq. 1 or its code compute.

    Args:
        gamma: focusing parameter of the focal loss, gamma >= 0; at 0 the loss is normalized cross
            entropy. Default: 0.5.

    >>> import torch
    >>> NormalizedFocalLoss(gamma=2)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(0.2500)
    """

    gamma: float = FocalLoss.gamma


class NormalizedGeneralizedCrossEntropy(
    NormalizedLoss,
    of=GeneralizedCrossEntropy,
    name="ngce",
    formula="(1 - p_y^rho) / (K - sum_k p_k^rho)",
    reference=_MA,
):
    r"""Normalized generalized cross entropy.

    .. math:: L = (1 - p_y^\rho) \,/\, (K - \sum_k p_k^\rho)

    Args:
        rho: exponent, 0 < rho <= 1; at 1 the loss is normalized MAE. Default: 0.7.

    >>> import torch
    >>> NormalizedGeneralizedCrossEntropy(rho=0.1)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(0.2500)
    """

    rho: float = GeneralizedCrossEntropy.rho


class NormalizedMeanAbsoluteError(
    NormalizedLoss,
    of=MeanAbsoluteError,
    name="nmae",
    formula="(1 - p_y) / (K - 1)",
    reference=_MA,
):
    r"""Normalized mean absolute error: MAE divided by 2 (K - 1).

    .. math:: L = (1 - p_y) / (K - 1)

    >>> import torch
    >>> NormalizedMeanAbsoluteError()(torch.zeros(1, 4), torch.tensor([2]))
    tensor(0.2500)
    """


class NormalizedReverseCrossEntropy(
    NormalizedLoss,
    of=ReverseCrossEntropy,
    name="nrce",
    formula="(1 - p_y) / (K - 1)",
    reference=_MA,
):
    r"""Normalized reverse cross entropy: RCE divided by -A (K - 1), so the same as NMAE for any A.

    .. math:: L = (1 - p_y) / (K - 1)

    Args:
        A: stands for log 0, A < 0; the value does not depend on it. Default: -4.

    >>> import torch
    >>> NormalizedReverseCrossEntropy(A=-6)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(0.2500)
    """

    A: float = ReverseCrossEntropy.A
