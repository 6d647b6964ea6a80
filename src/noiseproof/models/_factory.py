"""Networks of the user's own: a function or a class that makes one, named or given."""

from __future__ import annotations

import contextlib
import copy
import importlib
import importlib.util
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from .._errors import MissingExtraError, UsageError, level_outside
from .._hints import nearest
from .._imports import LIBRARIES, cause, load, without_digest

Factory = Callable[..., nn.Module]
_CHANNELS = ("in_channels", "in_chans", "channels")
_VOCABULARY = ("vocab_size", "vocabulary")


def imported(
    name: str,
    num_classes: int,
    input_shape: Sequence[int],
    *,
    seed: int = 0,
    vocabulary: int = 0,
    folder: str = "",
    strict: bool = True,
) -> nn.Module:
    """The network that ``module:name`` makes; of ``torchvision`` and ``timm`` by its name there.

    Args:
        name: with or without a digest of the module.
        num_classes: as in `from_factory`.
        input_shape: as in `from_factory`.
        seed: as in `from_factory`.
        vocabulary: as in `from_factory`.
        folder: where the module is, if it is not found otherwise.
        strict: whether a module whose digest is another is an error, and not a warning.
    """
    library, _, rest = name.partition(":")
    if library in LIBRARIES:
        with _drawn_from(seed):
            return _is_network(_of_library(library, rest, num_classes, input_shape), name)
    factory = load(name, "model", folder=folder, strict=strict)
    return from_factory(
        factory, num_classes, input_shape, seed=seed, vocabulary=vocabulary,
        name=without_digest(name),
    )  # fmt: skip


def from_factory(
    factory: Factory,
    num_classes: int,
    input_shape: Sequence[int],
    *,
    seed: int = 0,
    vocabulary: int = 0,
    name: str = "",
) -> nn.Module:
    """The network that a function or a class makes for some data.

    It is called with those of ``num_classes``, ``in_channels`` (or ``in_chans``, ``channels``),
    ``image_size``, ``input_shape``, ``vocab_size`` and ``seed`` that its signature has; all its
    other parameters need defaults. torch's global generator is seeded while it is called, and then
    as it was before: equal seeds give equal networks, and others start differently.

    Args:
        factory: a function or a class.
        num_classes: the number of outputs.
        input_shape: of one sample: [C, H, W] of images, [D] of features, [L] of token ids.
        seed: of what it draws.
        vocabulary: the number of token ids, where inputs are such.
        name: to call it in errors.

    >>> def linear(num_classes, input_shape):
    ...     return nn.Sequential(nn.Flatten(), nn.Linear(input_shape.numel(), num_classes))
    >>> from_factory(linear, 10, (1, 8, 8))[1]
    Linear(in_features=64, out_features=10, bias=True)
    """
    name = name or str(getattr(factory, "__name__", type(factory).__name__))
    shape = torch.Size(input_shape)
    known: dict[str, Any] = {"num_classes": num_classes, "input_shape": shape, "seed": seed}
    known |= dict.fromkeys(_CHANNELS, shape[0]) if shape else {}
    known |= {"image_size": shape[1]} if len(shape) == 3 else {}
    known |= dict.fromkeys(_VOCABULARY, vocabulary) if vocabulary else {}
    arguments = _arguments(factory, known, name)
    with _drawn_from(seed):
        try:
            return _is_network(factory(**arguments), name)
        except (UsageError, MissingExtraError):
            raise
        except Exception as error:
            raise UsageError(f"model {name} cannot be made: {cause(error)}") from error


@torch.no_grad()
def check_network(
    network: nn.Module,
    name: str,
    num_classes: int,
    input_shape: Sequence[int],
    *,
    seed: int = 0,
    vocabulary: int = 0,
    may_have_more: bool = False,
    compute_dtype: torch.dtype | None = None,
) -> None:
    """Try a network on two inputs, in eval mode, so that a mistake is said at once.

    They are zeros, and of token ids ones, since zeros would be texts of no words. What a lazy layer
    draws then is drawn from the seed. A network that gives probabilities is warned of.

    Args:
        network: to try; its parameters stay as they are.
        name: what messages call it.
        num_classes: K.
        input_shape: of one input.
        seed: for lazy layers.
        vocabulary: of token ids; 0 for other inputs.
        may_have_more: whether it may give more than K logits, as one that was made for more
            classes than the labels have.
        compute_dtype: that it will compute in; None for float32.

    Raises:
        UsageError: it fails, or gives something else than logits [N, K].
    """
    first = next(network.parameters(), None)
    trained = [p for p in network.parameters() if p.requires_grad]
    if first is None or any(p.dtype != torch.get_default_dtype() for p in trained):
        return  # who keeps its weights has a word to say on these
    dtype = torch.int64 if vocabulary else torch.get_default_dtype()
    value = 1 if vocabulary > 1 else 0
    inputs = torch.full((2, *input_shape), value, dtype=dtype, device=first.device)
    was_training = network.training
    network.eval()
    with _drawn_from(seed), _computing_in(compute_dtype, first.device):
        try:
            logits = network(inputs)
        except Exception as error:
            sizes = ", ".join(map(str, ("N", *input_shape)))
            raise UsageError(f"model {name} fails on inputs [{sizes}]: {cause(error)}") from error
    network.train(was_training)
    are_numbers = isinstance(logits, torch.Tensor) and logits.is_floating_point()
    shape = list(logits.shape) if are_numbers else []
    more = may_have_more and len(shape) == 2 and shape[0] == 2 and shape[1] > num_classes
    if shape != [2, num_classes] and not more:
        if not isinstance(logits, torch.Tensor):
            raise UsageError(not_logits(name, type(logits).__name__))
        raise UsageError(
            f"model {name} gives {shape or logits.dtype} for two inputs; logits [N, {num_classes}] "
            "are needed"
        )
    sums, rounding = logits.float().sum(1), torch.finfo(logits.dtype).eps
    if bool((logits >= 0).all()) and torch.allclose(sums, torch.ones_like(sums), atol=rounding):
        warnings.warn(
            f"model {name} seems to end in a softmax, and losses take logits: leave it out, or the "
            "network learns little",
            stacklevel=level_outside(),
        )


def not_logits(name: str, given: str) -> str:
    """What to say of a network that gives something else, such as several outputs or a mapping."""
    return (
        f"model {name} gives a {given}, and logits [N, K] are needed: wrap it in a module that "
        "returns these alone"
    )


def copy_of(network: nn.Module) -> nn.Module:
    """A deep copy of a network, whatever its steps have left in attributes.

    torch copies no tensor of a graph, such as features that are kept for a loss: they are copied
    without it.
    """
    left = [leaf for module in network.modules() for leaf in tree_leaves(dict(vars(module)))]
    of_graphs = [t for t in left if isinstance(t, torch.Tensor) and not t.is_leaf]
    return copy.deepcopy(network, {id(t): t.detach().clone() for t in of_graphs})


def unwrapped(network: nn.Module) -> nn.Module:
    """A network without what `torch.compile` puts around it, which renames all that is in it."""
    return getattr(network, "_orig_mod", network)


def channels_last_pays(device: torch.device, shape: Sequence[int], network: nn.Module) -> bool:
    """Whether a network is faster channels last: with cuDNN's and oneDNN's convolutions.

    On a GPU images are given so to any network: one kernel makes a batch of floats.
    """
    if len(shape) != 3 or device.type == "cuda":
        return len(shape) == 3
    onednn: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return onednn and device.type == "cpu" and any(p.dim() == 4 for p in network.parameters())


def takes_channels_last(
    network: nn.Module,
    input_shape: Sequence[int],
    compute_dtype: torch.dtype | None = None,
    *,
    training: bool = True,
) -> bool:
    """Whether a network can be tested and trained with convolutions that lie channels last.

    One that flattens what they give with ``view`` cannot. A copy is tried on two images of zeros,
    since a network may count its batches, or start from the first one. Without ``training`` it is
    only tested.
    """
    try:
        tried = copy_of(network)
        for p in tried.parameters():
            if p.dim() == 4:
                p.data = p.data.to(memory_format=torch.channels_last)
        first = next(tried.parameters())
        images = torch.zeros(2, *input_shape, dtype=torch.float32, device=first.device)
        computing = _computing_in(compute_dtype, first.device)
        with _drawn_from(0), torch.enable_grad(), computing:
            for layout in (torch.channels_last, torch.contiguous_format):  # of a GPU, of a CPU
                tried.eval()(images.to(memory_format=layout))
                if training:
                    tried.train()(images.to(memory_format=layout)).sum().backward()
    except Exception:  # what is wrong with it besides is said where it is called as it should be
        return False
    return True


def _arguments(factory: Factory, known: dict[str, Any], name: str) -> dict[str, Any]:
    """Those of the known arguments that a factory takes."""
    if not callable(factory):
        raise UsageError(f"model {name} is a {type(factory).__name__}, not a function or a class")
    if isinstance(factory, nn.Module):
        raise UsageError(
            f"model {name} is a network, which all runs would share: name the class or a function "
            "that makes it"
        )
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        raise UsageError(f"model {name} has no signature to read; wrap it in a function") from None
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = {p: known[p] for p in parameters if parameters[p].kind in by_name and p in known}
    lacking = [
        p for p, about in parameters.items()
        if p not in found and about.default is about.empty and about.kind not in variadic
    ]  # fmt: skip
    if lacking:
        raise UsageError(
            f"model {name} needs {', '.join(lacking)}: give it a default; it is called with those "
            f"of {', '.join(known)} that its signature has"
        )
    if any(p.kind == inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        found.setdefault("num_classes", known["num_classes"])  # without it nothing would fit
    return found


def _is_network(found: Any, name: str) -> nn.Module:
    if isinstance(found, nn.Module):
        return found
    raise UsageError(f"model {name} gave a {type(found).__name__}, not a torch.nn.Module")


def _computing_in(
    dtype: torch.dtype | None, device: torch.device
) -> contextlib.AbstractContextManager[Any]:
    """Let networks compute in a type on a device; None for that of their weights."""
    if dtype is None:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype, cache_enabled=False)


@contextlib.contextmanager
def _drawn_from(seed: int) -> Iterator[None]:
    """Seed torch's global generators, and leave them as they were."""
    on_gpu = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    devices = range(torch.cuda.device_count() if on_gpu else 0)
    with torch.random.fork_rng(devices=devices):
        torch.default_generator.manual_seed(seed)
        if devices:
            torch.cuda.manual_seed_all(seed)
        yield


def _unusable(library: str, error: Exception) -> UsageError:
    return UsageError(
        f"{library} is installed and cannot be imported, {cause(error)}; install the version of it "
        f"that fits torch {torch.__version__}"
    )


def _of_library(library: str, name: str, num_classes: int, input_shape: Sequence[int]) -> Any:
    if len(input_shape) != 3:
        raise UsageError(f"{library}:{name} takes images, and the data has none")
    try:
        found = importlib.import_module("timm" if library == "timm" else "torchvision.models")
    except ImportError as error:
        if importlib.util.find_spec(library) is not None:
            raise _unusable(library, error) from error
        raise MissingExtraError(
            f"{library}:{name} needs {library}: pip install {library}", name=library
        ) from None
    except Exception as error:  # as of one that was built for another torch
        raise _unusable(library, error) from error
    if library == "timm":
        try:
            return found.create_model(
                name, pretrained=False, num_classes=num_classes, in_chans=input_shape[0]
            )
        except Exception as error:
            line = str(error).strip().split("\n")[0]
            raise UsageError(f"timm makes no {name!r} for this data: {line}") from None
    make = getattr(found, name, None)
    if not callable(make):
        known = [n for n in dir(found) if n.islower() and callable(getattr(found, n))]
        raise UsageError(f"torchvision has no network {name!r}{nearest(name, known)}")
    if input_shape[0] != 3:
        raise UsageError(
            f"torchvision:{name} takes images of 3 channels, and these have {input_shape[0]}; make "
            "it for them in a function of your own and name that, or take one of timm"
        )
    return make(weights=None, num_classes=num_classes)
