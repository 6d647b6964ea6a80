"""What takes a loss and gives a loss, and what makes a loss of a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from ._expression import Custom
from ._forms import Form, Negative, Normalized, Symmetrized
from ._hyper import check_all
from ._mapped import (
    BackwardCorrected,
    Bootstrapped,
    EpsilonSoftmax,
    ForwardCorrected,
    LogitClipped,
    Transition,
)
from ._module import Loss, register_name
from ._prediction import extremes

MatrixFunction = Callable[[Tensor], Tensor]


def _wrapped(
    form: type[Form], loss: Loss | MatrixFunction, keywords: Mapping[str, Any], **hyper: float
) -> Loss:
    if not isinstance(loss, Loss):
        loss = from_function(loss)
    checked = dict(check_all(form.hyper, hyper, form.word))
    made = form.make(loss.expression, **checked)
    return Loss.of(made, **{**loss.keywords, **keywords})


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
    return _wrapped(Normalized, loss, keywords)


def symmetrize(loss: Loss | MatrixFunction, **keywords: Any) -> Loss:
    r"""The loss less its mean over labels: symmetric, so robust to symmetric noise, for any loss.

    .. math:: L(f(x), y) - \tfrac{1}{K} \sum_j L(f(x), j)

    Of cross entropy it is the unhinged loss on logits.

    >>> from noiseproof import parse
    >>> symmetrize(parse("ce"))
    Unhinged()
    """
    return _wrapped(Symmetrized, loss, keywords)


def negative(loss: Loss, **keywords: Any) -> Loss:
    r"""The normalized negative form of an active loss, which is passive and robust (ANL).

    .. math:: 1 - (A - L(p_y)) \,/ \sum_k (A - L(p_k)), \quad A = L(10^{-7})

    >>> from noiseproof import parse
    >>> negative(parse("gce"))
    Loss('negative(gce)')
    """
    return _wrapped(Negative, loss, keywords)


def epsilon_softmax(loss: Loss | MatrixFunction, *, m: float = 1e5, **keywords: Any) -> Loss:
    r"""The loss of p' = (p + m e_argmax) / (1 + m), nearly one-hot, in place of p.

    p' is at least 1e-8, below which there is no gradient; that floor is part of the method (Wang et
    al., epsilon-Softmax: Approximating One-Hot Vectors for Mitigating Label Noise, NeurIPS 2024).

    >>> from noiseproof import parse
    >>> 0.01 * epsilon_softmax(parse("ce"), m=1e5) + 5 * parse("mae")
    Loss('0.01*epsilon_softmax(ce, m=100000) + 5*mae')
    """
    return _wrapped(EpsilonSoftmax, loss, keywords, m=m)


def logit_clip(loss: Loss | MatrixFunction, *, tau: float = 1.0, **keywords: Any) -> Loss:
    """The loss of logits that are scaled down to the length tau where they are longer.

    It bounds any loss (Wei et al., Mitigating Memorization of Noisy Labels by Clipping the Model
    Prediction, ICML 2023).

    >>> from noiseproof import parse
    >>> logit_clip(parse("ce"), tau=2)
    Loss('logit_clip(ce, tau=2)')
    """
    return _wrapped(LogitClipped, loss, keywords, tau=tau)


def bootstrap(
    loss: Loss | MatrixFunction, beta: float = 0.95, *, hard: bool = False, **keywords: Any
) -> Loss:
    r"""The loss at a label that is mixed with the network's own prediction.

    .. math:: \beta L(f, y) + (1 - \beta) \sum_k p_k L(f, k)

    or, hard, beta L(f, y) + (1 - beta) L(f, argmax p) (Reed et al., Training Deep Neural Networks
    on Noisy Labels with Bootstrapping, ICLR 2015, with beta 0.95 soft and 0.8 hard).

    >>> from noiseproof import parse
    >>> bootstrap(parse("ce"), 0.8, hard=True)
    Loss('bootstrap(ce, beta=0.8, hard=1)')
    """
    return _wrapped(Bootstrapped, loss, keywords, beta=beta, hard=float(hard))


def forward_correction(loss: Loss | MatrixFunction, T: Any, **keywords: Any) -> Loss:
    """The loss of T'p, the probabilities of the labels that are given, in place of p.

    ``T[i, j]`` is the probability that true class i is given as j; it becomes a buffer of the loss
    (Patrini et al., Making Deep Neural Networks Robust to Label Noise, CVPR 2017).
    """
    return _corrected(ForwardCorrected, loss, T, keywords)


def backward_correction(loss: Loss | MatrixFunction, T: Any, **keywords: Any) -> Loss:
    """The loss whose mean over the labels that are given is the loss at the true one.

    It is the sum over k of (T^-1)[y, k] L(f, k), and can be negative (Patrini et al., CVPR 2017).
    """
    matrix = Transition(T).T
    if extremes(matrix) is not None and torch.linalg.matrix_rank(matrix.double()) < len(matrix):
        raise ValueError("T has no inverse: the labels given do not tell all classes apart")
    return _corrected(BackwardCorrected, loss, T, keywords)


def _corrected(
    form: type[ForwardCorrected] | type[BackwardCorrected],
    loss: Loss | MatrixFunction,
    T: Any,
    keywords: Mapping[str, Any],
) -> Loss:
    if not isinstance(loss, Loss):
        loss = from_function(loss)
    return Loss.of(form(loss.expression, Transition(T)), **{**loss.keywords, **keywords})


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
    needed = _needed(function)
    if needed > 1:
        raise TypeError(
            f"{shown} takes {needed} arguments; a function of the logits [N, K] alone is needed, "
            "which gives the loss of every class were it the label, [N, K]"
        )
    return Loss.of(Custom(function, shown), **keywords)


def _needed(function: Callable[..., Any]) -> int:
    """How many arguments a call must give, or one where nobody can tell."""
    try:
        called = function.forward if isinstance(function, torch.nn.Module) else function
        parameters = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):  # a function in C
        return 1
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in plain and p.default is inspect.Parameter.empty for p in parameters)


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
