"""What a run minimises: a loss on a batch's logits, with what is added to it."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from .._errors import UsageError
from .._seeds import derive
from ..losses import Loss
from ._own import Criterion


class Objective(Protocol):
    """Logits, labels and the samples' indices to a number; told when an epoch begins."""

    def begin_epoch(self, epoch: int) -> None: ...

    def __call__(self, logits: Tensor, labels: Tensor, index: Tensor) -> Tensor: ...


class LossObjective:
    """Any loss of logits and labels, and the penalty on the batch's mean prediction.

    Args:
        loss: of logits [N, K] and labels [N]; with label smoothing also of class probabilities
            [N, K], where it is not one of this package.
        balance: weight of the penalty.
        prior: the share of each class, [K], for the penalty.
        label_smoothing: the part of a label that is spread evenly over all classes.
    """

    def __init__(
        self, loss: Criterion, balance: float, prior: Tensor, label_smoothing: float = 0.0
    ) -> None:
        if label_smoothing and isinstance(loss, Loss) and type(loss).forward is Loss.forward:
            loss, label_smoothing = _with_smoothing(loss, label_smoothing), 0.0
        self.loss = loss
        self.balance = balance
        self.prior = prior
        self._smoothing = label_smoothing  # that the loss does not do itself

    def begin_epoch(self, epoch: int) -> None:
        pass

    def __call__(self, logits: Tensor, labels: Tensor, index: Tensor) -> Tensor:
        value = self._smoothed(logits, labels) if self._smoothing else self.loss(logits, labels)
        gave = list(value.shape) if isinstance(value, Tensor) else type(value).__name__
        if gave != []:
            raise UsageError(
                f"a loss gives a tensor of one number for a batch; this one gave {gave}: "
                'take its mean, or reduction="mean", and return it alone, without item()'
            )
        if logits.requires_grad and not value.requires_grad:
            raise UsageError(
                "the loss has no gradient: compute it from the logits by torch's operations, "
                "without detach(), argmax() or no_grad"
            )
        if self.balance:
            value = value + self.balance * imbalance(logits, self.prior)
        return value

    def _smoothed(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss at class probabilities: of the label 1 - s, and s in equal parts of all."""
        part = self._smoothing / logits.shape[1]
        smooth = torch.full_like(logits, part)
        smooth.scatter_(1, labels.unsqueeze(1), 1 - self._smoothing + part)
        try:
            return self.loss(logits, smooth)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            reason = " ".join(str(error).split())
            raise UsageError(
                "label_smoothing gives a loss of your own class probabilities, [N, K], and this "
                f"one does not take them ({reason:.200}): take them, or leave label_smoothing out"
            ) from error


def _with_smoothing(loss: Loss, label_smoothing: float) -> Loss:
    if loss.label_smoothing:
        raise UsageError(
            f"the loss has label_smoothing={loss.label_smoothing:g} and the run "
            f"{label_smoothing:g}: give it once"
        )
    return Loss.of(loss.expression, **(loss.keywords | {"label_smoothing": label_smoothing}))


def imbalance(logits: Tensor, prior: Tensor) -> Tensor:
    """KL(prior || mean prediction), which grows as a class is given up (Tanaka et al. 2018)."""
    mean = logits.softmax(1).mean(0).clamp_min(1e-8)
    return (prior * (prior.clamp_min(1e-8).log() - mean.log())).sum()


class NLNLObjective:
    """NLNL (Kim et al., ICCV 2019): learn first from what an image is not.

    Three stages of equal length. In the first, -log(1 - p) of complementary labels, drawn anew
    every epoch among the classes other than the given one; in the second the same where the
    network holds the given label likelier than chance, p_y > 1/K; in the third, cross entropy
    where p_y > 0.5. Samples are weighted by the largest class's count over that of their own. A
    hundred classes take 110 complementary labels, which are added up: each alone says little.
    """

    STAGES = 3

    def __init__(
        self,
        labels: Tensor,
        num_classes: int,
        epochs: int,
        seed: int,
        complements: int | None = None,
    ) -> None:
        self.labels = labels
        self.num_classes = num_classes
        self.epochs = epochs
        self.seed = seed
        self.complements = complements or (110 if num_classes == 100 else 1)
        counts = torch.bincount(labels, minlength=num_classes).clamp_min(1).float()
        self.weight = counts.max() / counts
        self.stage = torch.zeros((), device=labels.device)
        self.complementary_labels = torch.zeros(
            len(labels), self.complements, dtype=torch.int64, device=labels.device
        )

    def begin_epoch(self, epoch: int) -> None:
        """This epoch's complementary labels and stage; in place, so that captured graphs see it."""
        generator = torch.Generator(self.labels.device).manual_seed(
            derive(self.seed, "complementary", epoch)
        )
        shift = torch.randint(
            1,
            self.num_classes,
            self.complementary_labels.shape,
            generator=generator,
            device=self.labels.device,
        )
        self.complementary_labels.copy_((self.labels.unsqueeze(1) + shift) % self.num_classes)
        self.stage.fill_(min(self.STAGES - 1, epoch * self.STAGES // self.epochs))

    def __call__(self, logits: Tensor, labels: Tensor, index: Tensor) -> Tensor:
        log_p = logits.log_softmax(1)
        p = log_p.exp()
        given = p.gather(1, labels.unsqueeze(1)).squeeze(1).detach()
        others = self.complementary_labels[index]
        negative = -(1 - p.gather(1, others)).clamp_min(1e-5).log().sum(1)
        positive = -log_p.gather(1, labels.unsqueeze(1)).squeeze(1)
        first, last = self.stage < 1, self.stage > 1
        chosen = torch.where(first, True, given > torch.where(last, 0.5, 1 / self.num_classes))
        each = torch.where(last, positive, negative) * self.weight[labels] * chosen
        return each.sum() / chosen.sum().clamp_min(1)
