"""A published loss with its settings, as a loss to train with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, expm1, log, sqrt

from .. import catalogue
from .._errors import UsageError
from .._hints import nearest
from ._build import parse
from ._module import Loss, SeparableLoss


@dataclass(frozen=True)
class Recipe:
    """A loss with what its paper wants of training beside it.

    Attributes:
        name: of the method.
        dataset: that it was published for.
        loss: the loss.
        l1: the weight of the L1 norm of all parameters, added to the loss.
        weight_decay: in place of the protocol's; None leaves that as it is.
        source: the paper.
        note: what a user should know of these numbers, where sources disagree.
    """

    name: str
    dataset: str
    loss: Loss
    l1: float
    weight_decay: float | None
    source: str
    note: str = ""


class DetachedFocalLoss(
    SeparableLoss,
    name="fl_detached",
    formula="-sqrt(1 - p_y) log p_y",
    reference="the published code of several papers, which train the focal loss in this way",
    listed=False,  # its gradient is not that of its value
):
    """The focal loss (gamma 0.5) without a gradient through its factor (1 - p_y)^gamma."""

    @staticmethod
    def summand(p: Tensor, q: Tensor) -> Tensor:
        return -q * (1 - p).detach() ** 0.5 * log(p)

    @staticmethod
    def target(log_p: Tensor) -> Tensor:
        return -sqrt(-expm1(log_p.detach())) * log_p


def recipe(
    name: str,
    dataset: str,
    *,
    noise: str = "symmetric",
    rate: float | None = None,
    protocol: str = "paper",
    classes: int | None = None,
    **keywords: Any,
) -> Recipe:
    """A published loss with its published settings for a data set.

    Args:
        name: ``"anl-ce"``, ``"jal-fl"``, ``"nce+agce"``, ``"nce+rce"``, ...; or ``"auto"``, of
            which the loss is one part: its note names the others.
        dataset: ``"mnist"``, ``"cifar10"``, ``"cifar100"`` or ``"webvision"``.
        noise: ``"symmetric"`` or ``"asymmetric"``, for a recipe that depends on it.
        rate: the noise rate, for a recipe that depends on it (``js``, ``epsilon-softmax``).
        protocol: ``"paper"``, or ``"authors"`` for what the code of the paper's authors computes
            where it differs: A = -9.21, half of MAE, FL's factor without a gradient, other weights.
        classes: how many there are, for ``"auto"`` and data of one's own.
        keywords: ``reduction`` and so on, of the loss.

    >>> anl = recipe("anl-ce", "cifar10")
    >>> anl.loss, anl.l1, anl.weight_decay
    (Loss('5*nce + 5*nnce'), 5e-05, 0.0)
    """
    method, dataset = catalogue.method_named(name), dataset.lower().replace("-", "")
    if protocol not in catalogue.PROTOCOLS:
        raise UsageError(f"protocol is 'paper' or 'authors'; it was {protocol!r}")
    published = [n for n, m in catalogue.METHODS.items() if m.paper or m.authors]
    published.append(catalogue.AUTO)
    if method is None or method not in published:
        names = ", ".join(published)
        hint = nearest(name.lower().replace(" ", ""), published)
        raise UsageError(f"unknown recipe {name!r}{hint}; the known ones are {names}")
    found = (
        catalogue.resolve_loss(method, dataset, noise=noise, rate=rate, classes=classes)
        if method == catalogue.AUTO
        else catalogue.setting_of(method, dataset, noise=noise, rate=rate, protocol=protocol)
    )
    if found is None:
        raise catalogue.no_settings(method, dataset, noise)
    loss = parse(found.loss, **keywords)
    decay = 0.0 if found.brings.get("shrink") else found.weight_decay  # its place is taken
    return Recipe(method, dataset, loss, found.l1, decay, found.source, found.note)
