"""Which labels are wrong: a ranking of suspects, and how many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._errors import UsageError, require
from .._escape import csv_text
from .._files import write_atomically
from ..noise._checks import as_array
from ._estimate import Floats, Labels, Probabilities, joint_of, judge, transition_of

_SUM = 0.02  # by how much a row of float16 may miss 1


@dataclass(frozen=True)
class Suspect:
    """A label that is likely wrong."""

    rank: int
    """the first is 1"""
    index: int
    """of the sample, from 0"""
    name: str
    given: str
    suggested: str
    score: float
    """how likely the given label is wrong, from 0 to 1"""
    given_probability: float
    """that the network gives to the given class"""
    suggested_probability: float
    """that it gives to the suggested one"""
    annotator: str


class Share(NamedTuple):
    """Of a class or an annotator, how many labels there are and which share is likely wrong."""

    name: str
    labels: int
    rate: float


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """Labels, ranked by how likely they are wrong.

    Attributes:
        rate: the estimated share of labels that are wrong.
        transition: T[i, j], the estimated share of true class i that is given as j, as
            `noiseproof.forward_correction` takes it.
        scores: of each sample how likely its label is wrong, [N].
        ranking: the samples, the most suspect first, [N].
        suggested: of each sample the most likely class beside the given one, [N].
        labels: the number of each sample's given class, [N].
        probabilities: that the network gives to each class, [N, K].
        classes: the name of each class.
        names: of each sample; its index where none were given.
        annotators: of each sample who gave its label; empty where that is not known.
        joint: the estimated share of samples of each true class (row) and given class, [K, K].
        cleanlab: the ranking of cleanlab, where it was asked for.
    """

    rate: float
    transition: Floats
    scores: Floats
    ranking: Labels
    suggested: Labels
    labels: Labels
    probabilities: Probabilities
    classes: tuple[str, ...]
    names: tuple[str, ...]
    annotators: tuple[str, ...]
    joint: Floats
    cleanlab: Labels | None = None

    def __len__(self) -> int:
        """How many labels are suspect: the share of them that is likely wrong."""
        return round(self.rate * len(self.labels))

    def __iter__(self) -> Iterator[Suspect]:
        return iter(self.suspects())

    def __repr__(self) -> str:
        lines = [
            f"Audit: {self.rate:.1%} of {len(self.labels):,} labels are likely wrong, "
            f"{len(self):,} {'suspect' if len(self) == 1 else 'suspects'}"
        ]
        for s in self.suspects(min(5, len(self))):
            lines.append(f"  {s.rank}. {s.name}: given {s.given!r}, likely {s.suggested!r}")
        if len(self) > 5:
            lines.append("  ...")
        return "\n".join(lines)

    @property
    def index(self) -> Labels:
        """The samples whose labels are suspect, the most suspect first."""
        return self.ranking[: len(self)]

    def suspects(self, number: int | None = None) -> list[Suspect]:
        """The first so many; by default as many as are likely wrong."""
        count = len(self) if number is None else min(number, len(self.labels))
        return [self._suspect(rank, int(i)) for rank, i in enumerate(self.ranking[:count], 1)]

    def _suspect(self, rank: int, i: int) -> Suspect:
        given, other = int(self.labels[i]), int(self.suggested[i])
        p = self.probabilities[i]
        return Suspect(
            rank, i, self.names[i], self.classes[given], self.classes[other], float(self.scores[i]),
            float(p[given]), float(p[other]), self.annotators[i] if self.annotators else "",
        )  # fmt: skip

    def by_class(self) -> list[Share]:
        """Of the labels that are given as each class, how many are likely wrong."""
        counts = np.bincount(self.labels, minlength=len(self.classes))
        given = self.joint.sum(0)
        right = np.where(given > 0, np.diag(self.joint) / np.maximum(given, 1e-300), 1.0)
        rows = zip(self.classes, counts.tolist(), np.maximum(1 - right, 0).tolist(), strict=True)
        return [Share(*row) for row in rows]

    def by_annotator(self) -> list[Share]:
        """Of the labels of each annotator, how many are likely wrong; the worst first."""
        if not self.annotators:
            return []
        people, of = np.unique(np.array(self.annotators, dtype=object), return_inverse=True)
        counts = np.bincount(of)
        # Scores are summed and not suspects counted: one of 10 labels can be half a suspect.
        scale = self.rate / max(float(self.scores.mean()), 1e-12)
        rates = np.minimum(np.bincount(of, weights=self.scores) / counts * scale, 1)
        rows = [
            Share(str(p), int(c), float(r)) for p, c, r in zip(people, counts, rates, strict=True)
        ]
        return sorted(rows, key=lambda row: (-row.rate, row.name))

    def to_csv(self, path: Path | str | None = None, number: int | None = None) -> str:
        """The suspects as CSV, written to a file where one is named.

        Args:
            path: of the file.
            number: how many; by default as many as are likely wrong.
        """
        names = [f.name for f in fields(Suspect) if f.name != "annotator" or self.annotators]
        header = list(names)
        place = None
        if self.cleanlab is not None:
            place = np.empty(len(self.labels), np.int64)
            place[self.cleanlab] = np.arange(1, len(self.labels) + 1)
            header.append("cleanlab_rank")
        rows: list[list[Any]] = [header]
        for suspect in self.suspects(number):
            row: list[Any] = [getattr(suspect, name) for name in names]
            row = [f"{value:.4f}" if isinstance(value, float) else value for value in row]
            rows.append(row if place is None else [*row, int(place[suspect.index])])
        text = csv_text(rows)
        if path is not None:
            write_atomically(path, text.encode())
        return text

    def to_html(
        self,
        path: Path | str,
        samples: Callable[[int], Any] | Sequence[Any] | None = None,
        *,
        number: int | None = None,
        title: str = "",
        apply: str = "",
    ) -> Path:
        """One page, which needs no network, to go through the suspects with the keyboard.

        Args:
            path: of the file.
            samples: of each sample what to show: a text, a mapping of columns to values, or an
                image: of Pillow, the bytes of a PNG or JPEG file, or uint8 [H, W], [H, W, C] or
                [C, H, W]. A list, or a function of the index.
            number: how many suspects; by default as many as are likely wrong, at most 2,000.
            title: of the page.
            apply: the command that applies what the page exports, which the page then shows.
        """
        from ._page import audit_page

        page = audit_page(self, samples, number=number, title=title, apply=apply)
        write_atomically(path, page.encode())
        return Path(path)


def audit(
    probabilities: Any,
    labels: Any,
    *,
    classes: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    annotators: Any = None,
    cleanlab: bool = False,
) -> Audit:
    """Rank labels by how likely they are wrong, and estimate how many are.

    Args:
        probabilities: of each class, [N, K], by networks that were not trained on the sample
            (`out_of_sample`), or the votes of one run (`Votes`); an array, tensor or data frame.
        labels: as they are given, [N]: numbers of classes, or their names.
        classes: the name of each column of probabilities. Default: the names in the labels in
            alphabetical order, as scikit-learn has them, or the numbers.
        names: of each sample, such as its file. Default: its index.
        annotators: who gave each label, [N].
        cleanlab: also have cleanlab rank them, with ``pip install "noiseproof[audit]"``.

    >>> audit([[0.9, 0.1], [0.2, 0.8], [0.1, 0.9], [0.8, 0.2]], ["cat", "dog", "cat", "cat"])
    Audit: 25.0% of 4 labels are likely wrong, 1 suspect
      1. 2: given 'cat', likely 'dog'
    """
    p = _probabilities(probabilities)
    given, named = _labels(labels, p.shape, classes)
    who = () if annotators is None else _texts(annotators, "annotators", len(p))
    called = tuple(map(str, range(len(p)))) if names is None else _texts(names, "names", len(p))
    joint = joint_of(p, given)
    scores, suggested = judge(p, given, joint)
    # Where two labels are as likely wrong, the one that the network believes less is first.
    ranking = np.lexsort((p[np.arange(len(p)), given], -scores)).astype(np.int64)
    rate = max(0.0, float(1 - np.trace(joint)))  # the shares may add up to a little more than 1
    return Audit(
        rate, transition_of(joint), scores, ranking, suggested, given, p,
        named, called, who, joint, cleanlab_ranking(p, given) if cleanlab else None,
    )  # fmt: skip


def cleanlab_ranking(probabilities: Probabilities, labels: Labels) -> Labels:
    """The order in which cleanlab suspects labels: by the probability of the given class."""
    rank = require("cleanlab.rank", "audit", "the ranking of cleanlab")
    quality = rank.get_label_quality_scores(labels, probabilities, method="self_confidence")
    order: Labels = np.argsort(quality, kind="stable")
    return order


def _probabilities(given: Any) -> Probabilities:
    try:
        p = as_array(given).astype(np.float32)
    except (TypeError, ValueError):
        raise UsageError("probabilities are numbers [N, K], a row for each sample") from None
    if p.ndim != 2 or p.shape[0] < 1 or p.shape[1] < 2:
        raise UsageError(
            f"probabilities are [N, K], one for each sample and class; they were {list(p.shape)}"
        )
    bad = np.flatnonzero(~np.isfinite(p).all(1))
    if len(bad):
        raise UsageError(f"the probabilities of sample {bad[0]} hold a NaN or an infinity")
    sums = p.sum(1)
    wrong = np.flatnonzero((np.abs(sums - 1) > _SUM) | (p < -1e-6).any(1))
    if len(wrong):
        raise UsageError(
            f"the probabilities of sample {wrong[0]} sum to {sums[wrong[0]]:.4g} or are below 0; "
            "of logits give the softmax"
        )
    p = np.maximum(p, np.float32(1e-9))  # float16 rounds to zero what is not impossible
    whole: Probabilities = p / p.sum(1, keepdims=True)
    return whole


def _labels(
    given: Any, shape: tuple[int, ...], classes: Sequence[str] | None
) -> tuple[Labels, tuple[str, ...]]:
    n, num_classes = shape
    array = as_array(given)
    if array.ndim != 1 or len(array) != n:
        raise UsageError(f"labels are [{n}], one for each sample; they were {list(array.shape)}")
    if classes is not None and len(classes) != num_classes:
        raise UsageError(f"there are {len(classes)} classes, and probabilities of {num_classes}")
    if array.dtype.kind == "f" and (array == np.round(array)).all():
        array = array.astype(np.int64)
    if array.dtype.kind in "iub":
        numbers = array.astype(np.int64)
        if numbers.min() < 0 or numbers.max() >= num_classes:
            raise UsageError(
                f"labels go from {numbers.min()} to {numbers.max()}, and there are {num_classes} "
                "classes, from 0"
            )
        named = range(num_classes) if classes is None else classes
        return numbers, tuple(map(str, named))
    texts = _texts(given, "labels", n)
    if classes is None:
        found = tuple(sorted(set(texts)))
        if len(found) != num_classes:
            raise UsageError(
                f"labels have {len(found)} names, and there are probabilities of {num_classes} "
                "classes; name these in their order with classes="
            )
    else:
        found = tuple(map(str, classes))
    number = {name: k for k, name in enumerate(found)}
    unknown = [text for text in texts if text not in number]
    if unknown:
        raise UsageError(f"the label {unknown[0]!r:.60} is not among classes")
    return np.array([number[text] for text in texts], np.int64), found


def _texts(given: Any, what: str, n: int) -> tuple[str, ...]:
    values = as_array(given).tolist() if hasattr(given, "dtype") else list(given)
    if isinstance(given, str) or len(values) != n:
        raise UsageError(f"{what} are {n}, one for each sample; there were {len(values)}")
    return tuple("" if v is None else str(v) for v in values)
