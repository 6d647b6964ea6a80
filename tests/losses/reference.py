"""Slow twins: the losses from their papers' summands, and torch's conventions spelt out.

Nothing here uses the closed forms, the reductions or the checks of the package.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import mpmath
import torch
from torch import Tensor

from noiseproof.losses._expression import Atom, Expression, Normalized, Sum


def matrix(expression: Expression, p: Tensor) -> Tensor:
    """L(f(x), j) for probabilities [N, K]: the sum over k of the summand, for each j as label."""
    if isinstance(expression, Atom):
        one_hot = torch.eye(p.shape[1], dtype=p.dtype)
        summands = expression.loss.summand(p[:, None, :], one_hot[None], **dict(expression.hyper))
        return summands.sum(-1)
    if isinstance(expression, Normalized):
        inner = matrix(expression.inner, p)
        return inner / inner.sum(1, keepdim=True)
    assert isinstance(expression, Sum)
    return sum((c * matrix(term, p) for c, term in expression.terms), torch.zeros_like(p))


def conventional(
    losses: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """``torch.nn.CrossEntropyLoss``'s conventions on a matrix [N, K], one sample at a time."""
    num_classes = losses.shape[1]
    weights = torch.ones(num_classes, dtype=losses.dtype) if weight is None else weight
    values, divisor = [], 0.0
    for row, label in zip(losses, target, strict=True):
        if target.is_floating_point():
            q = label
            divisor += 1.0
        elif int(label) == ignore_index:
            values.append(0.0 * row.sum())
            continue
        else:
            q = torch.nn.functional.one_hot(label.long(), num_classes).to(losses.dtype)
            divisor += float(weights[int(label)])
        q = (1 - label_smoothing) * q + label_smoothing / num_classes
        values.append((q * weights * row).sum())
    stacked = torch.stack(values) if values else losses.sum(1)
    if reduction == "none":
        return stacked
    return stacked.sum() / divisor if reduction == "mean" else stacked.sum()


def exact(expression: Expression, logits: list[float], label: int) -> Any:
    """L(f(x), label) in 60 digits, from the very source of the summand.

    The declarations use bare names (``log``, ``abs``), so their code runs on mpmath's numbers as
    soon as those names mean mpmath's functions.
    """
    return _exact_row(expression, [mpmath.mpf(z) for z in logits])[label]


def exact_gradient(expression: Expression, logits: list[float], label: int) -> list[float]:
    """Its derivative by each logit, by central differences of 60 digits."""
    step = mpmath.mpf(10) ** -20
    gradient = []
    for j in range(len(logits)):
        ends = []
        for sign in (1, -1):
            moved = [mpmath.mpf(z) + (sign * step if k == j else 0) for k, z in enumerate(logits)]
            ends.append(_exact_row(expression, moved)[label])
        gradient.append(float((ends[0] - ends[1]) / (2 * step)))
    return gradient


def _exact_row(expression: Expression, logits: list[Any]) -> list[Any]:
    if isinstance(expression, Sum):
        rows = [(c, _exact_row(term, logits)) for c, term in expression.terms]
        return [sum(c * row[j] for c, row in rows) for j in range(len(logits))]
    if isinstance(expression, Normalized):
        row = _exact_row(expression.inner, logits)
        return [value / sum(row) for value in row]
    assert isinstance(expression, Atom)
    top = max(logits)
    powers = [mpmath.exp(z - top) for z in logits]
    p = [power / sum(powers) for power in powers]
    summand = _bound_to_mpmath(expression.loss.summand)
    hyper = {name: mpmath.mpf(value) for name, value in expression.hyper}
    classes = range(len(p))
    return [sum(summand(p[k], mpmath.mpf(k == j), **hyper) for k in classes) for j in classes]


def _bound_to_mpmath(function: Callable[..., Any]) -> Callable[..., Any]:
    names = {**function.__globals__, "log": mpmath.log, "exp": mpmath.exp, "abs": mpmath.fabs}
    bound = types.FunctionType(function.__code__, names)
    bound.__kwdefaults__ = function.__kwdefaults__
    return bound
