"""Functions that make a loss from another loss, or from a function of logits."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from .._errors import UsageError, UsageTypeError, level_outside
from ..syntax import check_all
from ._expression import Custom
from ._forms import Form, Negative, Normalized, Symmetrized
from ._mapped import (
    BackwardCorrected,
    Bootstrapped,
    EpsilonSoftmax,
    ForwardCorrected,
    LogitClipped,
    TransitionMatrix,
)
from ._module import Loss, register_name
from ._prediction import extremes

MatrixFunction = Callable[[Tensor], Tensor]


def _apply_form(
    form: type[Form], loss: Loss | MatrixFunction, keywords: Mapping[str, Any], **hyper: float
) -> Loss:
    if not isinstance(loss, Loss):
        loss = from_function(loss)
    checked = dict(check_all(form.hyper, hyper, form.word))
    expression = form.make(loss.expression, **checked)
    return Loss.of(expression, **{**loss.keywords, **keywords})


def normalize(loss: Loss | MatrixFunction, **keywords: Any) -> Loss:
    r"""The normalized form of a loss, which is robust to symmetric label noise (Lemma 1).

    .. math:: L_{norm}(f(x), y) = L(f(x), y) \,/ \sum_j L(f(x), j)

    Args:
        loss: a loss of this package, or a function from logits [N, K] to the matrix L(f(x), j),
            [N, K], of the loss for each label j.
        keywords: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``. Default:
            those of ``loss``.

    Raises:
        UsageError: the loss can be negative, or its sum over labels can be 0. This is checked on
            extreme and random predictions now, and, for a function of yours, on every batch on the
            CPU in eager mode.

    >>> import torch
    >>> def distance(logits):  # |p - e_j|, the distance to each one-hot label
    ...     p = logits.softmax(1)
    ...     return (1 - 2 * p + p.square().sum(1, keepdim=True)).clamp(min=0).sqrt()
    >>> normalize(distance)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(0.2500)
    """
    return _apply_form(Normalized, loss, keywords)


def symmetrize(loss: Loss | MatrixFunction, **keywords: Any) -> Loss:
    r"""The loss minus its mean over labels: symmetric, so robust to symmetric noise.

    .. math:: L(f(x), y) - \tfrac{1}{K} \sum_j L(f(x), j)

    ``symmetrize(ce)`` is the unhinged loss on logits.

    Args:
        loss: as for :func:`normalize`.
        keywords: as for :func:`normalize`.

    >>> from noiseproof import parse
    >>> symmetrize(parse("ce"))
    Unhinged()
    """
    return _apply_form(Symmetrized, loss, keywords)


def negative(loss: Loss, **keywords: Any) -> Loss:
    r"""The normalized negative form of an active loss, which is passive and robust (ANL).

    .. math:: 1 - (A - L(p_y)) \,/ \sum_k (A - L(p_k)), \quad A = L(10^{-7})

    Args:
        loss: one active loss, such as ``ce``, ``fl`` or ``gce``.
        keywords: as for :func:`normalize`.

    >>> from noiseproof import parse
    >>> negative(parse("gce"))
    Loss('negative(gce)')
    """
    return _apply_form(Negative, loss, keywords)


def epsilon_softmax(loss: Loss | MatrixFunction, *, m: float = 1e5, **keywords: Any) -> Loss:
    r"""The loss of p' = (p + m e_argmax) / (1 + m), nearly one-hot, in place of p.

    p' is clamped to at least 1e-8, below which there is no gradient; this is part of the method
    (Wang et al., epsilon-Softmax: Approximating One-Hot Vectors for Mitigating Label Noise, NeurIPS
    2024).

    Args:
        loss: as for :func:`normalize`.
        m: weight of the most probable class, m >= 0; at 0 only the clamp is left. Default: 1e5.
        keywords: as for :func:`normalize`.

    >>> from noiseproof import parse
    >>> 0.01 * epsilon_softmax(parse("ce"), m=1e5) + 5 * parse("mae")
    Loss('0.01*epsilon_softmax(ce, m=100000) + 5*mae')
    """
    return _apply_form(EpsilonSoftmax, loss, keywords, m=m)


def logit_clip(loss: Loss | MatrixFunction, *, tau: float = 1.0, **keywords: Any) -> Loss:
    """The loss of logits whose Euclidean norm is clipped to tau.

    It bounds any loss (Wei et al., Mitigating Memorization of Noisy Labels by Clipping the Model
    Prediction, ICML 2023).

    Args:
        loss: as for :func:`normalize`.
        tau: largest norm of the logits of a sample, tau > 0. Default: 1.
        keywords: as for :func:`normalize`.

    >>> from noiseproof import parse
    >>> logit_clip(parse("ce"), tau=2)
    Loss('logit_clip(ce, tau=2)')
    """
    return _apply_form(LogitClipped, loss, keywords, tau=tau)


def bootstrap(
    loss: Loss | MatrixFunction, beta: float = 0.95, *, hard: bool = False, **keywords: Any
) -> Loss:
    r"""The loss at a mixture of the label and the prediction of the network.

    .. math:: \beta L(f, y) + (1 - \beta) \sum_k p_k L(f, k)

    or, hard, beta L(f, y) + (1 - beta) L(f, argmax p) (Reed et al., Training Deep Neural Networks
    on Noisy Labels with Bootstrapping, ICLR 2015, with beta 0.95 soft and 0.8 hard).

    Args:
        loss: as for :func:`normalize`.
        beta: weight of the label, 0 <= beta <= 1; at 1 the loss is unchanged. Default: 0.95.
        hard: whether to take the most probable class in place of the probabilities.
        keywords: as for :func:`normalize`.

    >>> from noiseproof import parse
    >>> bootstrap(parse("ce"), 0.8, hard=True)
    Loss('bootstrap(ce, beta=0.8, hard=1)')
    """
    return _apply_form(Bootstrapped, loss, keywords, beta=beta, hard=float(hard))


def forward_correction(loss: Loss | MatrixFunction, T: Any, **keywords: Any) -> Loss:
    """The loss of T'p, the probabilities of the noisy labels, in place of p.

    From Patrini et al., Making Deep Neural Networks Robust to Label Noise, CVPR 2017.

    Args:
        loss: as for :func:`normalize`.
        T: transition matrix, [K, K]: T[i, j] is the probability that true class i is labelled j. It
            becomes a buffer of the loss.
        keywords: as for :func:`normalize`.
    """
    return _apply_correction(ForwardCorrected, loss, T, keywords)


def backward_correction(loss: Loss | MatrixFunction, T: Any, **keywords: Any) -> Loss:
    """The loss whose expectation over noisy labels is the loss at the true label.

    It is the sum over k of (T^-1)[y, k] L(f, k), and can be negative (Patrini et al., CVPR 2017).
    The arguments are those of :func:`forward_correction`; T must have an inverse.
    """
    matrix = TransitionMatrix(T).T
    if extremes(matrix) is not None and torch.linalg.matrix_rank(matrix.double()) < len(matrix):
        raise UsageError("T has no inverse: the labels given do not tell all classes apart")
    return _apply_correction(BackwardCorrected, loss, T, keywords)


def _apply_correction(
    form: type[ForwardCorrected] | type[BackwardCorrected],
    loss: Loss | MatrixFunction,
    T: Any,
    keywords: Mapping[str, Any],
) -> Loss:
    if not isinstance(loss, Loss):
        loss = from_function(loss)
    return Loss.of(form(loss.expression, TransitionMatrix(T)), **{**loss.keywords, **keywords})


def from_function(function: MatrixFunction, *, name: str | None = None, **keywords: Any) -> Loss:
    """A loss from a function of logits [N, K] that gives L(f(x), j), [N, K].

    It is called like the declared losses, can be added to them and normalized.

    Args:
        function: from logits [N, K] to the matrix of the loss for each label j, [N, K].
        name: its name in ``str(loss)``. Default: that of the function. To make the text parse, use
            :func:`register`.
        keywords: ``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing``.
    """
    if isinstance(function, type) or not callable(function):
        raise UsageTypeError(
            f"a loss or a function of logits [N, K] is needed; it was {function!r}"
            + (": make an instance of it first" if isinstance(function, type) else "")
        )
    display_name = name or str(getattr(function, "__name__", type(function).__name__))
    num_args = num_required_args(function)
    if num_args > 1:
        raise UsageTypeError(
            f"{display_name} takes {num_args} arguments; a function of the logits [N, K] alone is "
            "needed, which gives the loss of every class were it the label, [N, K]"
        )
    return Loss.of(Custom(function, display_name), **keywords)


def num_required_args(function: Callable[..., Any]) -> int:
    """The number of arguments without a default; 1 where it is unknown."""
    try:
        called = function.forward if isinstance(function, torch.nn.Module) else function
        parameters = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):  # a function in C
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is inspect.Parameter.empty for p in parameters)


def check_own_loss(loss: Any) -> None:
    """Refuse a class where a loss is needed, and warn of parameters that a trainer leaves alone."""
    if isinstance(loss, type):
        raise UsageTypeError(
            f"the loss is the class {loss.__name__}: give an instance, {loss.__name__}()"
        )
    named = loss.named_parameters() if isinstance(loss, torch.nn.Module) else ()
    names = [name for name, p in named if p.requires_grad]
    if names:
        warnings.warn(
            f"the loss {type(loss).__name__} has parameters ({', '.join(names):.80}), which are "
            "not trained, as only the network's are: make them part of the network, or say with "
            "loss.requires_grad_(False) that they stay",
            stacklevel=level_outside(),
        )


def register(function: MatrixFunction) -> MatrixFunction:
    """Decorator that lets :func:`parse` read the name of a function as a loss.

    The function takes logits [N, K] and returns the matrix L(f(x), j), [N, K].

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
