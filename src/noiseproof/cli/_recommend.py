"""``noiseproof recommend``: a loss to begin with, at once."""

from __future__ import annotations

from typing import Annotated, Any

import tyro

from noiseproof._errors import UsageError

from ._tables import say


def recommend(
    *,
    dataset: Annotated[str, tyro.conf.arg(metavar="DATA", help_behavior_hint="")] = "",
    label: Annotated[str, tyro.conf.arg(metavar="COLUMN", help_behavior_hint="")] = "",
    text: Annotated[str, tyro.conf.arg(metavar="COLUMN", help_behavior_hint="")] = "",
    image: Annotated[str, tyro.conf.arg(metavar="COLUMN", help_behavior_hint="")] = "",
    truth: Annotated[str, tyro.conf.arg(metavar="COLUMN", help_behavior_hint="")] = "",
    ignore: tuple[str, ...] = (),
    skip_unreadable: tyro.conf.FlagCreatePairsOff[bool] = False,
    classes: int | None = None,
    samples: int | None = None,
    noise_rate: float | None = None,
) -> None:
    """Name a loss to begin with: noiseproof recommend --dataset csv:reviews.csv --text review.

    Nothing is trained: it follows from what was measured on data sets of about as many classes and
    samples. noiseproof choose compares losses on the data itself.

    Args:
        dataset: data set by name, or data of your own: folder:DIR, csv:FILE, parquet:FILE,
            npz:FILE.
        label: of a table, the column of the labels; by default label.
        text: of a table, the column of the texts to classify.
        image: of a table, the column of the image files to classify.
        truth: of a table, the column of the true labels, where they are known.
        ignore: of a table, columns that are no features.
        skip_unreadable: go on without files and rows that cannot be read.
        classes: how many there are, in place of a data set.
        samples: how many there are to train on, with --classes.
        noise_rate: the part of the labels that is wrong, if you know it.
    """
    from noiseproof import tools
    from noiseproof.catalogue import DATASETS
    from noiseproof.runs import Run
    from noiseproof.runs._resolve import source_of
    from noiseproof.sources import is_source, read_labels

    if bool(dataset) == (classes is not None):
        raise UsageError("give --dataset DATA, or --classes and --samples in its place")
    labels: Any = classes
    if dataset:
        run = Run(
            dataset=dataset, label=label, text=text, image=image, truth=truth, ignore=ignore,
            skip_unreadable=skip_unreadable,
        )  # fmt: skip
        if is_source(dataset):
            labels, samples = read_labels(source_of(run)), None
        else:
            entry = DATASETS[run.resolve().dataset]
            labels, samples = entry.num_classes, entry.sizes[0]
    found = tools.recommend(labels, samples=samples, noise_rate=noise_rate)
    for line in str(found).splitlines():
        say(line)
