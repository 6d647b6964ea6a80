"""How to train on data of one's own, of which nothing is published: by its kind and size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ._datasets import Protocol

_STEPS = {"image": 12_000, "features": 4_000, "tokens": 2_000, "text": 2_000}
_FEWEST, _MOST = 10, 120  # epochs
_SMALL_IMAGE = 12  # pixels
_IMAGE = 40
HOLDOUT = 0.2
"""The part of the training set that is held out where there is nothing to test on; and half of it
from `_MANY` samples on."""
_MANY = 10_000


@dataclass(frozen=True)
class DataSummary:
    """What a run needs to know of data of one's own before it is trained.

    Attributes:
        kind: of the inputs: ``image``, ``features``, ``tokens`` or ``text``.
        shape: of one input; of an image its channels, height and width.
        samples: how many there are to train on.
        classes: how many there are.
        tested: whether there is a part to test on.
    """

    kind: str
    shape: tuple[int, ...]
    samples: int
    classes: int
    tested: bool

    @property
    def usual_holdout(self) -> float:
        """The part to hold out of the training set: none where there is something to test on."""
        return 0.0 if self.tested else suited_holdout(self.samples)

    def protocol(self, holdout: float) -> Protocol:
        """What a run takes for settings that it was not given."""
        return suited(self.kind, self.shape, self.samples, holdout)


def suited(kind: str, shape: Sequence[int], samples: int, holdout: float = 0.0) -> Protocol:
    """What a run takes for settings that it was not given.

    Args:
        kind: of the inputs: ``image``, ``features``, ``tokens`` or ``text``.
        shape: of one input; of an image its channels, height and width.
        samples: how many there are to train on.
        holdout: the part of them that is held out.

    >>> suited("features", (20,), 5000).model, suited("image", (3, 64, 64), 5000).model
    ('mlp', 'resnet18-imagenet')
    """
    batch = 128 if samples >= 5_000 else 32 if samples >= 500 else 16
    steps = -(-samples // batch)
    epochs = min(_MOST, max(_FEWEST, round(_STEPS[kind] / steps)))
    batch = whole_batch(samples - round(samples * holdout), batch)
    if kind in ("tokens", "text"):
        return Protocol("bag", epochs, 2e-3, 0.0, batch, optimizer="adamw")
    if kind == "features" and len(shape) != 3:
        return Protocol("mlp", epochs, 1e-3, 0.01, batch, optimizer="adamw")
    channels, height, width = shape
    side = min(height, width)
    flip = channels == 3  # a mirrored digit or letter is another one
    crop = side // 8
    if side < _SMALL_IMAGE:
        return Protocol("mlp", epochs, 0.01, 5e-3, batch)
    if height != width or side > _IMAGE:
        model = "resnet18-imagenet" if side > _IMAGE else "resnet18"
        return Protocol(model, epochs, 0.05, 1e-4, batch, crop=crop, flip=flip)
    if channels == 1 and side <= 28:
        return Protocol("cnn4", epochs, 0.01, 1e-3, batch)
    return Protocol("cnn8", epochs, 0.01, 1e-4, batch, crop=crop, flip=flip)


def whole_batch(samples: int, batch: int) -> int:
    """The batch size, or the next that leaves no last batch of one, which has no statistics.

    >>> whole_batch(128, 16), whole_batch(129, 16)
    (16, 17)
    """
    while samples > 1 and samples % batch == 1:
        batch += 1
    return batch


def suited_holdout(samples: int) -> float:
    """The part to hold out of the training set where there is nothing to test on."""
    return HOLDOUT if samples < _MANY else HOLDOUT / 2
