"""From a run as a user gives it to the run that will be trained: nothing is left open."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import catalogue, syntax
from .._errors import UsageError
from .._hints import match_name
from .._imports import is_import, load, without_digest
from ..sources import Source, is_source, meant_source, source_named
from ._check import (
    OF_SOURCES,
    check_augmentation,
    check_nlnl,
    check_optimizer_settings,
    is_auto,
)
from ._own import Own
from ._resolved import ResolvedRun, check_name

if TYPE_CHECKING:
    from ._run import Run

_HOLDOUT = 0.1  # to choose an epoch by, where there is a part to test on
_NLNL_EPOCHS = 10  # how many times the protocol's epochs the three stages of NLNL take together


def resolve(
    run: Run,
    *,
    on_gpu: bool,
    overrides: Mapping[str, str] | None,
    data: catalogue.DataSummary | None,
    name: str,
) -> ResolvedRun:
    """What `Run.resolve` answers, which says what the arguments are."""
    given, own = dict(overrides or {}), Own()
    content = None if "data" in given else run.content()
    if content is not None:
        dataset, own.paths["data"] = content.name, source_of(run).to_json()
        data = catalogue.DataSummary(
            content.kind, content.shape, len(content.train), len(content.classes),
            content.test is not None,
        )  # fmt: skip
    else:
        dataset = given["data"] if "data" in given else known_dataset(run)
    noise, rate, variant = resolved_noise(run, dataset, given)
    imports = imported(run, own)
    setting = _loss(run, dataset, noise, rate, data, given, own)
    brought = _brought(run, setting)
    holdout = _holdout(run, data, bool(brought["choose_epoch"]))
    values = _settings(run, dataset, data, holdout)
    if is_auto(run.loss) and "loss" not in given:  # which follows from the learning rate too
        classes = _classes(dataset, data)
        setting = catalogue.auto_setting(classes, values["lr"], values["optimizer"])
        brought = _brought(run, setting)
    loss = setting.loss
    if loss == catalogue.NLNL:
        check_nlnl(run)
        values["epochs"] *= _NLNL_EPOCHS if run.epochs is None else 1
    if run.warmup >= values["epochs"]:
        raise UsageError(f"warmup={run.warmup:g} epochs leaves none of epochs={values['epochs']}")
    values["model"] = _network(values["model"], given, own)
    own_parts = "loss" in given or "network" in given or is_import(values["model"])
    if imports and not own_parts and not is_import(loss) and not _uses_own(loss):
        imports = ()  # it needs none of them: their files are no part of what it is
    if run.weights:
        values["weights"] = own.file(run.weights, "weights")
    if run.cache:
        own.paths["cache"] = str(Path(run.cache).expanduser().absolute())
    if run.skip_unreadable and content is None:
        own.paths["skip_unreadable"] = "yes"
    values |= brought | _penalties(run, setting, values["weight_decay"], shrinks=brought["shrink"])
    if not brought["shrink"]:
        values |= {"shrink_schedule": "constant", "shrink_limit": 0.0}  # none
    if not values["weight_decay"]:
        values["decay_on"] = "all"  # none
    if values["schedule"] == "constant":
        values["schedule_by"] = "epoch"
    return ResolvedRun(**values | {
        "dataset": dataset, "noise": noise, "rate": rate, "variant": variant,
        "loss": loss, "imports": imports, "precision": precision(run, on_gpu),
        "overrides": tuple(sorted(given)), "name": check_name(name) if name else "",
        "paths": tuple(own.paths.items()),
    })  # fmt: skip


def note_of(run: Run) -> str:
    """What a user should know of the published numbers that the loss's name brings."""
    content = run.content()
    dataset = known_dataset(run) if content is None else content.name
    noise, rate, _ = resolved_noise(run, dataset, {})
    if is_import(run.loss):
        return ""
    imported(run, Own())
    if is_auto(run.loss):
        return catalogue.auto_note(run.resolve().settings())
    return catalogue.resolve_loss(
        run.loss, dataset, noise=noise, rate=rate, protocol=run.protocol
    ).note


def source_of(run: Run) -> Source:
    """The data of the user's own that it names, and how it is read."""
    return source_named(run.dataset, **{name: getattr(run, name) for name in OF_SOURCES})


def known_dataset(run: Run) -> str:
    try:
        return match_name(run.dataset, catalogue.DATASETS, "data set")
    except UsageError as error:
        hint = meant_source(run.dataset)
        raise (UsageError(f"unknown data set {run.dataset!r}{hint}") if hint else error) from None


def resolved_noise(run: Run, dataset: str, given: Mapping[str, str]) -> tuple[str, float, str]:
    """Its kind, rate and variant."""
    own = "data" in given or is_source(run.dataset)
    if run.noise is None and own and "data" not in given and run.rate != type(run).rate:
        raise UsageError(
            f"rate={run.rate:g} says how many labels are made wrong, and those of your own "
            "data are taken as they are given: add noise='symmetric'"
        )
    if "labels" in given or (run.noise is None and own):
        return catalogue.GIVEN, 0.0, "paper"
    known = catalogue.DATASETS.get(dataset)
    noise = run.noise or ("symmetric" if known is None else known.noise)
    entry = catalogue.NOISES[noise]
    if entry.group == "human" and "data" not in given:
        labelled = catalogue.HUMAN_FILES[entry.file].dataset
        if labelled != dataset:
            raise UsageError(f"{noise} are labels of {labelled}, and the data set is {dataset}")
    if noise == "asymmetric" and is_source(run.dataset) and "data" not in given:
        raise UsageError(
            "asymmetric noise needs to know which class is mistaken for which: take pairflip, "
            "or in Python fit(..., labels=noise.asymmetric(..., mapping=...))"
        )
    if run.variant not in (None, *entry.variants):
        raise UsageError(f"the authors have no {noise} noise: give variant='paper'")
    variant = run.protocol if run.protocol in entry.variants else "paper"
    if not entry.has_rate or not run.rate:
        clean = catalogue.CLEAN if entry.has_rate else noise
        return clean, 0.0, "paper"
    return noise, run.rate, run.variant or variant


def imported(run: Run, own: Own) -> tuple[str, ...]:
    """Import the modules whose losses the text may name."""
    found = tuple(sorted({own.identified(name, "import") for name in run.imports}))
    for name in found:
        load(name, "import")
    return found


def precision(run: Run, on_gpu: bool) -> str:
    if run.precision != "auto":
        return run.precision
    return "bf16" if on_gpu else "fp32"


def _loss(
    run: Run,
    dataset: str,
    noise: str,
    rate: float,
    data: catalogue.DataSummary | None,
    given: dict[str, str],
    own: Own,
) -> catalogue.Setting:
    """The loss, its text canonical, with what it brings."""
    if "loss" in given:
        return catalogue.Setting(given["loss"], "")
    if is_import(run.loss):
        return catalogue.Setting(own.identified(run.loss, "loss"), "")
    found = catalogue.resolve_loss(
        run.loss, dataset, noise=noise, rate=rate, protocol=run.protocol,
        classes=None if data is None else data.classes,
    )  # fmt: skip
    if _uses_own(found.loss, but_of=own.modules):
        given["loss"] = found.loss  # nobody can tell it from another of that name
    return found


def _classes(dataset: str, data: catalogue.DataSummary | None) -> int:
    return catalogue.DATASETS[dataset].num_classes if data is None else data.classes


def _brought(run: Run, setting: catalogue.Setting) -> dict[str, Any]:
    """Penalty, average and choice: as they are given, else as the method has them."""
    found: dict[str, Any] = {}
    for name in catalogue.AUTO_BRINGS:
        given, without = getattr(run, name), getattr(ResolvedRun, name)
        found[name] = setting.brings.get(name, without) if given is None else given
    if run.ema and run.ema_horizon is None:
        found["ema_horizon"] = 0.0  # another average was given
    if run.holdout == 0 and run.choose_epoch is None:
        found["choose_epoch"] = False  # there is nothing to choose by
    return found


def _holdout(run: Run, data: catalogue.DataSummary | None, chooses: bool) -> float:
    holdout = run.holdout
    if holdout is None:
        usual = 0.0 if data is None else data.usual_holdout
        holdout = usual or (_HOLDOUT if chooses else 0.0)
    if run.fold and (not holdout or run.fold > round(1 / holdout)):
        parts = f"one of {round(1 / holdout)} parts" if holdout else "a part of a holdout"
        raise UsageError(f"fold={run.fold} is {parts}; give holdout=0.2 for five folds, say")
    return holdout


def _settings(
    run: Run, dataset: str, data: catalogue.DataSummary | None, holdout: float
) -> dict[str, Any]:
    """What is given, else what the protocol for the data has, else the optimizer's own."""
    protocol = (
        catalogue.protocol_of(run.protocol, dataset) if data is None else data.protocol(holdout)
    )
    optimizer = run.optimizer or protocol.optimizer
    check_optimizer_settings(run, optimizer)
    defaults = vars(protocol) | {"holdout": holdout}
    if optimizer != protocol.optimizer:
        defaults |= catalogue.OPTIMIZERS[optimizer].defaults
    elif optimizer != "sgd":
        defaults |= {"momentum": 0.0, "nesterov": False}
    values: dict[str, Any] = {}
    for field in dataclasses.fields(ResolvedRun):
        if hasattr(run, field.name):
            value = getattr(run, field.name)
            if value is None:
                fixed = None if field.default is dataclasses.MISSING else field.default
                value = defaults.get(field.name, fixed)
            values[field.name] = value
    if run.crop is None and values["crop_size"]:
        values["crop"] = 0  # a part is cut out of the image itself, not of one with a border
    if run.crop_scale is None and not values["crop_size"]:
        values["crop_scale"] = 0.0  # there is no part that could be brought to a size
    if run.rotate is None and values["crop_scale"]:
        values["rotate"] = 0.0  # no image is both
    check_augmentation(run, values, without_digest(dataset), data)
    return values


def _network(name: str, given: Mapping[str, str], own: Own) -> str:
    if "network" in given:
        return given["network"]
    if is_import(name):
        return own.identified(name, "model")
    return match_name(name, catalogue.NETWORKS, "network")


def _penalties(
    run: Run, setting: catalogue.Setting, usual: float, *, shrinks: float
) -> dict[str, float]:
    """L1 and weight decay; where weights are shrunk, which is a penalty too, only if given."""
    if shrinks:
        return {"l1": run.l1 or 0.0, "weight_decay": run.weight_decay or 0.0}
    decay = setting.weight_decay if run.weight_decay is None else run.weight_decay
    return {
        "l1": setting.l1 if run.l1 is None else run.l1,
        "weight_decay": usual if decay is None else decay,
    }


def _uses_own(loss: str, but_of: Sequence[str] = ()) -> bool:
    """Whether a canonical text names a loss that a user declared, in another of these modules."""
    if loss == catalogue.NLNL:
        return False
    return syntax.uses_user_losses(syntax.read(loss), but_of=but_of)
