"""``torch.nn.CrossEntropyLoss``'s conventions: torch itself for CE, a slow twin for the rest."""

from __future__ import annotations

import itertools

import pytest
import torch

import noiseproof
from noiseproof import functional
from noiseproof.losses import _conventions

from . import reference
from .subjects import MAPPED, SUBJECTS

REDUCTIONS = ["mean", "sum", "none"]
WEIGHT = torch.tensor([0.5, 2.0, 0.0, 1.0, 3.0], dtype=torch.float64)


def both_gradients(ours, theirs, logits, **checks):
    torch.testing.assert_close(ours, theirs, equal_nan=True, **checks)
    if not bool(torch.isfinite(theirs).all()):
        return
    (a,) = torch.autograd.grad(ours.sum(), logits)
    (b,) = torch.autograd.grad(theirs.sum(), logits)
    torch.testing.assert_close(a, b, **checks)


@pytest.mark.parametrize("shape", [(5,), (8, 5), (2, 5, 3), (2, 5, 3, 2)])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 1.0])
def test_cross_entropy_is_torchs(shape, reduction, weight, label_smoothing, backward, device):
    weight = None if weight is None else weight.to(device)
    keywords = {"weight": weight, "reduction": reduction, "label_smoothing": label_smoothing}
    ours = noiseproof.CrossEntropy(**keywords).to(device)
    theirs = torch.nn.CrossEntropyLoss(**keywords).to(device)
    logits = torch.randn(shape, dtype=torch.float64, device=device, requires_grad=True)
    index_shape = shape[:1] + shape[2:] if len(shape) > 1 else ()
    labels = torch.randint(5, index_shape, device=device)
    scores = torch.rand(shape, dtype=torch.float64, device=device)
    probabilities = scores.softmax(min(1, len(shape) - 1))
    for target in (labels, probabilities):
        both_gradients(ours(logits, target), theirs(logits, target), logits)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("ignore_index", [-100, -1, 2, 255])
@pytest.mark.parametrize("ignored", ["none", "some", "all"])
def test_ignore_index_is_torchs(
    reduction, weight, label_smoothing, ignore_index, ignored, backward, device
):
    keywords = {
        "weight": None if weight is None else weight.to(device),
        "reduction": reduction,
        "label_smoothing": label_smoothing,
        "ignore_index": ignore_index,
    }
    logits = torch.randn(8, 5, 2, dtype=torch.float64, device=device, requires_grad=True)
    target = torch.randint(3, (8, 2), device=device)
    if ignored != "none":
        target[::2] = ignore_index
    if ignored == "all":
        target[:] = ignore_index
    ours = noiseproof.CrossEntropy(**keywords)(logits, target)
    theirs = torch.nn.CrossEntropyLoss(**keywords)(logits, target)
    both_gradients(ours, theirs, logits)


@pytest.mark.parametrize("keywords", [{}, {"reduction": "sum"}, {"ignore_index": 2}])
def test_a_pasted_call_is_torchs(keywords):
    """With as many samples as classes, weights of classes and of samples have one shape."""
    logits, target, weight = torch.randn(5, 5), torch.randint(5, (5,)), torch.rand(5)
    theirs = torch.nn.functional.cross_entropy(logits, target, weight, **keywords)
    ours = functional.cross_entropy(logits, target, weight, **keywords)
    torch.testing.assert_close(ours, theirs)
    module = torch.nn.CrossEntropyLoss(weight, **keywords)
    torch.testing.assert_close(noiseproof.CrossEntropy(weight, **keywords)(logits, target), theirs)
    torch.testing.assert_close(module(logits, target), theirs)
    focal = noiseproof.FocalLoss(weight, gamma=0, **keywords)
    torch.testing.assert_close(focal(logits, target), theirs)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("label", [2, -100])
def test_the_label_of_one_sample_may_have_a_dimension(reduction, label):
    logits, target = torch.randn(5), torch.tensor([label])
    ours = noiseproof.CrossEntropy(reduction=reduction)(logits, target)
    try:
        theirs = torch.nn.CrossEntropyLoss(reduction=reduction)(logits, target)
    except RuntimeError:  # torch 2.6
        theirs = torch.nn.CrossEntropyLoss(reduction=reduction)(logits, target[0]).view_as(ours)
    torch.testing.assert_close(ours, theirs, equal_nan=True)
    smooth = noiseproof.parse("nce + rce", reduction=reduction, label_smoothing=0.1)
    torch.testing.assert_close(smooth(logits, target), smooth(logits, target[0]), equal_nan=True)


@pytest.fixture
def not_warned(monkeypatch):
    monkeypatch.setattr(_conventions, "_warned_of_sums", False, raising=False)


@pytest.mark.parametrize("shape", [(8, 5), (5,), (2, 5, 3)])
def test_targets_that_are_no_probabilities_warn_once(shape, not_warned):
    loss, logits = noiseproof.parse("nce + rce"), torch.randn(shape)
    several = torch.zeros(shape)
    several.select(min(1, len(shape) - 1), 1).fill_(1)
    loss(logits, several)  # one label a sample
    loss(logits, torch.randn(shape).softmax(min(1, len(shape) - 1)).half())
    several.select(min(1, len(shape) - 1), 3).fill_(1)
    with pytest.warns(
        UserWarning, match=r"sum to 2, not 1; .* several labels, .* \[N, L\]"
    ) as found:
        loss(logits, several)
    loss(logits, several)  # a warning would be an error
    assert found[0].filename == __file__
    assert "\n" not in str(found[0].message)


def test_no_warning_where_there_are_no_values(not_warned):
    loss, logits = noiseproof.parse("nce"), torch.randn(4, 5)
    torch.func.vmap(loss)(logits, torch.ones(4, 5))
    torch._dynamo.reset()
    torch.compile(loss, fullgraph=True, backend="aot_eager")(logits, torch.ones(4, 5))


@pytest.mark.filterwarnings("ignore:the class probabilities")
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_probabilities_of_any_sum_are_torchs(reduction):
    logits, target = torch.randn(8, 5), 2 * torch.rand(8, 5)
    for keywords in ({}, {"weight": torch.rand(5)}, {"label_smoothing": 0.1}):
        ours = noiseproof.CrossEntropy(reduction=reduction, **keywords)(logits, target)
        theirs = torch.nn.CrossEntropyLoss(reduction=reduction, **keywords)(logits, target)
        torch.testing.assert_close(ours, theirs)


def test_several_labels_a_sample_as_the_readme_writes_them():
    z, labels = torch.randn(8, 3), torch.randint(2, (8, 3))
    logits = torch.stack([torch.zeros_like(z), z], dim=1)
    theirs = torch.nn.functional.binary_cross_entropy_with_logits(z, labels.float())
    torch.testing.assert_close(noiseproof.CrossEntropy()(logits, labels), theirs)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(0, 5), (0, 5, 3), (2, 5, 0)])
@pytest.mark.parametrize("text", ["ce", "nce + rce", "nfl"])
def test_a_batch_of_nothing_is_torchs(reduction, shape, text):
    logits = torch.randn(shape, requires_grad=True)
    index_shape = shape[:1] + shape[2:]
    theirs = torch.nn.CrossEntropyLoss(reduction=reduction)
    ours = noiseproof.parse(text, reduction=reduction)
    for target in (torch.zeros(index_shape, dtype=torch.long), torch.zeros(shape)):
        expected = theirs(logits, target)
        value = ours(logits, target)
        torch.testing.assert_close(value, expected, equal_nan=True)
        value.sum().backward()


@pytest.mark.parametrize("text", [*SUBJECTS, *MAPPED])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_conventions_hold_for_every_loss(text, reduction, device):
    logits = 2 * torch.randn(12, 5, dtype=torch.float64)
    labels = torch.randint(5, (12,))
    labels[[0, 3]] = -100
    probabilities = torch.rand(12, 5, dtype=torch.float64).softmax(1)
    matrix = noiseproof.parse(text).per_class(logits)
    for target, weight, smoothing in itertools.product(
        (labels, probabilities), (None, WEIGHT), (0.0, 0.2)
    ):
        keywords = {"weight": weight, "reduction": reduction, "label_smoothing": smoothing}
        loss = noiseproof.parse(text, **keywords).to(device)
        expected = reference.conventional(matrix, target, **keywords)
        value = loss(logits.to(device), target.to(device))
        torch.testing.assert_close(value.cpu(), expected)


@pytest.mark.parametrize("text", [*SUBJECTS, *MAPPED])
def test_classes_at_dimension_one(text, backward):
    loss = noiseproof.parse(text, reduction="none")
    logits = torch.randn(2, 5, 3, 4, requires_grad=True)
    target = torch.randint(5, (2, 3, 4))
    flat = logits.movedim(1, -1).reshape(-1, 5)
    both_gradients(loss(logits, target), loss(flat, target.flatten()).view(2, 3, 4), logits)
    assert loss.per_class(logits).shape == logits.shape
    assert loss.per_class(logits[0, :, 0, 0]).shape == (5,)
    one = loss(logits[0, :, 0, 0], target[0, 0, 0])
    assert one.shape == ()
    torch.testing.assert_close(one, loss(logits, target)[0, 0, 0])


@pytest.mark.parametrize(
    "dtype",
    [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32],
)
def test_any_integer_type_is_an_index(dtype):
    logits, target = torch.randn(8, 5), torch.randint(5, (8,))
    loss = noiseproof.parse("nce + rce")
    assert loss(logits, target.to(dtype)) == loss(logits, target)


def test_ignore_index_of_small_integers():
    target = torch.tensor([0, 255, 2, 255], dtype=torch.uint8)
    loss = noiseproof.parse("nce + rce", ignore_index=255)
    logits = torch.randn(4, 5)
    torch.testing.assert_close(loss(logits, target), loss(logits[::2], target[::2]))


@pytest.mark.parametrize("text", [*SUBJECTS, *MAPPED])
def test_layout_in_memory_does_not_matter(text, backward):
    loss = noiseproof.parse(text)
    logits, target = torch.randn(6, 5, 4), torch.randint(5, (6, 4))
    expected = loss(logits, target)
    scattered = torch.randn(4, 5, 12).permute(2, 1, 0)[::2].copy_(logits)
    labels = torch.zeros(6, 8, dtype=torch.long)[:, ::2].copy_(target)
    assert not scattered.is_contiguous()
    assert not labels.is_contiguous()
    scattered.requires_grad_()
    value = loss(scattered, labels)
    torch.testing.assert_close(value, expected)
    value.backward()
    logits.requires_grad_()
    loss(logits, target).backward()
    torch.testing.assert_close(scattered.grad, logits.grad)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("probabilities", [False, True])
def test_a_sample_of_weight_two_counts_twice(reduction, weight, probabilities, device):
    loss = noiseproof.parse("nce + rce", reduction=reduction, weight=weight).to(device)
    logits = torch.randn(6, 5, dtype=torch.float64, device=device)
    target = torch.randint(5, (6,), device=device)
    if probabilities:
        target = torch.rand(6, 5, dtype=torch.float64, device=device).softmax(1)
    times = torch.tensor([2, 0, 1, 3, 0, 1], device=device)
    weighted = loss(logits, target, sample_weight=times)
    if reduction == "none":
        expected = times * loss(logits, target)
    else:
        repeated = torch.repeat_interleave(torch.arange(6, device=device), times)
        expected = loss(logits[repeated], target[repeated])
    torch.testing.assert_close(weighted, expected)


def test_sample_weight_shapes():
    loss = noiseproof.parse("nce")
    logits, target = torch.randn(2, 5, 3), torch.randint(5, (2, 3))
    by_sample = torch.tensor([1.0, 3.0])
    by_pixel = by_sample[:, None].expand(2, 3)
    value = loss(logits, target, sample_weight=by_sample)
    assert value == loss(logits, target, sample_weight=by_pixel)
    one = loss(logits[0, :, 0], target[0, 0], sample_weight=torch.tensor(2.0))
    torch.testing.assert_close(one, loss(logits[0, :, 0], target[0, 0]))


def test_weight_is_a_buffer():
    loss = noiseproof.parse("nce + rce", weight=torch.ones(5))
    assert list(loss.state_dict()) == ["weight"]
    assert list(noiseproof.parse("nce + rce").state_dict()) == []
    assert loss.double().weight.dtype == torch.float64
    assert loss.to("meta").weight.device.type == "meta"
    other = noiseproof.parse("nce + rce", weight=[1, 2, 3, 4, 5])
    other.load_state_dict({"weight": torch.full((5,), 2.0)})
    assert other.weight.tolist() == [2.0] * 5


def test_keywords_can_be_changed_like_torchs():
    loss = noiseproof.NormalizedCrossEntropy()
    loss.reduction = "none"
    assert loss(torch.randn(4, 5), torch.randint(5, (4,))).shape == (4,)
