"""Text is read and never run; what cannot be read gets one clear line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noiseproof

from .subjects import NAMES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nxe", r"unknown loss 'nxe' \(did you mean 'nce'\?\)"),
        ("nce + rcce", r"unknown loss 'rcce' \(did you mean 'rce'\?\)"),
        ("normalise(ce)", r"did you mean 'normalize'\?"),
        ("CrossEntropyLoss", r"unknown loss 'CrossEntropyLoss' \(did you mean 'ce'\?\)"),
        ("nce + focal_loss", r"unknown loss 'focal_loss' \(did you mean 'fl'\?\)"),
        ("ce, gce", "a text is one loss; several stand apart"),
        ("fl(gama=2)", r"fl has no hyper-parameter 'gama' \(did you mean 'gamma'\?\)"),
        ("ce(gamma=2)", r"it takes none"),
        ("fl(gamma=-1)", r"fl: gamma = -1 is out of range, gamma >= 0"),
        ("gce(rho=0)", r"gce: rho = 0 is out of range, 0 < rho <= 1"),
        ("rce(A=4)", r"rce: A = 4 is out of range, A < 0"),
        ("fl(2)", r"hyper-parameters go by name"),
        ("fl(gamma=nce)", r"are numbers"),
        ("fl(gamma='2')", r"'\"2\"'|\"'2'\" is neither a loss nor a number"),
        ("fl(gamma=True)", r"neither a loss nor a number"),
        ("fl(**{})", r"are numbers"),
        ("fl(gamma=1, gamma=2)", r"gamma is given twice; leave one out"),
        ("2*sce(alpha=1, beta=2, alpha=1) + ce", r"alpha is given twice"),
        ("epsilon_softmax(ce, m=1, m=2)", r"m is given twice"),
        ("nce*rce", r"not multiplied"),
        ("nce/2", r"write 0.5\*nce"),
        ("nce**2", r"neither a loss nor a number"),
        ("nce + 1", r"a number is added"),
        ("2", r"is a number, not a loss"),
        ("", r"cannot read the loss ''"),
        ("nce +", r"cannot read the loss"),
        ("nce rce", r"cannot read the loss"),
        ("nce\x00", r"cannot read the loss"),
        ("normalize()", r"normalize takes one loss"),
        ("normalize(2)", r"normalize takes one loss"),
        ("normalize(ce, mae)", r"normalize takes one loss"),
        ("normalize", r"normalize takes one loss"),
        ("1e999*nce", r"the factor of nce is not finite"),
        ("1e200*(1e200*nce)", r"the factor of nce is not finite"),
        ("9" * 400 + "*nce", r"too large"),
        ("nce" + "+nce" * 1000, r"too long"),
        ("(" * 400 + "nce" + ")" * 400, r"cannot read the loss"),
        ("__import__('os').system('true')", r"neither a loss nor a number"),
        ("__import__('os')", r"unknown loss '__import__'"),
        ("[nce for nce in ()]", r"neither a loss nor a number"),
        ("(lambda: nce)()", r"neither a loss nor a number"),
        ("nce.__class__", r"neither a loss nor a number"),
        ("nce if nce else rce", r"neither a loss nor a number"),
        ("(x := nce)", r"neither a loss nor a number"),
    ],
)
def test_what_cannot_be_read(text, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        noiseproof.parse(text)
    assert "\n" not in str(caught.value)


def test_not_text():
    with pytest.raises(TypeError, match="a loss is given as a text; it was int"):
        noiseproof.parse(3)


def test_spaces_and_case_do_not_matter():
    expected = noiseproof.parse("10*nce + 0.1*rce(A=-4)")
    assert noiseproof.parse("  10 * NCE+.1*Rce( A = -4 )\n") == expected


def test_keywords_belong_to_the_whole():
    loss = noiseproof.parse("nce+rce", reduction="none")
    assert loss.reduction == "none"
    with pytest.raises(TypeError):
        noiseproof.parse("nce", gamma=2)


NORMALIZABLE = [n for n in NAMES if n not in ("unhinged", "ldr")]  # those can be negative
numbers = st.floats(0.01, 100).map(repr)
leaves = st.sampled_from(NAMES) | st.builds("fl(gamma={})".format, numbers)
texts = st.recursive(
    leaves,
    lambda inner: (
        st.builds("{} + {}".format, inner, inner)
        | st.builds("{}*({})".format, numbers, inner)
        | st.builds("({}) - {}".format, inner, leaves)
        | st.builds("normalize({})".format, st.sampled_from(NORMALIZABLE))
    ),
    max_leaves=6,
)


@given(texts)
@settings(max_examples=200, deadline=None)
def test_any_loss_survives_its_text(text):
    loss = noiseproof.parse(text)
    assert noiseproof.parse(str(loss)) == loss


@given(st.text(max_size=40) | st.text(alphabet="nce+*()=.,-19 []{}'\"\\_:", max_size=30))
@settings(max_examples=300, deadline=None)
@pytest.mark.slow
def test_any_text_is_a_loss_or_a_clear_line(text):
    try:
        loss = noiseproof.parse(text)
    except (ValueError, TypeError):
        return
    assert noiseproof.parse(str(loss)) == loss
