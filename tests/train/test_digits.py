"""What the library is for, in seconds."""

from __future__ import annotations

import pytest

from noiseproof.train import Run, fit


@pytest.mark.slow
def test_a_normalised_loss_stands_the_noise_that_cross_entropy_learns():
    """Digits with three labels in five drawn anew, as by the command line's defaults."""
    nce, ce = (fit(Run(rate=0.6, loss=loss, device="cpu")) for loss in ("nce", "ce"))
    assert nce.accuracy > 0.85
    assert ce.accuracy < 0.60
    assert ce.history[-1]["memorised"] > 3 * nce.history[-1]["memorised"]
