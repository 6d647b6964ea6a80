"""A scikit-learn classifier for labels that are partly wrong.

>>> from sklearn.datasets import load_wine
>>> from noiseproof.integrations.sklearn import RobustClassifier
>>> X, y = load_wine(return_X_y=True)
>>> classifier = RobustClassifier(loss="nce + rce", random_state=0).fit(X, y)
>>> classifier.predict_proba(X[:2]).shape
(2, 3)
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import prod
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from .. import models, syntax
from .._devices import named_device
from .._errors import UsageError, require
from .._usual import usual_torch
from ..losses import Loss, parse
from ..losses._wrappers import check_own_loss
from ._loop import Samples, make_optimizer, per_sample, predict, train

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils import check_array, check_random_state, compute_class_weight
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    require("sklearn", "sklearn", "RobustClassifier")  # says how to install it
    raise

__all__ = ["RobustClassifier"]

_PREFIX = "loss__"
_ON_CPU = "set_params(device='cpu')"


class RobustClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A neural network that is trained with a loss for wrong labels.

    Args:
        module: the network: ``"mlp"``, a perceptron with ReLU; another name of
            `noiseproof.models.names`; a class or function that `noiseproof.models.from_factory`
            calls with the number of classes and the shape of an input; or a ``torch.nn.Module``,
            whose copy is trained from the weights that it has. It gives logits, [N, K].
        loss: a text for `noiseproof.parse`; a `noiseproof.Loss`; a function of logits and labels;
            or ``"auto"``, which asks `noiseproof.tools.recommend`. The numbers in a text are
            parameters of their own: ``loss__rho`` of ``"gce"``; of ``"nce+rce"`` the weights
            ``loss__nce`` and ``loss__rce`` (or ``loss__alpha``, ``loss__beta``), and ``loss__A``.
        hidden_layer_sizes: the width of each hidden layer of ``"mlp"``.
        standardize: whether each feature is brought to mean 0 and deviation 1 first, as
            ``StandardScaler`` does; None does so for 2-D inputs.
        epochs: how often the training set is seen.
        batch_size: the most samples of a step; batches are of equal size. ``"auto"`` is 200, and of
            fewer than 600 samples a third, so that small tables get enough steps.
        lr: the first learning rate; it falls to 0 along a cosine.
        optimizer: ``"adamw"``, ``"adam"``, ``"sgd"`` (momentum 0.9), or a class of ``torch.optim``.
        weight_decay: of the optimizer.
        class_weight: ``"balanced"``, or a weight for each label; robust losses need it where
            classes are of very different size. ``loss="auto"`` chooses if it is None.
        early_stopping: whether to hold out a part of the training set, end when the accuracy on it
            falls, and keep the best epoch. Its labels are as noisy as the others, so it wants some
            hundreds of samples.
        validation_fraction: the part that is held out.
        n_iter_no_change: how many epochs below the best are waited for.
        warm_start: whether ``fit`` continues with the network of the last one.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"``, a GPU where there is one.
        random_state: of the first weights, the order of samples and the held-out part.
        verbose: whether to show progress.

    Attributes:
        classes_: the labels.
        module_: the trained network.
        criterion_: the loss, as it was called.
        n_iter_: the epochs that were trained.
        loss_curve_: the mean loss of each epoch.
        validation_scores_: the accuracy on the held-out part by epoch, or None.
        recommendation_: what ``loss="auto"`` was answered.
        scaler_: the fitted ``StandardScaler``, or None.
        n_features_in_: the number of features.
        feature_names_in_: their names, where X was a data frame.

    The network computes in float64 where X has it and the module is ``"mlp"`` on a CPU, as
    scikit-learn's does, otherwise in float32 or in the type that a module of yours has.
    """

    def __init__(
        self,
        module: str | nn.Module | Callable[..., nn.Module] = "mlp",
        *,
        loss: str | Loss | Callable[[Tensor, Tensor], Tensor] = "nce+rce",
        hidden_layer_sizes: int | Sequence[int] = (256,),
        standardize: bool | None = None,
        epochs: int = 100,
        batch_size: int | Literal["auto"] = "auto",
        lr: float = 1e-3,
        optimizer: str | Callable[..., torch.optim.Optimizer] = "adamw",
        weight_decay: float = 0.01,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
        device: str = "cpu",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.module = module
        self.loss = loss
        self.hidden_layer_sizes = hidden_layer_sizes
        self.standardize = standardize
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.optimizer = optimizer
        self.weight_decay = weight_decay
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # Parameters of the loss

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; with ``deep`` also the numbers in the loss, as ``loss__name``."""
        found: dict[str, Any] = super().get_params(deep=deep)
        text = _text(self.loss)
        if deep and text is not None:
            with contextlib.suppress(UsageError):  # said when it is fitted
                found |= {_PREFIX + name: n for name, n in syntax.parameters(text).items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``loss__name`` rewrites the loss with another number."""
        inside = {k.removeprefix(_PREFIX): params[k] for k in params if k.startswith(_PREFIX)}
        super().set_params(**{k: v for k, v in params.items() if not k.startswith(_PREFIX)})
        if inside:
            text = _text(self.loss)
            if text is None:
                raise UsageError(
                    f"{_PREFIX}{next(iter(inside))} needs a loss with that parameter, given as a "
                    f"text such as 'gce'; it was {self.loss!r}"
                )
            text = syntax.with_parameters(text, inside)
            self.loss = parse(text, **self.loss.keywords) if isinstance(self.loss, Loss) else text
        return self

    # Fitting

    @usual_torch()
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the network.

        Args:
            X: the inputs, [N, D], or [N, C, H, W] and so on for a module that takes these.
            y: a label for each, of any type.
            sample_weight: a weight for each; a sample of weight 2 counts as two, of 0 as none.
        """
        self._check_parameters()
        before = (getattr(self, "classes_", ()), getattr(self, "input_shape_", None))
        X, y, weight = self._validated(X, y, sample_weight)
        random = check_random_state(self.random_state)
        seed = int(random.randint(np.iinfo(np.int32).max))
        device = named_device(self.device, _ON_CPU)
        self.criterion_, class_weight = self._criterion(y)
        if isinstance(self.criterion_, nn.Module):
            self.criterion_ = self.criterion_.to(device)
        same = np.array_equal(before[0], self.classes_) and before[1] == self.input_shape_
        if not (self.warm_start and same and hasattr(self, "module_")):
            self.scaler_ = self._scaler(X, weight)
            self.module_ = self._network(seed).to(device, _dtype(self.module, X, device))
        weight = weight * _class_weights(class_weight, self.classes_, y, weight)[y]
        parts = [np.arange(len(X))]
        if self.early_stopping:
            stratify = y if np.unique(y, return_counts=True)[1].min() > 1 else None
            parts = train_test_split(
                parts[0], test_size=self.validation_fraction, stratify=stratify, random_state=random
            )
        samples, *held_out = (self._samples(X[part], y[part], weight[part]) for part in parts)
        gpus = [device] if device.type == "cuda" else []
        with torch.random.fork_rng(devices=gpus):  # for dropout and the like
            torch.default_generator.manual_seed(seed)
            if gpus:
                torch.cuda.manual_seed(seed)
            progress = train(
                self.module_,
                self.criterion_,
                samples,
                make_optimizer(self.optimizer, self.module_, self.lr, self.weight_decay),
                epochs=self.epochs,
                batch_size=_batch_size(self.batch_size, len(samples.x)),
                generator=torch.Generator().manual_seed(seed),
                held_out=held_out[0] if held_out else None,
                patience=self.n_iter_no_change,
                verbose=bool(self.verbose),
            )
        self.loss_curve_ = progress.loss_curve
        self.validation_scores_ = progress.validation_scores if held_out else None
        self.n_iter_ = len(self.loss_curve_)
        return self

    def _validated(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Inputs, indices of ``classes_`` and weights, without the samples of weight 0."""
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], allow_nd=True)
        check_classification_targets(y)
        self.classes_, y = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise UsageError(
                "a classifier needs samples of two classes or more; y has one class, "
                f"{self.classes_.tolist()[0]!r}"
            )
        self.input_shape_: tuple[int, ...] = X.shape[1:]
        weight = _sample_weights(sample_weight, len(X))
        kept = weight > 0
        return (X, y, weight) if kept.all() else (X[kept], y[kept], weight[kept])

    def _check_parameters(self) -> None:
        sizes = () if self.batch_size == "auto" else ("batch_size",)
        for name in ("epochs", *sizes, "n_iter_no_change"):
            value: Any = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise UsageError(f"{name} must be a whole number from 1; it was {value!r}")
        for name in ("lr", "weight_decay"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 <= float(value) < float("inf"):
                raise UsageError(f"{name} must be a number from 0; it was {value!r}")

    def _criterion(self, y: np.ndarray[Any, Any]) -> tuple[Any, Any]:
        """The loss to call, and the class weights to use with it."""
        loss, class_weight = self.loss, self.class_weight
        if isinstance(loss, str) and loss == "auto":
            from .. import tools

            self.recommendation_ = tools.recommend(self.classes_[y])
            loss = self.recommendation_.loss
            if class_weight is None:
                class_weight = self.recommendation_.class_weight
        if isinstance(loss, str):
            return parse(loss, reduction="none"), class_weight
        if isinstance(loss, Loss):
            return per_sample(loss), class_weight
        if callable(loss):
            check_own_loss(loss)
            return copy.deepcopy(loss) if isinstance(loss, nn.Module) else loss, class_weight
        raise UsageError(
            f"loss is a text such as 'nce+rce', 'auto', a noiseproof.Loss or a function of logits "
            f"and labels; it was {loss!r}"
        )

    def _scaler(self, X: np.ndarray[Any, Any], weight: np.ndarray[Any, Any]) -> Any:
        wanted = X.ndim == 2 if self.standardize is None else self.standardize
        if wanted and X.ndim != 2:
            raise UsageError(
                f"standardize=True is for tables, [N, D], and X is {list(X.shape)}; "
                "scale X before, and leave standardize out"
            )
        return StandardScaler().fit(X, sample_weight=weight) if wanted else None

    def _network(self, seed: int) -> nn.Module:
        given, shape, classes = self.module, self.input_shape_, len(self.classes_)
        name = given if isinstance(given, str) else getattr(given, "__name__", "")
        if isinstance(given, nn.Module):
            network, name = models.copy_of(given), type(given).__name__
        elif isinstance(given, str) and given.lower() == "mlp":
            make = functools.partial(_mlp, hidden_layer_sizes=self._hidden_layer_sizes())
            network = models.from_factory(make, classes, shape, seed=seed, name=name)
        elif isinstance(given, str):
            network = models.build(given, classes, shape=shape, seed=seed)
        else:
            network = models.from_factory(given, classes, shape, seed=seed)
        name = name or type(network).__name__
        models.check_network(network, name, classes, shape, seed=seed)
        if not any(p.requires_grad for p in network.parameters()):
            raise UsageError(f"module {name} has no parameters to train")
        return network

    def _hidden_layer_sizes(self) -> tuple[int, ...]:
        given = self.hidden_layer_sizes
        sizes = tuple(given) if isinstance(given, Iterable) else (given,)
        if not all(isinstance(size, Integral) and size > 0 for size in sizes):
            raise UsageError(f"hidden_layer_sizes are whole numbers from 1; they were {given!r}")
        return sizes

    # Predicting

    def decision_function(self, X: Any) -> np.ndarray[Any, Any]:
        """The logits, [N, K]; of two classes that of the second minus that of the first, [N]."""
        logits = self._logits(X)
        found = logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits
        return found.numpy()

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """The probability of each class, [N, K], in the order of ``classes_``."""
        return self._logits(X).softmax(1).numpy()

    def predict_log_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """The logarithm of `predict_proba`, which does not become -inf."""
        return self._logits(X).log_softmax(1).numpy()

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The most probable label of each input."""
        found = self._logits(X).argmax(1).numpy()
        return self.classes_[found]  # type: ignore[no-any-return]

    def _logits(self, X: Any) -> Tensor:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], allow_nd=True, reset=False)
        if X.shape[1:] != self.input_shape_:
            raise UsageError(
                f"X is {list(X.shape)}, and {type(self).__name__} was fitted on inputs "
                f"[N, {', '.join(map(str, self.input_shape_))}]"
            )
        self.module_.to(named_device(self.device, _ON_CPU))  # it may have been fitted elsewhere
        return predict(self.module_, self._inputs(X)).cpu()

    def _inputs(self, X: np.ndarray[Any, Any]) -> Tensor:
        if self.scaler_ is not None:
            X = self.scaler_.transform(X)
        like = next(self.module_.parameters())
        return torch.tensor(X, dtype=like.dtype, device=like.device)

    def _samples(self, X: Any, y: Any, weight: np.ndarray[Any, Any]) -> Samples:
        x = self._inputs(X)
        equal = bool(np.all(weight == weight[0]))
        weights = None if equal else torch.tensor(weight / weight.mean()).to(x)
        return Samples(x, torch.tensor(y, device=x.device), weights)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        for name in ("module_", "criterion_"):  # so that a file is read where there is no GPU
            if isinstance(state.get(name), nn.Module):
                state[name] = models.copy_of(state[name]).cpu()
        return state


def _text(loss: Any) -> str | None:
    """The text that has the numbers of a loss, if it has one."""
    return str(loss) if isinstance(loss, Loss | str) and loss != "auto" else None


def _mlp(
    num_classes: int, input_shape: tuple[int, ...], hidden_layer_sizes: tuple[int, ...]
) -> nn.Module:
    layers: list[nn.Module] = [nn.Flatten()] if len(input_shape) > 1 else []
    sizes = (prod(input_shape), *hidden_layer_sizes)
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], num_classes))


def _batch_size(given: int | Literal["auto"], samples: int) -> int:
    return min(200, max(32, -(-samples // 3))) if given == "auto" else given


def _dtype(module: Any, X: np.ndarray[Any, Any], device: torch.device) -> torch.dtype | None:
    """What a network of ours computes in; None leaves one of the user's as it is."""
    if not isinstance(module, str):
        return None
    is_double = X.dtype == np.float64 and module.lower() == "mlp" and device.type == "cpu"
    return torch.float64 if is_double else torch.float32


def _sample_weights(given: Any, samples: int) -> np.ndarray[Any, Any]:
    if given is None:
        return np.ones(samples)
    weight = check_array(given, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weight.shape != (samples,):
        raise UsageError(f"sample_weight must be [{samples}]; its shape was {list(weight.shape)}")
    if (weight < 0).any() or not weight.any():
        raise UsageError("sample_weight must not be negative, nor zero for every sample")
    return weight  # type: ignore[no-any-return]


def _class_weights(
    given: Any, classes: np.ndarray[Any, Any], y: np.ndarray[Any, Any], weight: Any
) -> np.ndarray[Any, Any]:
    """A weight for each class, [K]. Balanced counts a sample of weight 2 as two."""
    if isinstance(given, str) and given == "balanced":
        counts = np.bincount(y, weights=weight, minlength=len(classes))
        return counts.sum() / (len(classes) * np.where(counts > 0, counts, np.inf))  # type: ignore[no-any-return]
    if given is not None and not isinstance(given, dict):
        raise UsageError(f"class_weight is 'balanced', a dict or None; it was {given!r}")
    found = compute_class_weight(given, classes=classes, y=classes[y])
    if (found < 0).any() or not found.any():
        raise UsageError(f"class_weight must not be negative, nor zero for all; it was {given!r}")
    return found  # type: ignore[no-any-return]
