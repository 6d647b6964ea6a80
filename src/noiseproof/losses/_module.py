"""A loss as a module: an expression, and the conventions by which it is called.

:class:`Loss` is the type of every loss: a declared class, a sum, a normalized function of the user.
:class:`SeparableLoss` is the base class of a declared loss, :class:`NormalizedLoss` that of a named
normalized form. Subclassing either registers the loss.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

import torch
from torch import Tensor, nn

from .._errors import UsageError, UsageTypeError
from ..syntax import SIGNATURES, Hyper, Signature, check_all, declare, hyper, is_loss_name, number
from ._conventions import Reduction, as_batch, check_keywords, evaluate, named_arguments
from ._expression import Atom, Expression, Kind, MatrixAtom, combine
from ._forms import Form, Negative, Normalized, Symmetrized
from ._prediction import Prediction

KEYWORDS: Mapping[str, Any] = {
    "weight": None,
    "ignore_index": -100,
    "reduction": "mean",
    "label_smoothing": 0.0,
}
"""The keywords of ``torch.nn.CrossEntropyLoss`` that every loss takes, with their defaults."""


class Loss(nn.Module):
    """A drop-in replacement for ``torch.nn.CrossEntropyLoss``, and the base class of every loss.

    Made by a declared class, by :func:`parse`, by :func:`normalize`, or by adding and scaling
    other losses; ``str(loss)`` is the text that parses back to it. The keywords ``weight``,
    ``ignore_index``, ``reduction`` and ``label_smoothing`` of every loss are those below.

    Args:
        expression: what the loss computes; an immutable value.
        weight: a weight for each class, [K], that multiplies L(f, j) of label j. A buffer.
            Default: none.
        ignore_index: samples with this label count neither in the loss nor in the mean.
            Default: -100.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``, as in torch. Default: ``"mean"``.
        label_smoothing: the part of the label, 0 to 1, that is spread evenly over all K classes.
            Default: 0.

    Shape:
        - logits: [K], [N, K] or [N, K, d1, ...], of any floating-point type. Half precision is
          computed in float32 and gives a float32 loss.
        - target: class indices of any integer type, [], [N] or [N, d1, ...]; or probabilities
          of the shape of the logits. The loss at probabilities q is the expectation
          sum_j q_j L(f, j), which for MAE is not sum_k abs(p_k - q_k).
        - sample_weight: [N], or the shape of the class indices; by keyword alone. The mean is the
          weighted mean: a sample of weight 2 counts as the same sample twice, one of weight 0 not
          at all.

    Shapes and dtypes are always checked. Values (a class index out of range, a negative weight) are
    checked only for CPU tensors in eager mode: on a GPU the check would wait for the device, and
    compiled or vmapped code has no values to check.
    """

    weight: Tensor | None

    def __init__(
        self,
        expression: Expression,
        *,
        weight: Tensor | Sequence[float] | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        self.expression = expression
        self.register_buffer(
            "weight", check_keywords(weight, ignore_index, reduction, label_smoothing)
        )
        self.ignore_index = int(ignore_index)
        self.reduction: Reduction = reduction
        self.label_smoothing = float(label_smoothing)
        modules = [f for f in expression.functions() if isinstance(f, nn.Module)]
        if modules:  # the user's functions with parameters or buffers become submodules
            self.functions = nn.ModuleList(modules)

    def forward(
        self, logits: Tensor, target: Tensor, *, sample_weight: Tensor | None = None
    ) -> Tensor:
        return evaluate(
            self.expression,
            logits,
            target,
            sample_weight=sample_weight,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )

    if TYPE_CHECKING:  # nn.Module.__call__ is untyped

        def __call__(
            self, logits: Tensor, target: Tensor, *, sample_weight: Tensor | None = None
        ) -> Tensor: ...

    def per_class(self, logits: Tensor) -> Tensor:
        """The matrix L(f(x), j) of the loss for each label j, shaped like the logits."""
        matrix = self.expression.per_class(Prediction(as_batch(logits)))
        return matrix.squeeze(0) if logits.dim() == 1 else matrix

    @property
    def kind(self) -> Kind:
        """``"active"``, ``"passive"`` or, for a user's function, ``"undetermined"``."""
        return self.expression.kind

    @property
    def keywords(self) -> dict[str, Any]:
        """``weight``, ``ignore_index``, ``reduction`` and ``label_smoothing`` of this loss."""
        return {name: getattr(self, name) for name in KEYWORDS}

    @staticmethod
    def of(expression: Expression, **keywords: Any) -> Loss:
        """The module of an expression; of its declared class, if there is one."""
        cls = Loss
        if isinstance(expression, Atom | MatrixAtom):
            cls = expression.loss
        elif isinstance(expression, Form):
            cls = expression.declared_class or Loss
        module = cls.__new__(cls)
        Loss.__init__(module, expression, **keywords)
        return module

    def __add__(self, other: Loss) -> Loss:
        if isinstance(other, Loss):
            return self._combined(1.0, other)
        return NotImplemented

    def __radd__(self, other: int) -> Loss:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # sum([a, b])

    def __sub__(self, other: Loss) -> Loss:
        return self._combined(-1.0, other) if isinstance(other, Loss) else NotImplemented

    def __mul__(self, factor: float) -> Loss:
        if isinstance(factor, (Loss, Tensor)):
            return NotImplemented
        if not isinstance(factor, numbers.Real) or isinstance(factor, bool):
            raise UsageTypeError(f"a loss is scaled by a number; it was {factor!r:.60}")
        return Loss.of(combine((float(factor), self.expression)), **self.keywords)

    __rmul__ = __mul__

    def __neg__(self) -> Loss:
        return self * -1.0

    def _combined(self, sign: float, other: Loss) -> Loss:
        for name, value in self.keywords.items():
            if not _equal(value, other.keywords[name]):
                raise UsageError(
                    f"{self} and {other} cannot be added: {name} is {value!r} for one and "
                    f"{other.keywords[name]!r} for the other; the keywords belong to the whole sum"
                )
        return Loss.of(combine((1.0, self.expression), (sign, other.expression)), **self.keywords)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Loss):
            return NotImplemented
        same = (_equal(value, other.keywords[name]) for name, value in self.keywords.items())
        return self.expression == other.expression and all(same)

    # By identity, although == is by value: nn.Module keeps visited modules in a set, and would
    # otherwise skip one of two equal losses in .to(), .apply() or .state_dict().
    __hash__ = nn.Module.__hash__

    def __str__(self) -> str:
        return str(self.expression)

    def __repr__(self) -> str:
        changed = [
            f"{name}={value!r}"
            for name, value in self.keywords.items()
            if not _equal(value, KEYWORDS[name])
        ]
        return f"{type(self).__name__}({', '.join([*self._repr_arguments(), *changed])})"

    def _repr_arguments(self) -> list[str]:
        return [repr(str(self))]


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.device == b.device and torch.equal(a, b)
    return a is b or (not isinstance(a, Tensor) and not isinstance(b, Tensor) and bool(a == b))


def argument(*, default: Any, kw_only: bool) -> Any:
    """For type checkers alone: an argument of a declared loss that is no hyper-parameter."""
    return default


@dataclass_transform(kw_only_default=True, field_specifiers=(hyper, argument))
class _Declared(Loss):
    """A loss with a name. The hyper-parameters in the class body become keyword-only arguments."""

    name: ClassVar[str] = ""
    formula: ClassVar[str] = ""
    reference: ClassVar[str] = ""
    listed: ClassVar[bool] = True  # in tables and messages; False for what only recipes use
    declared_hyper: ClassVar[Mapping[str, Hyper]] = {}

    def __init_subclass__(
        cls,
        *,
        name: str = "",
        formula: str = "",
        reference: str = "",
        listed: bool = True,
        **rest: Any,
    ) -> None:
        super().__init_subclass__(**rest)
        cls.declared_hyper = {
            k: v
            for base in reversed(cls.__mro__)
            for k, v in vars(base).items()
            if isinstance(v, Hyper)
        }
        cls.__signature__ = _signature(cls.declared_hyper)  # type: ignore[attr-defined]
        if name:
            cls.name, cls.formula, cls.reference, cls.listed = name, formula, reference, listed
            register_name(name, cls)

    def __init__(self, *weight: Any, **by_name: Any) -> None:
        call = f"{type(self).__name__}("
        arguments = named_arguments(weight, by_name, self.declared_hyper, call)
        keywords = {n: arguments.pop(n) for n in KEYWORDS if n in arguments}
        super().__init__(self.expression_of(**arguments), **keywords)

    @classmethod
    def expression_of(cls, **hyper: Any) -> Expression:
        """The expression of this loss with these hyper-parameters, checked."""
        raise NotImplementedError

    @property
    def hyperparameters(self) -> dict[str, float]:
        """The hyper-parameters of this loss by name, defaults filled in."""
        atom = self.expression
        atom = atom.inner if isinstance(atom, Form) else atom
        assert isinstance(atom, Atom | MatrixAtom)
        return dict(atom.hyper)

    def _repr_arguments(self) -> list[str]:
        return [f"{name}={number(value)}" for name, value in self.hyperparameters.items()]


def _signature(hyper: Mapping[str, Hyper]) -> inspect.Signature:
    """``weight``, also by position as in torch, then hyper-parameters and the other keywords."""
    names = {"weight": None, **{n: h.default for n, h in hyper.items()}, **KEYWORDS}
    kinds = {"weight": inspect.Parameter.POSITIONAL_OR_KEYWORD}
    return inspect.Signature(
        [
            inspect.Parameter(n, kinds.get(n, inspect.Parameter.KEYWORD_ONLY), default=default)
            for n, default in names.items()
        ]
    )


class _TypedKeywords(_Declared):
    """The keywords of every loss, for type checkers, which read a declaration as a dataclass."""

    if TYPE_CHECKING:
        weight: Tensor | None = argument(default=None, kw_only=False)
        ignore_index: int = -100
        reduction: Reduction = "mean"
        label_smoothing: float = 0.0


class SeparableLoss(_TypedKeywords):
    """The base class of declared losses that are sums over classes.

    With p = softmax(logits),

        L(f, y) = - logarithm * log p_y + complement * (1 - p_y)
                  + target(p_y) + sum over k != y of other(p_k)

    A subclass defines static methods that take the hyper-parameters by keyword:

    - ``summand(p, q)``: the term of class k as its paper writes it, at p_k and the one-hot q_k. The
      tests compare the other methods with it, and it determines whether the loss is active.
    - those of the four parts that it has: ``logarithm()`` and ``complement()`` return numbers,
      ``target(log_p)`` and ``other(log_p)`` functions of log p, which neither under- nor overflows.
      A loss that depends on the number of classes has a parameter ``K`` in all of them. They use
      bare names such as ``exp`` and ``where``, so that the tests can bind the same source to
      another array library.
    """

    summand: ClassVar[Callable[..., Tensor]]
    logarithm: ClassVar[Callable[..., float] | None] = None
    complement: ClassVar[Callable[..., float] | None] = None
    target: ClassVar[Callable[..., Tensor] | None] = None
    other: ClassVar[Callable[..., Tensor] | None] = None
    takes_num_classes: ClassVar[bool] = False  # computed: whether its methods have a parameter K
    forms: ClassVar[dict[type[Form], type[FormLoss]]] = {}  # its named forms

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls.forms = {}
        if "summand" in vars(cls):
            cls.takes_num_classes = "K" in inspect.signature(cls.summand).parameters

    @classmethod
    def expression_of(cls, **hyper: Any) -> Expression:
        if not cls.name:
            raise UsageTypeError(
                f"give the loss a name: class {cls.__name__}(SeparableLoss, name=...)"
            )
        return Atom(cls, check_all(cls.declared_hyper, hyper, cls.name))


class MatrixLoss(_TypedKeywords):
    """The base class of declared losses that are not sums over classes.

    A subclass defines a static method ``matrix(logits)``, from logits [N, K, ...] to L(f, j),
    [N, K, ...], that takes the hyper-parameters by keyword. Its kind is undetermined.
    """

    matrix: ClassVar[Callable[..., Tensor]]

    @classmethod
    def expression_of(cls, **hyper: Any) -> Expression:
        return MatrixAtom(cls, check_all(cls.declared_hyper, hyper, cls.name))


class FormLoss(_TypedKeywords):
    """The base class of named forms of a declared loss, which is given as ``of=Another``."""

    form: ClassVar[type[Form]]
    inner: ClassVar[type[SeparableLoss]]

    def __init_subclass__(cls, *, of: type[SeparableLoss] | None = None, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if of is not None:
            cls.inner = of
            of.forms[cls.form] = cls
            if cls.name:
                known = SIGNATURES[cls.name]
                declare(cls.name, replace(known, form=cls.form.word, of=of.name))

    @classmethod
    def expression_of(cls, **hyper: Any) -> Expression:
        check_all(cls.inner.declared_hyper, hyper, cls.name)  # so that messages have this name
        return cls.form(cls.inner.expression_of(**hyper))


class NormalizedLoss(FormLoss):
    """The base class of named losses ``normalize(another)``."""

    form = Normalized


class SymmetrizedLoss(FormLoss):
    """The base class of named losses ``symmetrize(another)``."""

    form = Symmetrized


class NegativeLoss(FormLoss):
    """The base class of named losses ``negative(another)``."""

    form = Negative


declared_losses: dict[str, Any] = {}  # by name in texts: declared classes and users' functions


def register_name(name: str, loss: Any) -> None:
    """Register a declared class or a user's function under a name for :func:`parse`."""
    if not is_loss_name(name):
        raise UsageError(f"the name of a loss is lower-case letters and digits; it was {name!r}")
    known = declared_losses.get(name)
    if known is not None and _qualified_name(known) != _qualified_name(loss):
        raise UsageError(f"the name {name!r} is taken by {_qualified_name(known)}; choose another")
    declared_losses[name] = loss  # run again, as in a notebook, a definition replaces the first
    ours = loss.__module__.startswith(__name__.partition(".")[0] + ".")
    hyper, listed = getattr(loss, "declared_hyper", {}), getattr(loss, "listed", True)
    module = "" if ours else str(loss.__module__)
    declare(
        name,
        Signature(hyper, user=not ours, listed=listed, module=module, class_name=loss.__name__),
    )


def listed_losses() -> dict[str, Any]:
    """The losses to list: without those that only recipes use."""
    return {name: loss for name, loss in declared_losses.items() if SIGNATURES[name].listed}


def _qualified_name(loss: Any) -> str:
    return f"{loss.__module__}.{loss.__qualname__}"
