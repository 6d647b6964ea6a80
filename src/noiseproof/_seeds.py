"""One seed for a run, and from it an independent one for each thing that is drawn."""

from __future__ import annotations

import hashlib


def derive(seed: int, *purpose: str | int) -> int:
    """A seed of 63 bits for one purpose, such as ``derive(0, "order", epoch)``.

    Two losses that are compared meet the same noise, the same start and the same batches because
    each of these is drawn from its own seed; a run that is taken up again at an epoch needs no
    state of a generator, because the epoch is part of the purpose.

    >>> derive(0, "order", 1) != derive(0, "order", 2) != derive(1, "order", 2)
    True
    """
    text = "\0".join(map(str, (int(seed), *purpose)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
