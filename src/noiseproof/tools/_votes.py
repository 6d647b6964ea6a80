"""What a network said of its training samples, epoch by epoch, in one ordinary run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._errors import UsageError

if TYPE_CHECKING:
    from ..train import Progress


class Votes:
    """Counts how often each training sample was predicted as each class, over the epochs of a run.

    It is a function for ``on_epoch`` of `noiseproof.train.fit`, and costs nothing: a step has its
    predictions anyway. With a robust loss a network learns the true classes first and the wrong
    labels late or never, so the votes of all epochs tell wrong labels from right ones. Where the
    network learns every label by heart within a few epochs, `noiseproof.tools.out_of_sample` does.

    Attributes:
        counts: of each training sample and class, int32 [N, K].
        index: of these samples in the training set; all of them unless a part was held out.
        labels: their labels as they are given, int64 [N].

    >>> from noiseproof.tools import Votes
    >>> from noiseproof.train import Run, fit
    >>> votes = Votes()
    >>> result = fit(Run(rate=0.4, epochs=2, device="cpu"), on_epoch=votes)
    >>> votes.probabilities.shape
    (1437, 10)
    """

    counts: NDArray[np.int32]
    index: NDArray[np.int64]
    labels: NDArray[np.int64]

    def __init__(self) -> None:
        self.epochs = 0

    def __call__(self, progress: Progress) -> None:
        if progress.predicted is None or progress.labels is None:
            return
        predicted = progress.predicted.cpu().numpy()
        if not self.epochs:
            self.labels = progress.labels.cpu().numpy().copy()
            n = len(self.labels)
            index = progress.index
            self.index = np.arange(n) if index is None else index.cpu().numpy().copy()
            self.counts = np.zeros((n, 0), np.int32)
            self._hash = progress.run.hash
        if progress.run.hash != self._hash:
            raise UsageError("these votes are of another run: take a Votes() for each")
        classes = 1 + max(int(predicted.max()), int(self.labels.max()))
        if classes > self.counts.shape[1]:
            missing = classes - self.counts.shape[1]
            self.counts = np.pad(self.counts, ((0, 0), (0, missing)))
        self.counts[np.arange(len(predicted)), predicted] += 1
        self.epochs += 1

    @property
    def probabilities(self) -> NDArray[np.float32]:
        """The share of the votes that each class has, [N, K], for `noiseproof.tools.audit`.

        A vote more is spread evenly over the classes: no class is impossible.
        """
        if not self.epochs:
            raise UsageError("there are no votes yet: give on_epoch=votes to noiseproof.train.fit")
        classes = self.counts.shape[1]
        shares: NDArray[np.float32] = (self.counts + 1 / classes) / (self.epochs + 1)
        return shares.astype(np.float32)
