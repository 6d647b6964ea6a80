"""A bench: many runs that show one thing together, described as data. Nothing imports torch."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..results import method_of
from ..train import Run

FIELDS = tuple(field.name for field in dataclasses.fields(Run))
# A table's first seed should be whole before its second begins, and runs of one network together.
_ORDER = ("seed", "dataset", "model", "protocol", "noise", "rate", "loss")
Key = tuple[str, str, float, str]


@dataclass(frozen=True)
class Bench:
    """A table, a figure or a grid of one's own, as the runs that it is made of."""

    name: str
    title: str
    shows: str
    """what to look for in it"""
    runs: tuple[Run, ...]
    missing: str = ""
    """why it cannot be run, if it cannot"""

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def cells(self) -> list[Key]:
        """Its cells, as `noiseproof.results.Cell.key` has them: dataset, noise, rate, method."""
        return list(dict.fromkeys(map(key_of, self.runs)))

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
        its name in the papers; ``seeds``, ``epochs`` and ``protocol`` stand in for the bench's own.

        >>> from noiseproof.bench import bench
        >>> len(bench("quick").narrow(loss=["NCE+RCE"], rate=[0.6], seeds=[0]))
        1
        """
        runs: Sequence[Run] = self.runs
        runs = self._keep(runs, "dataset", dataset, lambda r: r.dataset, str.lower)
        runs = self._keep(runs, "noise", noise, lambda r: key_of(r)[1], str.lower)
        runs = self._keep(runs, "rate", rate, lambda r: key_of(r)[2], float)
        runs = self._keep(runs, "loss", loss, lambda r: method_of(r.loss), method_of)
        if seeds := list(seeds):
            runs = [dataclasses.replace(run, seed=seed) for seed in seeds for run in runs]
        given: dict[str, Any] = {"epochs": epochs, "protocol": protocol}
        changed = {name: value for name, value in given.items() if value is not None}
        runs = [dataclasses.replace(run, **changed) for run in runs]
        if not runs:
            raise ValueError(f"{self.name} has no run of all that was asked for at once")
        return dataclasses.replace(self, runs=unique(runs))

    def _keep(
        self,
        runs: Sequence[Run],
        what: str,
        wanted: Iterable[Any],
        value_of: Callable[[Run], Any],
        read: Callable[[Any], Any],
    ) -> Sequence[Run]:
        """Those runs whose value is among the wanted ones; one that no run has is an error."""
        kept = {read(value) for value in wanted}
        has = {value_of(run): None for run in self.runs}
        for value in kept - set(has):
            known = ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in has)
            raise ValueError(f"{self.name} has no {what} {value}; it has {known}")
        return [run for run in runs if value_of(run) in kept] if kept else runs


def key_of(run: Run) -> Key:
    """The cell of a run."""
    filled = run.filled()
    rate = filled.rate
    assert filled.noise is not None
    noise = "none" if filled.noise in ("symmetric", "asymmetric") and not rate else filled.noise
    return filled.dataset, noise, rate, method_of(run.loss)


def unique(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Each run once: with noise="none" every rate is the same run."""
    return tuple({run.hash: run for run in runs}.values())


def grid(**axes: Any) -> list[Run]:
    """All combinations of settings, each given as one value or as a list of values.

    >>> [str(run) for run in grid(noise=["none", "symmetric"], rate=0.4, loss=["ce", "nce"])]
    ... # doctest: +NORMALIZE_WHITESPACE
    ['digits, none, ce, seed 0', 'digits, none, nce, seed 0',
     'digits, symmetric 0.4, ce, seed 0', 'digits, symmetric 0.4, nce, seed 0']
    """
    names = sorted(axes, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
    values = [v if isinstance(v, list | tuple) else [v] for v in (axes[name] for name in names)]
    runs = (Run(**dict(zip(names, point, strict=True))) for point in itertools.product(*values))
    return list(unique(runs))
