"""Bad input gets one clear line that says what was given, what was expected and what to do."""

from __future__ import annotations

import pytest
import torch

import noiseproof
from noiseproof import functional

RANDOM = torch.Generator().manual_seed(0)
LOGITS = torch.randn(8, 5, generator=RANDOM)
TARGET = torch.randint(5, (8,), generator=RANDOM)


def one_line(error, message, call):
    with pytest.raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("logits", "target", "error", "message"),
    [
        (
            LOGITS,
            TARGET + 5,
            IndexError,
            r"class index \d is out of range for 5 classes \(0 to 4\)",
        ),
        (LOGITS, TARGET - 9, IndexError, r"class index -\d is out of range for 5 classes"),
        (LOGITS, TARGET[:3], ValueError, r"logits \[8, 5\] .* indices .* \[8\] .* shape was \[3\]"),
        (LOGITS, TARGET[:, None], ValueError, r"shape was \[8, 1\]"),
        (LOGITS, TARGET.float(), TypeError, r"it was torch.float32: .* target.long\(\)"),
        (LOGITS, TARGET.bool(), TypeError, r"it was torch.bool"),
        (LOGITS, torch.eye(5)[TARGET].long(), TypeError, r"one-hot, give target.argmax\(1\)"),
        (LOGITS, torch.rand(8, 4), ValueError, r"shape was \[8, 4\]"),
        (LOGITS, TARGET.tolist(), TypeError, r"the target must be a tensor; it was list"),
        (LOGITS.tolist(), TARGET, TypeError, r"logits must be a floating-point tensor"),
        (LOGITS.long(), TARGET, TypeError, r"logits must be .*; they were torch.int64"),
        (torch.tensor(1.0), torch.tensor(0), ValueError, r"had no dimension"),
        (LOGITS[:, :1], TARGET, ValueError, r"binary problem .* torch.stack\(\[torch.zeros_like"),
        (LOGITS[:, 0], TARGET, TypeError, r"if these are 8 samples of one logit each, give z ="),
        (torch.zeros(8, 0), TARGET, ValueError, r"at least 2"),
    ],
)
@pytest.mark.parametrize("text", ["ce", "nce + rce", "nfl"])
def test_logits_and_targets(text, logits, target, error, message):
    one_line(error, message, lambda: noiseproof.parse(text)(logits, target))


def test_the_binary_remedy_works():
    logits, labels = torch.randn(8, 1), torch.randint(2, (8,))
    z = logits.flatten()
    value = noiseproof.CrossEntropy()(torch.stack([torch.zeros_like(z), z], dim=1), labels)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(z, labels.float())
    torch.testing.assert_close(value, expected)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        (
            {"reduction": "avg"},
            ValueError,
            r"reduction must be one of mean, sum, none; it was 'avg'",
        ),
        ({"label_smoothing": 1.5}, ValueError, r"label_smoothing must be from 0 to 1; it was 1.5"),
        ({"label_smoothing": "a"}, ValueError, r"label_smoothing must be from 0 to 1"),
        ({"ignore_index": 1.5}, TypeError, r"ignore_index must be an integer; it was 1.5"),
        ({"weight": [1.0, -1.0]}, ValueError, r"weight must be finite and not negative"),
        ({"weight": [1.0, float("nan")]}, ValueError, r"weight must be finite"),
        ({"weight": [0.0, 0.0]}, ValueError, r"weight must not be 0 for every class"),
        (
            {"weight": torch.ones(2, 2)},
            ValueError,
            r"weight must be \[K\].*; its shape was \[2, 2\]",
        ),
        ({"weight": "heavy"}, TypeError, r"weight must be K numbers, one a class; it was 'heavy'"),
        ({"weight": torch.tensor([True])}, TypeError, r"weight must be K numbers"),
        ({"gama": 2}, TypeError, r"fl has no hyper-parameter 'gama' \(did you mean 'gamma'\?\)"),
        ({"gamma": -1}, ValueError, r"fl: gamma = -1 is out of range, gamma >= 0"),
        ({"gamma": float("inf")}, ValueError, r"gamma = inf is out of range"),
        ({"gamma": "2"}, TypeError, r"gamma must be a number, gamma >= 0; it was '2' \(str\)"),
        ({"gamma": True}, TypeError, r"gamma must be a number"),
        ({"gamma": torch.tensor(2.0)}, TypeError, r"gamma must be a number"),
    ],
)
def test_keywords_and_hyperparameters(keywords, error, message):
    one_line(error, message, lambda: noiseproof.FocalLoss(**keywords))


def test_weight_must_fit_the_classes():
    loss = noiseproof.parse("nce", weight=torch.ones(4))
    one_line(ValueError, r"weight has 4 entries, .* 5 classes", lambda: loss(LOGITS, TARGET))


def test_ignore_index_needs_indices():
    loss = noiseproof.parse("nce", ignore_index=3)
    one_line(ValueError, r"sample_weight of 0 instead", lambda: loss(LOGITS, LOGITS.softmax(1)))


@pytest.mark.parametrize(
    ("sample_weight", "message"),
    [
        (torch.ones(3), r"sample_weight must be \[8\]; its shape was \[3\]"),
        (torch.ones(8, 5), r"its shape was \[8, 5\]"),
        (torch.full((8,), -1.0), r"finite and not negative"),
        (torch.full((8,), torch.nan), r"finite and not negative"),
    ],
)
def test_sample_weight(sample_weight, message):
    loss = noiseproof.parse("nce")
    one_line(ValueError, message, lambda: loss(LOGITS, TARGET, sample_weight=sample_weight))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: noiseproof.GeneralizedCrossEntropy(0.5),
            r"hyper-parameters go by name: GeneralizedCrossEntropy\(rho=0.5\)",
        ),
        (
            lambda: functional.generalized_cross_entropy(LOGITS, TARGET, 0.5),
            r"go by name: generalized_cross_entropy\(logits, target, rho=0.5\)",
        ),
        (lambda: noiseproof.CrossEntropy(2), r"2 was given by position.*this one has none"),
        (lambda: noiseproof.FocalLoss("sum"), r"'sum' was given by position"),
        (
            lambda: noiseproof.FocalLoss(torch.ones(5), 2.0),
            r"2 arguments were given by position, .* FocalLoss\(weight, reduction='sum'\)",
        ),
        (lambda: noiseproof.FocalLoss(torch.ones(5), weight=torch.ones(5)), r"give it once"),
        (lambda: functional.focal_loss(LOGITS, TARGET, torch.ones(5), 2), r"by name, as in focal"),
        (lambda: noiseproof.FocalLoss(torch.tensor(2.0)), r"weight must be \[K\]"),
    ],
)
def test_arguments_by_position(call, message):
    one_line(TypeError if "K" not in message else ValueError, message, call)


def test_sample_weight_goes_by_name():
    """By position torch takes class weights in a function, and nothing in a module."""
    for loss in (noiseproof.parse("nce"), noiseproof.FocalLoss()):
        one_line(TypeError, "positional", lambda loss=loss: loss(LOGITS, TARGET, torch.ones(8)))
    gjs = noiseproof.GeneralizedJensenShannon()
    one_line(TypeError, "positional", lambda: gjs(LOGITS, LOGITS, TARGET, torch.ones(8)))
    one_line(
        ValueError,
        r"weight has 8 entries, and the logits have 5 classes",
        lambda: functional.focal_loss(LOGITS, TARGET, torch.ones(8)),
    )


def test_a_reduction_set_later_is_checked_too():
    loss = noiseproof.parse("nce")
    loss.reduction = "avg"
    one_line(ValueError, "reduction must be one of", lambda: loss(LOGITS, TARGET))


def test_numpy_numbers_are_numbers():
    import numpy

    assert noiseproof.FocalLoss(gamma=numpy.float32(2)) == noiseproof.FocalLoss(gamma=2)
    assert numpy.float64(2) * noiseproof.FocalLoss() == noiseproof.parse("2*fl")


@pytest.mark.parametrize(
    ("factor", "error", "message"),
    [
        ("2", TypeError, r"a loss is scaled by a number; it was '2'"),
        (True, TypeError, r"a loss is scaled by a number; it was True"),
        (float("nan"), ValueError, r"the factor of fl is not finite"),
    ],
)
def test_factors(factor, error, message):
    one_line(error, message, lambda: factor * noiseproof.FocalLoss())


@pytest.mark.parametrize("function", [torch.nn.CrossEntropyLoss(), lambda z, y: z])
def test_a_function_of_logits_and_labels_is_no_matrix_of_losses(function):
    with pytest.raises(TypeError, match=r"takes 2 arguments; a function of the logits \[N, K\]"):
        noiseproof.normalize(function)
