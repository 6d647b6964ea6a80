"""``normalize``: any loss that is not negative, divided by its sum over classes, is robust."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ._expression import (
    Custom,
    Expression,
    Normalized,
    Sum,
    check_can_normalize,
)
from ._module import Loss, register_name
from ._prediction import Prediction

MatrixFunction = Callable[[Tensor], Tensor]


def normalize(loss: Loss | MatrixFunction, **keywords: Any) -> Loss:
    r"""The normalized form of a loss, which is robust to symmetric label noise (Lemma 1).

    .. math:: L_{norm}(f(x), y) = L(f(x), y) \,/ \sum_j L(f(x), j)

    Args:
        loss: a loss of this package, or a function from logits [N, K] to the matrix L(f(x), j),
            [N, K], of the loss of every class were it the label.
        keywords: ``reduction`` and so on; those of ``loss`` where not given.

    Raises:
        ValueError: the loss can be negative, or its sum over classes can be 0. This is looked for
            on extreme and random predictions now, and, for a function of yours, on every batch
            whose values are at hand (CPU, eager).

    >>> import torch
    >>> def distance(logits):  # a loss of one's own: |p - e_j|, the distance to each corner
    ...     p = logits.softmax(1)
    ...     return (1 - 2 * p + p.square().sum(1, keepdim=True)).clamp(min=0).sqrt()
    >>> normalize(distance)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(0.2500)
    """
    if not isinstance(loss, Loss):
        loss = from_function(loss)
    return Loss.of(normalize_expression(loss.expression), **{**loss.keywords, **keywords})


def from_function(function: MatrixFunction, *, name: str | None = None, **keywords: Any) -> Loss:
    """A loss from a function of logits [N, K] that gives L(f(x), j), [N, K].

    It has every convention of the declared losses, adds to them and can be normalized. ``name`` is
    what its text shows; :func:`register` makes that text parse.
    """
    if isinstance(function, type) or not callable(function):
        raise TypeError(
            f"a loss or a function of logits [N, K] is needed; it was {function!r}"
            + (": make an instance of it first" if isinstance(function, type) else "")
        )
    shown = name or str(getattr(function, "__name__", type(function).__name__))
    return Loss.of(Custom(function, shown), **keywords)


def register(function: MatrixFunction) -> MatrixFunction:
    """Let a function of logits that gives L(f(x), j) be written by its name; a decorator.

    >>> import torch
    >>> @register
    ... def squared(logits):
    ...     p = logits.softmax(1)
    ...     return 1 - 2 * p + p.square().sum(1, keepdim=True)
    >>> from noiseproof import parse
    >>> parse("nce + normalize(squared)")
    Loss('nce + normalize(squared)')
    """
    register_name(function.__name__, function)
    return function


def normalize_expression(inner: Expression) -> Expression:
    """The normalized form, refused with the reason where there is none."""
    if isinstance(inner, Normalized):
        return inner  # its sum is 1 already
    if isinstance(inner, Sum) and len(inner.terms) == 1 and inner.terms[0][0] > 0:
        return normalize_expression(inner.terms[0][1])  # a factor cancels
    for logits in map(probes, (2, 3, 10)):
        try:
            matrix = inner.per_class(Prediction(logits))
        except ValueError:
            raise
        except Exception:  # a function made for one K: it will be looked at when it is called
            continue
        check_can_normalize(matrix, inner)
    return Normalized(inner)


def probes(num_classes: int) -> Tensor:
    """Predictions at which losses go wrong: saturated, uniform, tied, far from 0, random."""
    one_hot = torch.eye(num_classes)
    tied = one_hot + one_hot.roll(1, 0)
    level = torch.ones(1, num_classes)
    random = torch.randn(256, num_classes, generator=torch.Generator().manual_seed(0))
    return torch.cat(
        [scale * rows for rows in (one_hot, -one_hot, tied) for scale in (1.0, 10.0, 100.0, 1e4)]
        + [scale * random for scale in (0.1, 1.0, 10.0, 100.0)]
        + [scale * level for scale in (0.0, 1.0, -1.0, 100.0, -100.0)]
    )
