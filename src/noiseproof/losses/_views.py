"""A loss of the predictions for two views of a sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .._errors import UsageError
from ._conventions import as_batch, evaluate
from ._forms import Form
from ._prediction import Prediction, log_softmax
from ._successors import JensenShannon


@dataclass(frozen=True, eq=False)
class _Shifted(Form):
    """The inner loss plus a number for each sample that does not depend on the label."""

    shift: Tensor

    def at_label(self, p: Prediction) -> Tensor:
        return self.inner.at_label(p) + self.shift

    def per_class(self, p: Prediction) -> Tensor:
        return self.inner.per_class(p) + self.shift.unsqueeze(1)

    def class_sum(self, p: Prediction) -> Tensor | float:
        return self.inner.class_sum(p) + self.shift * p.num_classes

    @property
    def kind(self) -> Any:
        return self.inner.kind


def _log_mean_ratio(difference: Tensor) -> Tensor:
    """log((p + p') / 2 / p) from log p' - log p; exactly 0 where the two are equal."""
    near = difference.clamp(-1, 1)
    far = torch.logaddexp(difference, torch.zeros_like(difference)) - math.log(2)
    return torch.where(difference.abs() < 1, torch.log1p(torch.expm1(near) / 2), far)


class GeneralizedJensenShannon(nn.Module):
    r"""Generalized Jensen-Shannon divergence of the label and the predictions for two views.

    .. math:: L = \frac{H(m) - \tfrac{1 - \pi}{2} (H(p) + H(p'))}{-(1 - \pi) \log(1 - \pi)},
        \quad m = \pi e_y + \tfrac{1 - \pi}{2} (p + p')

    It is JS of the label and the mean prediction, plus a divergence of the two views; with the same
    logits twice it is ``js``. It takes the logits of two views, so it can neither be added to other
    losses nor be written as text.

    Args:
        pi: weight of the label in the mixture m, 0 < pi < 1. Default: 0.5.
        keywords: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``, as in
            :class:`noiseproof.losses.Loss`.

    Shape:
        - logits: [K], [N, K] or [N, K, d1, ...], of the first view.
        - view: those of the second view, of the same shape.
        - target, sample_weight: as in :class:`noiseproof.losses.Loss`.

    >>> import torch
    >>> z = torch.randn(8, 10)
    >>> y = torch.randint(10, (8,))
    >>> torch.allclose(GeneralizedJensenShannon(pi=0.3)(z, z, y), JensenShannon(pi=0.3)(z, y))
    True
    """

    def __init__(self, *, pi: float = 0.5, **keywords: Any) -> None:
        super().__init__()
        self.js = JensenShannon(pi=pi, **keywords)

    def forward(
        self, logits: Tensor, view: Tensor, target: Tensor, *, sample_weight: Tensor | None = None
    ) -> Tensor:
        if logits.shape != view.shape:
            shapes = f"{list(logits.shape)} and {list(view.shape)}"
            raise UsageError(f"the logits of the two views must have one shape; they had {shapes}")
        both = torch.stack([log_softmax(as_batch(logits)), log_softmax(as_batch(view))])
        log_mean = torch.logsumexp(both, 0) - math.log(2)
        # H(mean) - mean of H, computed as a mean of divergences so that no digits cancel.
        divergence = -(both.exp() * _log_mean_ratio(both.flip(0) - both)).sum(2).mean(0)
        shifted = _Shifted(self.js.expression, divergence / -math.log1p(-self.js.pi))
        mean = log_mean.squeeze(0) if logits.dim() == 1 else log_mean
        return evaluate(shifted, mean, target, sample_weight=sample_weight, **self.js.keywords)

    def extra_repr(self) -> str:
        return f"pi={self.js.pi:g}"
