"""What is measured of an epoch, against literal definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from noiseproof.results import Folder
from noiseproof.train import fit
from noiseproof.train._measure import accuracy, calibration_error, first_nonfinite, fit_to_labels

from .subjects import tiny


def literal_ece(logits: np.ndarray, labels: np.ndarray, bins: int = 15) -> float:
    """Guo et al., ICML 2017: the mean over bins of |accuracy - confidence|, by their size."""
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    confidence, right = p.max(1), p.argmax(1) == labels
    edges = np.linspace(0, 1, bins + 1)
    error = 0.0
    for low, high in itertools.pairwise(edges):
        inside = (confidence > low) & (confidence <= high)
        if inside.any():
            gap = abs(right[inside].mean() - confidence[inside].mean())
            error += gap * inside.mean()
    return error


@pytest.mark.parametrize("scale", [0.1, 1, 5, 30])
def test_the_calibration_error_is_the_literal_one(scale):
    logits, labels = scale * torch.randn(500, 10), torch.randint(10, (500,))
    found = float(calibration_error(logits, labels))
    assert found == pytest.approx(literal_ece(logits.double().numpy(), labels.numpy()), abs=1e-5)


def test_certainty_is_calibrated_where_it_is_right():
    logits = 1e4 * torch.eye(4)
    assert float(calibration_error(logits, torch.arange(4))) == 0
    assert float(calibration_error(logits, (torch.arange(4) + 1) % 4)) == 1
    assert math.isnan(calibration_error(torch.full((2, 3), math.nan), torch.zeros(2).long()))


def test_accuracies_and_memory():
    clean = torch.tensor([0, 1, 2, 3, 0, 1])
    given = torch.tensor([0, 1, 2, 0, 1, 2])  # the last three are wrong
    predicted = torch.tensor([0, 1, 0, 3, 1, 0])  # right, memorised, neither
    found = {k: float(v) for k, v in fit_to_labels(predicted, given, clean).items()}
    third = pytest.approx(1 / 3)
    assert found == {
        "train_accuracy": pytest.approx(3 / 6),
        "train_accuracy_clean": pytest.approx(3 / 6),
        "wrong_accuracy": third,
        "memorised": third,
    }
    assert float(accuracy(torch.eye(3), torch.tensor([0, 1, 1]))) == pytest.approx(2 / 3)


def test_clean_labels_have_no_share_of_wrong_ones(tmp_path):
    """Not 0, which would say that none was memorised: NaN, in the file as well."""
    run = tiny(noise="none")
    result = fit(run, out=tmp_path)
    read = Folder(result.folder).read_history()
    assert len(read) == 2
    for row in (*result.history, *read, *fit(run, out=tmp_path).history):
        assert math.isnan(row["memorised"])
        assert math.isnan(row["wrong_accuracy"])
        assert row["train_accuracy"] == row["train_accuracy_clean"]
    assert Folder(result.folder).read_json("result.json")["memorised"] is None


@pytest.mark.parametrize(
    ("losses", "first"),
    [
        ([1.0, 2.0], -1),
        ([math.nan, 2.0], 0),
        ([1.0, math.inf, math.nan], 1),
        ([1.0, 2.0, -math.inf], 2),
    ],
)
def test_the_first_loss_that_is_no_number(losses, first):
    assert int(first_nonfinite(torch.tensor(losses))) == first
