"""The text of a loss without torch: its tree, its canonical text, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import noiseproof
from noiseproof import UsageError, syntax
from noiseproof.syntax import FORMS, SIGNATURES, Leaf, Sum, Wrapped


def test_no_torch_and_no_numpy():
    code = (
        "import sys; from noiseproof import syntax, catalogue, runs, results, report, bench\n"
        "syntax.canonical('nce + rce'); runs.Run().resolve().hash; bench.bench('quick').cells\n"
        "sys.exit(bool({'torch', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RCE + NCE", "nce + rce(A=-4)"),
        ("rce(A=-4) + 10*normalize(ce)", "10*nce + rce(A=-4)"),
        ("2*(ce - mae)", "2*ce - 2*mae"),
        ("nce + nce", "2*nce"),
        ("normalize(nce)", "nce"),
        ("normalize(3*gce)", "ngce(rho=0.7)"),
        ("normalize(2*nce + 3*normalize(ce))", "nce"),
        ("normalize(ce + mae)", "normalize(ce + mae)"),
        ("symmetrize(ce)", "unhinged"),
        ("5*mae + .01*epsilon_softmax(ce, m=1e5)", "0.01*epsilon_softmax(ce, m=100000) + 5*mae"),
        ("nfl(gamma=2) + 1.0*mae", "nfl(gamma=2) + mae"),
        ("-ce", "-ce"),
    ],
)
def test_canonical(text, expected):
    assert syntax.canonical(text) == expected
    assert syntax.canonical(expected) == expected


def test_a_tree():
    tree = syntax.read("2*normalize(fl(gamma=2)) + mae")
    inner = Leaf("fl", (("gamma", 2.0),))
    assert tree == Sum(((2.0, Wrapped("normalize", inner)), (1.0, Leaf("mae"))))
    assert [leaf.name for leaf in syntax.leaves(tree)] == ["fl", "mae"]
    assert syntax.short(tree) == "2*normalize(fl(gamma=2)) + mae"


def losses() -> st.SearchStrategy[str]:
    """Random texts: sums of scaled, wrapped losses with hyper-parameters in their range."""
    number = st.sampled_from(["0.1", "1", "2", "1e-3", "10"])
    names = [n for n, s in SIGNATURES.items() if s.listed and not s.user]
    leaf = st.sampled_from(names)

    def hyper(name: str) -> st.SearchStrategy[str]:
        declared = list(SIGNATURES[name].hyper.items())
        if not declared:
            return st.just(name)
        key, h = declared[0]
        return st.sampled_from([name, f"{name.upper()}({key}={h.default!r})"])

    wrapped = st.sampled_from(["softplus", "logit_clip", "symmetrize"])
    term = leaf.flatmap(hyper)
    term = term | st.builds(lambda w, x: f"{w}({x})", wrapped, term)
    scaled = term | st.builds(lambda c, x: f"{c}*{x}", number, term)
    return st.lists(scaled, min_size=1, max_size=4).map(" + ".join)


@settings(max_examples=60, deadline=None)
@given(losses())
def test_the_canonical_text_is_the_same_loss(text):
    canonical = syntax.canonical(text)
    assert syntax.canonical(canonical) == canonical
    logits, labels = torch.randn(5, 4, dtype=torch.float64), torch.arange(5) % 4
    one, two = noiseproof.parse(text), noiseproof.parse(canonical)
    torch.testing.assert_close(one(logits, labels), two(logits, labels))


@settings(max_examples=60, deadline=None)
@given(losses(), st.randoms())
def test_the_order_of_the_terms_does_not_matter(text, random):
    terms = text.split(" + ")
    random.shuffle(terms)
    assert syntax.canonical(" + ".join(terms)) == syntax.canonical(text)


@pytest.mark.parametrize("text", ["", "nce rce", "nce(", "nce*rce", "__import__('os')", "x" * 2000])
def test_what_is_no_loss_is_one_line(text):
    with pytest.raises(UsageError) as error:
        syntax.read(text)
    assert "\n" not in str(error.value)


def test_signatures_are_those_of_the_declarations():
    for name, entry in noiseproof.losses.registry().items():
        signature = SIGNATURES[name]
        assert signature.kind == entry.kind or signature.user
        assert list(signature.hyper) == list(entry.hyperparameters)
    assert FORMS.keys() == noiseproof.losses._mapped.FORMS.keys()


def test_a_declared_loss_can_be_read():
    class Declared(
        noiseproof.losses.SeparableLoss, name="declared", formula="a (1 - p_y)", reference=""
    ):
        a: float = noiseproof.losses.hyper(default=2.0, above=0)

        @staticmethod
        def summand(p, q, *, a):
            return q * a * (1 - p)

        @staticmethod
        def target(log_p, *, a):
            return -a * torch.expm1(log_p)

    try:
        assert syntax.canonical("declared + nce") == "nce + declared(a=2)"
        assert syntax.uses_user_losses(syntax.read("nce + declared(a=3)"))
        assert not syntax.uses_user_losses(syntax.read("nce + rce"))
        with pytest.raises(UsageError, match="declared: a = -1 is out of range, a > 0"):
            syntax.read("declared(a=-1)")
    finally:
        del SIGNATURES["declared"], noiseproof.losses._module.declared_losses["declared"]
