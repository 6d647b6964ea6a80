"""``normalize`` of anything, a user's own function included, and what it refuses."""

from __future__ import annotations

import pickle

import pytest
import torch

import noiseproof
import noiseproof.syntax
from noiseproof.losses import from_function, normalize, register

RANDOM = torch.Generator().manual_seed(0)
LOGITS = 3 * torch.randn(16, 6, dtype=torch.float64, generator=RANDOM)
TARGET = torch.randint(6, (16,), generator=RANDOM)


def minus_log_p(logits):
    return -logits.log_softmax(1)


def focal(logits):
    log_p = logits.log_softmax(1)
    return -((1 - log_p.exp()) ** 0.5) * log_p


def hinge(logits):
    return torch.relu(1 - logits)


def squared_margin(logits):
    """Of logits, not of probabilities: it knows no softmax."""
    return (logits.amax(1, keepdim=True) - logits + 1) ** 2


@pytest.mark.parametrize(("function", "name"), [(minus_log_p, "nce"), (focal, "nfl")])
def test_a_function_of_ones_own(function, name):
    ours, declared = normalize(function, reduction="none"), noiseproof.parse(name, reduction="none")
    torch.testing.assert_close(ours(LOGITS, TARGET), declared(LOGITS, TARGET))
    torch.testing.assert_close(ours.per_class(LOGITS), declared.per_class(LOGITS))
    pixels, labels = torch.randn(2, 6, 3, 4), torch.randint(6, (2, 3, 4))
    torch.testing.assert_close(ours(pixels, labels), declared(pixels, labels))
    torch.testing.assert_close(
        ours(pixels[0, :, 0, 0], labels[0, 0, 0]), declared(pixels, labels)[0, 0, 0]
    )
    soft = torch.rand(16, 6, dtype=torch.float64).softmax(1)
    torch.testing.assert_close(ours(LOGITS, soft), declared(LOGITS, soft))


def test_it_takes_part_in_everything():
    loss = 2 * normalize(squared_margin) + noiseproof.ReverseCrossEntropy()
    assert loss.kind == "passive"  # rce is
    assert normalize(squared_margin).kind == "undetermined"
    assert (normalize(squared_margin) + noiseproof.parse("nce")).kind == "undetermined"
    assert str(loss) == "2*normalize(squared_margin) + rce"
    assert loss == 2 * normalize(squared_margin) + noiseproof.ReverseCrossEntropy()
    assert pickle.loads(pickle.dumps(loss)) == loss
    sums = normalize(squared_margin).per_class(LOGITS).sum(1)
    torch.testing.assert_close(sums, torch.ones_like(sums))
    logits = LOGITS.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: loss(z, TARGET), logits)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(LOGITS, TARGET), loss(LOGITS, TARGET))


def test_unnormalized_functions_are_losses_too():
    loss = from_function(minus_log_p, name="mine", label_smoothing=0.1)
    assert str(loss) == "mine"
    expected = torch.nn.functional.cross_entropy(LOGITS, TARGET, label_smoothing=0.1)
    torch.testing.assert_close(loss(LOGITS, TARGET), expected)
    assert normalize(loss).label_smoothing == 0.1


def test_a_registered_function_has_a_text():
    register(squared_margin)
    register(squared_margin)  # again, as a notebook does
    loss = noiseproof.parse("nce + normalize(squared_margin)")
    assert loss == noiseproof.parse("nce") + normalize(squared_margin)
    assert noiseproof.parse(str(loss)) == loss
    entry = noiseproof.losses.registry()["squared_margin"]
    assert entry.kind == "undetermined"
    assert entry.make() == from_function(squared_margin)
    with pytest.raises(ValueError, match="has no hyper-parameter 'a'; it takes none"):
        noiseproof.parse("squared_margin(a=1)")
    noiseproof.losses._module.declared_losses.pop("squared_margin")
    noiseproof.syntax.SIGNATURES.pop("squared_margin")


def test_normal_forms():
    assert normalize(noiseproof.CrossEntropy()) == noiseproof.NormalizedCrossEntropy()
    assert type(normalize(noiseproof.FocalLoss(gamma=2))) is noiseproof.NormalizedFocalLoss
    nce = noiseproof.NormalizedCrossEntropy()
    assert normalize(nce) == nce  # it sums to 1 already
    assert normalize(3 * noiseproof.CrossEntropy()) == nce  # a factor cancels
    assert normalize(noiseproof.CrossEntropy(reduction="sum")).reduction == "sum"


@pytest.mark.parametrize(
    ("loss", "reason"),
    [
        (noiseproof.parse("-ce"), "-ce cannot be normalized: it can be negative"),
        (noiseproof.parse("ce - mae"), "it can be negative"),
        (noiseproof.parse("0*ce"), "its sum over classes can be 0"),
        (hinge, "hinge cannot be normalized: its sum over classes can be 0"),
        (lambda z: z, "it can be negative"),
        (lambda z: torch.exp(-z), "its sum over classes can be 0"),
        (lambda z: z.sum(1), r"for logits \[\d+, 2\] it gave \[\d+\]"),
        (lambda z: None, "it gave NoneType"),
    ],
)
def test_refused_with_the_reason(loss, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        normalize(loss)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("inner", ["ldr({})", "ce + ldr({})", "logit_clip(ldr({}), tau=1e9)"])
@pytest.mark.parametrize(
    "hyper", ["", "c=17", "c=40", "c=1000", "c=1e6", "lam=0.001", "lam=1e-6, c=1", "lam=1e9"]
)
def test_ldr_is_refused_whatever_its_margin(inner, hyper):
    """Its least value is -lam log K, where the label has the largest logit by more than c."""
    text = inner.format(hyper).replace("()", "")
    with pytest.raises(ValueError, match="cannot be normalized: it can be negative"):
        noiseproof.parse(f"normalize({text})")


def test_a_function_that_is_not_finite_everywhere_is_refused_for_what_it_is_elsewhere():
    def negative_or_nan(logits):  # NaN for large logits, as functions written plainly are
        return logits.exp() / logits.exp().sum(1, keepdim=True) - 0.5

    with pytest.raises(ValueError, match="it can be negative"):
        normalize(negative_or_nan)


@pytest.mark.parametrize("loss", [torch.nn.CrossEntropyLoss, 3, "nce"])
def test_what_is_no_loss(loss):
    with pytest.raises(TypeError, match="a loss or a function of logits"):
        normalize(loss)


def test_a_function_for_one_number_of_classes_is_looked_at_when_called():
    prices = torch.arange(36.0).view(6, 6)

    def expected_cost(logits):  # only for 6 classes, and 0 if only class 0 is ever predicted
        return logits.float().softmax(1) @ prices.T - 30

    loss = normalize(expected_cost)
    with pytest.raises(ValueError, match="it can be negative"):
        loss(LOGITS, TARGET)


def test_class_weights_do_not_enter_the_normalizer():
    weight = torch.arange(1.0, 7.0)
    plain = noiseproof.NormalizedCrossEntropy(reduction="none")
    weighted = noiseproof.NormalizedCrossEntropy(reduction="none", weight=weight)
    torch.testing.assert_close(weighted(LOGITS, TARGET), weight[TARGET] * plain(LOGITS, TARGET))


class Costs(torch.nn.Module):
    """A loss with state: the expected cost of a prediction, the costs given as a buffer."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.register_buffer("costs", torch.rand(num_classes, num_classes) + 0.1)

    def forward(self, logits):
        return logits.softmax(1) @ self.costs.to(logits.dtype)


def test_a_function_with_state_moves_and_is_saved_with_the_loss():
    loss = 2 * normalize(Costs(6)) + noiseproof.parse("rce")
    assert str(loss) == "2*normalize(Costs) + rce"
    assert list(loss.state_dict()) == ["functions.0.costs"]
    again = pickle.loads(pickle.dumps(loss))
    assert torch.equal(again(LOGITS, TARGET), loss(LOGITS, TARGET))
    loss.double()
    assert loss.expression.functions()[0].costs.dtype == torch.float64
    assert loss(LOGITS, TARGET).dtype == torch.float64


def test_a_callable_object_need_not_be_hashable():
    class Focal:
        __hash__ = None

        def __call__(self, logits):
            return focal(logits)

    loss = normalize(Focal()) + noiseproof.parse("rce")
    torch.testing.assert_close(loss(LOGITS, TARGET), noiseproof.parse("nfl + rce")(LOGITS, TARGET))
