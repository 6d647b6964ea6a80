"""Makes digits.npz of the package from scikit-learn: python tests/data/make_digits.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np

TARGET = Path(__file__).parents[2] / "src" / "noiseproof" / "data" / "digits.npz"
TEST = 360


def make() -> tuple[np.ndarray, np.ndarray]:
    """Images and labels, those to train on first."""
    from sklearn.datasets import load_digits

    source = load_digits()
    draw = np.random.RandomState(0)
    order = draw.permutation(len(source.target))
    images, labels = source.images[order].astype(np.uint8), source.target[order].astype(np.uint8)
    quota = np.bincount(labels) * TEST / len(labels)
    count = np.floor(quota).astype(int)
    # largest remainders, the smaller digit first where they are equal
    count[np.argsort(count - quota, kind="stable")[: TEST - count.sum()]] += 1
    rank = np.empty(len(labels), int)  # how many of the same digit come before
    for digit in range(10):
        rank[labels == digit] = np.arange((labels == digit).sum())
    test = rank < count[labels]
    train_first = np.concatenate(
        [draw.permutation(np.flatnonzero(~test)), draw.permutation(np.flatnonzero(test))]
    )
    return images[train_first], labels[train_first]


if __name__ == "__main__":
    images, labels = make()
    np.savez_compressed(TARGET, images=images, labels=labels)
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")
