"""The losses as functions, as in ``torch.nn.functional``.

Each takes ``(logits, target, weight=None)``, as ``torch.nn.functional.cross_entropy`` does, and by
keyword the other arguments of the class of that name and ``sample_weight``:
``normalized_focal_loss(logits, target, gamma=2, reduction="none")``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, cast, overload

from torch import Tensor

from . import losses
from .losses._conventions import check_keywords, evaluate, named_arguments
from .losses._module import KEYWORDS

P = ParamSpec("P")


class LossFunction(Protocol[P]):
    """The function of a class, for type checkers. With sample weights, keywords are not checked:
    a ``ParamSpec`` cannot be extended by a keyword.
    """

    @overload
    def __call__(
        self, logits: Tensor, target: Tensor, /, *args: P.args, **kwargs: P.kwargs
    ) -> Tensor: ...
    @overload
    def __call__(
        self,
        logits: Tensor,
        target: Tensor,
        /,
        weight: Tensor | None = None,
        *,
        sample_weight: Tensor | None,
        **kwargs: Any,
    ) -> Tensor: ...


def _function_of(loss: Callable[P, losses.Loss]) -> LossFunction[P]:
    """The function of a declared class: the same computation without a module."""
    declared: Any = loss

    def function(
        logits: Tensor,
        target: Tensor,
        *weight: Any,
        sample_weight: Tensor | None = None,
        **by_name: Any,
    ) -> Tensor:
        arguments = named_arguments(weight, by_name, declared.declared_hyper, call)
        keywords = {name: arguments.pop(name, default) for name, default in KEYWORDS.items()}
        expression = declared.expression_of(**arguments)
        keywords["weight"] = check_keywords(**keywords)
        return evaluate(expression, logits, target, sample_weight=sample_weight, **keywords)

    function.__signature__ = _signature_of(declared)  # type: ignore[attr-defined]
    snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in declared.__name__).lstrip("_")
    call = f"{snake}(logits, target, "
    function.__name__ = function.__qualname__ = snake
    function.__doc__ = (
        f"The function of :class:`noiseproof.{declared.__name__}`.\n\n{_description(declared)}"
    )
    return cast(LossFunction[P], function)


def _signature_of(declared: Any) -> inspect.Signature:
    first = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for name in ("logits", "target")
    ]
    last = inspect.Parameter("sample_weight", inspect.Parameter.KEYWORD_ONLY, default=None)
    return inspect.Signature([*first, *declared.__signature__.parameters.values(), last])


def _description(declared: Any) -> str:
    return inspect.cleandoc(declared.__doc__ or "").split("\n\n>>>")[0]


cross_entropy = _function_of(losses.CrossEntropy)
focal_loss = _function_of(losses.FocalLoss)
generalized_cross_entropy = _function_of(losses.GeneralizedCrossEntropy)
mean_absolute_error = _function_of(losses.MeanAbsoluteError)
reverse_cross_entropy = _function_of(losses.ReverseCrossEntropy)
symmetric_cross_entropy = _function_of(losses.SymmetricCrossEntropy)
normalized_cross_entropy = _function_of(losses.NormalizedCrossEntropy)
normalized_focal_loss = _function_of(losses.NormalizedFocalLoss)
normalized_generalized_cross_entropy = _function_of(losses.NormalizedGeneralizedCrossEntropy)
normalized_mean_absolute_error = _function_of(losses.NormalizedMeanAbsoluteError)
normalized_reverse_cross_entropy = _function_of(losses.NormalizedReverseCrossEntropy)
asymmetric_exponential = _function_of(losses.AsymmetricExponential)
asymmetric_generalized_cross_entropy = _function_of(losses.AsymmetricGeneralizedCrossEntropy)
asymmetric_mean_squared_error = _function_of(losses.AsymmetricMeanSquaredError)
asymmetric_unhinged = _function_of(losses.AsymmetricUnhinged)
bi_tempered = _function_of(losses.BiTempered)
jensen_shannon = _function_of(losses.JensenShannon)
label_distributionally_robust = _function_of(losses.LabelDistributionallyRobust)
normalized_negative_cross_entropy = _function_of(losses.NormalizedNegativeCrossEntropy)
normalized_negative_focal_loss = _function_of(losses.NormalizedNegativeFocalLoss)
partially_huberised_cross_entropy = _function_of(losses.PartiallyHuberisedCrossEntropy)
taylor_cross_entropy = _function_of(losses.TaylorCrossEntropy)
truncated_generalized_cross_entropy = _function_of(losses.TruncatedGeneralizedCrossEntropy)
unhinged = _function_of(losses.Unhinged)
