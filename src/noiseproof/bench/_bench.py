"""A bench: many runs that show one thing together, described as data. Nothing imports torch."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import catalogue
from .._errors import UsageError
from .._hints import match_name
from ..catalogue import dataset_title
from ..runs import ResolvedRun, Run
from ..sources import is_source, source_named

FIELDS = tuple(field.name for field in dataclasses.fields(Run))
LISTS = tuple(f.name for f in dataclasses.fields(Run) if f.default == ())
"""The settings whose values are lists themselves."""
# A table's first seed should be whole before its second begins, and runs of one network together.
_ORDER = ("seed", "dataset", "model", "protocol", "noise", "rate", "loss")
Key = tuple[str, str, float, str]
MAX_RUNS = 100_000


@dataclass(frozen=True)
class Bench:
    """A table, a figure or a grid of one's own, as the runs that it is made of."""

    name: str
    title: str
    shows: str
    """what to look for in it"""
    runs: tuple[Run, ...]

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def cells(self) -> list[Key]:
        """Its cells, as `noiseproof.results.Cell.key` has them: dataset, noise, rate, method."""
        return list(dict.fromkeys((*r.condition, r.method) for r in map(Run.resolve, self.runs)))

    def narrow(
        self,
        *,
        dataset: Iterable[str] = (),
        noise: Iterable[str] = (),
        rate: Iterable[float] = (),
        loss: Iterable[str] = (),
        seeds: Iterable[int] = (),
        epochs: int | None = None,
        protocol: str | None = None,
    ) -> Bench:
        """The same bench with fewer runs, or shorter ones.

        ``dataset``, ``noise``, ``rate`` and ``loss`` keep what they name, a loss by its text or by
        its name in the papers; ``seeds``, ``epochs`` and ``protocol`` replace those of the bench.

        >>> from noiseproof.bench import bench
        >>> len(bench("quick").narrow(loss=["NCE+RCE"], rate=[0.6], seeds=[0]))
        1
        """
        runs = self.runs
        for what, wanted, matches in (
            ("dataset", dataset, _has_dataset), ("noise", noise, _has_noise),
            ("rate", rate, _has_rate), ("loss", loss, ResolvedRun.means),
        ):  # fmt: skip
            runs = self._keep(runs, what, list(wanted), matches)
        if seeds := list(seeds):
            runs = tuple(dataclasses.replace(r, seed=seed) for seed in seeds for r in runs)
        given: dict[str, Any] = {"epochs": epochs, "protocol": protocol}
        changed = {name: value for name, value in given.items() if value is not None}
        runs = tuple(dataclasses.replace(run, **changed) for run in runs)
        if not runs:
            raise UsageError(f"{self.name} has no run of all that was asked for at once")
        return dataclasses.replace(self, runs=unique(runs))

    def _keep(
        self,
        runs: tuple[Run, ...],
        what: str,
        wanted: Sequence[Any],
        matches: Callable[[ResolvedRun, Any], bool],
    ) -> tuple[Run, ...]:
        """Those runs that match a wanted value; a value that no run has is an error."""
        if not wanted:
            return runs
        resolved = [run.resolve() for run in self.runs]
        for value in wanted:
            if not any(matches(run, value) for run in resolved):
                names = {"loss": "method"}
                has = dict.fromkeys(getattr(run, names.get(what, what)) for run in resolved)
                known = ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in has)
                raise UsageError(f"{self.name} has no {what} {value}; it has {known}")
        return tuple(run for run in runs if any(matches(run.resolve(), value) for value in wanted))


def comparison(
    datasets: Sequence[str],
    losses: Sequence[str] = (),
    seeds: Sequence[int] = (),
    *,
    title: str = "",
    **settings: Any,
) -> Bench:
    """Losses compared on data, which may be of one's own.

    Args:
        datasets: by name, or ``csv:FILE``, ``folder:DIR``, ...
        losses: to compare. Default: `COMPARED`.
        seeds: of the runs. Default: 0, 1 and 2.
        title: of the bench.
        settings: of every run, each one value or several; what is None or empty is left open.

    >>> len(comparison(["digits"], ["ce", "nce+rce"], rate=[0.2, 0.4]))
    12
    """
    given = {name: value for name, value in settings.items() if value not in (None, (), [], "")}
    axes: dict[str, Any] = {"dataset": list(datasets), "loss": list(losses or COMPARED)}
    runs = grid(**axes, seed=list(seeds or (0, 1, 2)), **given)
    named = title or " and ".join(dict.fromkeys(_short_name(name) for name in datasets))
    return Bench(named, named, "which loss is best on this data", unique(runs))


COMPARED = ("ce", "gce", "sce", "nce+mae", "nce+rce")
"""Losses that are compared where none are named."""


def _short_name(dataset: str) -> str:
    return source_named(dataset).name if is_source(dataset) else dataset


def _has_dataset(run: ResolvedRun, name: str) -> bool:
    if is_source(name):
        return dataset_title(run.dataset) == _short_name(name)
    return run.dataset == match_name(name, catalogue.DATASETS, "data set")


def _has_noise(run: ResolvedRun, name: str) -> bool:
    return run.noise == name.lower()


def _has_rate(run: ResolvedRun, rate: float) -> bool:
    return run.rate == float(rate)


def unique(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Each run once: with noise="none", for example, every rate is the same run."""
    return tuple({_identity(run): run for run in runs}.values())


def _identity(run: Run) -> tuple[str, ...]:
    """What tells runs apart whatever device they will be trained on."""
    device = "" if run.precision != "auto" or run.device == "auto" else run.device.split(":")[0]
    return (*(r.hash for r in run.resolutions()), device)


def values_of(name: str, given: Any) -> list[Any]:
    """The values of a setting that are combined, given as one value or as a list of them.

    >>> values_of("seed", [0, 1]), values_of("freeze", ["a.*", "b.*"])
    ([0, 1], [('a.*', 'b.*')])
    """
    values = list(given) if isinstance(given, list | tuple) else [given]
    if name not in LISTS:
        return values
    if any(isinstance(value, list | tuple) for value in values):  # a list of lists
        return [tuple(v) if isinstance(v, list | tuple) else (v,) for v in values]
    return [tuple(values)]


def grid(**axes: Any) -> list[Run]:
    """All combinations of settings, each given as one value or as a list of values.

    >>> [str(run) for run in grid(noise=["none", "symmetric"], rate=0.4, loss=["ce", "nce"])]
    ... # doctest: +NORMALIZE_WHITESPACE
    ['digits, clean, ce, seed 0', 'digits, clean, nce, seed 0',
     'digits, symmetric 0.4, ce, seed 0', 'digits, symmetric 0.4, nce, seed 0']
    """
    names = sorted(axes, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
    values = [values_of(name, axes[name]) for name in names]
    size = math.prod(map(len, values))
    if size > MAX_RUNS:
        raise UsageError(f"a grid of {size:,} runs is too large; {MAX_RUNS:,} at most")
    runs = (Run(**dict(zip(names, point, strict=True))) for point in itertools.product(*values))
    return list(unique(runs))
