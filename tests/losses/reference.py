"""Slow twins: the losses from their papers' summands, and torch's conventions spelt out.

Nothing here uses the closed forms, the reductions or the checks of the package.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import mpmath
import torch
from torch import Tensor

from noiseproof.losses._expression import Atom, Expression, MatrixAtom, Sum
from noiseproof.losses._forms import Form, Negative, Normalized, Symmetrized
from noiseproof.losses._mapped import (
    Bootstrapped,
    EpsilonSoftmax,
    ForwardCorrected,
    LogitClipped,
    Softplus,
)


def matrix(expression: Expression, p: Tensor) -> Tensor:
    """L(f(x), j) for probabilities [N, K]: the sum over k of the summand, for each j as label."""
    if isinstance(expression, Atom):
        one_hot = torch.eye(p.shape[1], dtype=p.dtype)
        return expression.summand(p[:, None, :], one_hot[None], p.shape[1]).sum(-1)
    if isinstance(expression, Sum):
        return sum((c * matrix(term, p) for c, term in expression.terms), torch.zeros_like(p))
    if isinstance(expression, MatrixAtom):
        rows = [_exact_row(expression, [mpmath.log(x) for x in row]) for row in p.tolist()]
        return torch.tensor([[float(x) for x in row] for row in rows], dtype=p.dtype)
    assert isinstance(expression, Form)
    return FORMS[type(expression)](expression, p)


def _normalized(expression: Any, p: Tensor) -> Tensor:
    inner = matrix(expression.inner, p)
    return inner / inner.sum(1, keepdim=True)


def _symmetrized(expression: Any, p: Tensor) -> Tensor:
    inner = matrix(expression.inner, p)
    return inner - inner.mean(1, keepdim=True)


def _negative(expression: Any, p: Tensor) -> Tensor:
    atom, one = expression.inner, torch.ones((), dtype=p.dtype)
    turned = atom.summand(one * 1e-7, one, 2) - atom.summand(p.clamp(min=1e-7), one, 2)
    return 1 - turned / turned.sum(1, keepdim=True)


def _epsilon_softmax(expression: Any, p: Tensor) -> Tensor:
    top = torch.nn.functional.one_hot(p.argmax(1), p.shape[1])
    moved = (p + expression.m * top) / (1 + expression.m)
    return matrix(expression.inner, moved.clamp(min=1e-8))


def _bootstrapped(expression: Any, p: Tensor) -> Tensor:
    inner = matrix(expression.inner, p)
    q = torch.nn.functional.one_hot(p.argmax(1), p.shape[1]) if expression.hard else p
    own = (q * inner).sum(1, keepdim=True)
    return expression.beta * inner + (1 - expression.beta) * own


FORMS = {
    Normalized: _normalized,
    Symmetrized: _symmetrized,
    Negative: _negative,
    EpsilonSoftmax: _epsilon_softmax,
    Bootstrapped: _bootstrapped,
}


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


@functools.cache
def exact(expression: Expression, logits: tuple[float, ...], label: int) -> Any:
    """L(f(x), label) in 60 digits, from the very source of the summand.

    The declarations use bare names (``log``, ``abs``), so their code runs on mpmath's numbers as
    soon as those names mean mpmath's functions.
    """
    return _exact_row(expression, [mpmath.mpf(z) for z in logits])[label]


@functools.cache
def exact_slopes(
    expression: Expression, logits: tuple[float, ...], label: int
) -> list[tuple[float, float]]:
    """Its derivative by each logit from the left and from the right; they differ at a kink."""
    step = mpmath.mpf(10) ** -25
    here = exact(expression, logits, label)
    slopes = []
    for j in range(len(logits)):
        sides = []
        for sign in (-1, 1):
            moved = [mpmath.mpf(z) + (sign * step if k == j else 0) for k, z in enumerate(logits)]
            sides.append(float((_exact_row(expression, moved)[label] - here) / (sign * step)))
        slopes.append((sides[0], sides[1]))
    return slopes


def _exact_row(expression: Expression, logits: list[Any]) -> list[Any]:
    if isinstance(expression, Sum):
        rows = [(c, _exact_row(term, logits)) for c, term in expression.terms]
        return [sum(c * row[j] for c, row in rows) for j in range(len(logits))]
    if isinstance(expression, MatrixAtom):
        hyper = {name: mpmath.mpf(value) for name, value in expression.hyper}
        return EXACT[expression.loss.name](logits, **hyper)
    if type(expression) in EXACT_MAPS:
        return _exact_row(expression.inner, EXACT_MAPS[type(expression)](expression, logits))
    if isinstance(expression, Normalized):
        row = _exact_row(expression.inner, logits)
        return [value / sum(row) for value in row]
    if isinstance(expression, Symmetrized):
        row = _exact_row(expression.inner, logits)
        return [value - sum(row) / len(row) for value in row]
    atom = expression.inner if isinstance(expression, Negative) else expression
    assert isinstance(atom, Atom)
    p = _exact_softmax(logits)
    summand = _bound_to_mpmath(atom.loss.summand)
    hyper = {name: mpmath.mpf(value) for name, value in atom.hyper}
    if atom.loss.takes_num_classes:
        hyper["K"] = len(p)
    one, least = mpmath.mpf(1), mpmath.mpf("1e-7")
    if isinstance(expression, Negative):
        turned = [summand(least, one, **hyper) - summand(max(x, least), one, **hyper) for x in p]
        return [1 - value / sum(turned) for value in turned]
    classes = range(len(p))
    return [sum(summand(p[k], mpmath.mpf(k == j), **hyper) for k in classes) for j in classes]


def _exact_ldr(logits: list[Any], lam: Any, c: Any) -> list[Any]:
    classes = range(len(logits))

    def at(j: int) -> Any:
        top = max(logits)  # taken out, so that nothing overflows even here
        terms = (mpmath.exp((logits[k] + c * (k != j) - top) / lam) for k in classes)
        return lam * mpmath.log(sum(terms) / len(logits)) + top - logits[j]

    return [at(j) for j in classes]


def _exact_bitempered(logits: list[Any], t1: Any, t2: Any) -> list[Any]:
    def probabilities(shift: Any) -> list[Any]:
        return [(1 + (t2 - 1) * (shift - z)) ** (1 / (1 - t2)) for z in logits]

    low = max(logits)  # the sum is at least 1 here, and at most 1 where K classes have 1 / K each
    high = low + (mpmath.mpf(len(logits)) ** (t2 - 1) - 1) / (t2 - 1)
    for _ in range(220):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(probabilities(middle)) > 1 else (low, middle)
    p = probabilities(low)
    rest = (1 - sum(x ** (2 - t1) for x in p)) / (2 - t1)
    return [(1 - x ** (1 - t1)) / (1 - t1) - rest for x in p]


def _exact_softmax(logits: list[Any]) -> list[Any]:
    top = max(logits)
    powers = [mpmath.exp(z - top) for z in logits]
    return [power / sum(powers) for power in powers]


def _exact_softplus(expression: Any, logits: list[Any]) -> list[Any]:
    z = [mpmath.log1p(mpmath.exp(x)) for x in logits]
    return [x * len(z) / sum(z) for x in z]


def _exact_clip(expression: Any, logits: list[Any]) -> list[Any]:
    norm = mpmath.sqrt(sum(x**2 for x in logits))
    return [x * min(1, mpmath.mpf(expression.tau) / norm) if norm else x for x in logits]


def _exact_forward(expression: Any, logits: list[Any]) -> list[Any]:
    p, T = _exact_softmax(logits), expression.transition.T.tolist()
    classes = range(len(p))
    return [mpmath.log(sum(mpmath.mpf(T[i][j]) * p[i] for i in classes)) for j in classes]


EXACT_MAPS = {
    Softplus: _exact_softplus,
    LogitClipped: _exact_clip,
    ForwardCorrected: _exact_forward,
}
"""The logits that a form gives to its inner loss."""

EXACT = {"ldr": _exact_ldr, "bitempered": _exact_bitempered}


def _bound_to_mpmath(function: Callable[..., Any]) -> Callable[..., Any]:
    ours = {
        "log": mpmath.log,
        "log1p": mpmath.log1p,
        "exp": mpmath.exp,
        "abs": mpmath.fabs,
        "where": lambda condition, yes, no: yes if condition else no,
    }
    bound = types.FunctionType(function.__code__, {**function.__globals__, **ours})
    bound.__kwdefaults__ = function.__kwdefaults__
    return bound
