"""The losses that `choose` tries where none are named, and why each is among them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """A loss to try. Its text has numbers, so that it means the same on every data set."""

    loss: str
    reason: str


HANDFUL = (
    Candidate("ce", "what everybody has; nothing is gained over it where labels are right"),
    Candidate("gce", "half way to a robust loss; learns fast, also many classes"),
    Candidate("1*nce + 1*rce", "the loss to begin with: active and passive at equal weight"),
    Candidate("nce + 0.1*rce", "little passive weight: small and easy data with much noise"),
    Candidate("nce + 100*rce", "much passive weight: easy images and many epochs"),
    Candidate("10*nce + 0.1*rce", "much active weight: many classes, which take longer to learn"),
)
"""Few, since each is trained. In every table of docs/which-loss.md the best loss is among them or
less than half a point before one that is; but for JAL-CE on CIFAR-10, whose L1 penalty is set for
that data."""

REASONS = {candidate.loss: candidate.reason for candidate in HANDFUL}
