"""Classes, functions and text are three faces of one object."""

from __future__ import annotations

import copy
import inspect
import pickle
import re

import pytest
import torch

import noiseproof
from noiseproof import functional
from noiseproof.losses import Hyper, Loss, MatrixLoss

from .subjects import ENTRIES, EVERY, MAPPED, NAMES, SUBJECTS, inside

RANDOM = torch.Generator().manual_seed(0)
LOGITS = torch.randn(8, 5, generator=RANDOM)
TARGET = torch.randint(5, (8,), generator=RANDOM)
DECLARED = [n for n in NAMES if n != "brier"]


def snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def other_value(hyper: Hyper) -> float:
    values = (hyper.default * 0.5, hyper.default * 1.5, hyper.default + 1)
    return next(v for v in values if inside(hyper, v))


@pytest.mark.parametrize("name", DECLARED)
def test_every_loss_has_three_faces(name):
    entry = ENTRIES[name]
    hyper = {n: other_value(h) for n, h in entry.hyperparameters.items()}
    made = getattr(noiseproof, entry.loss.__name__)(**hyper, reduction="none")
    function = getattr(functional, snake(entry.loss.__name__))
    text = f"{name}({', '.join(f'{n}={v}' for n, v in hyper.items())})" if hyper else name
    parsed = noiseproof.parse(text, reduction="none")
    assert made == parsed
    assert type(made) is type(parsed) is entry.loss
    expected = made(LOGITS, TARGET)
    assert torch.equal(parsed(LOGITS, TARGET), expected)
    assert torch.equal(function(LOGITS, TARGET, **hyper, reduction="none"), expected)
    assert made.hyperparameters == hyper
    for n, value in hyper.items():
        assert getattr(made, n) == value


@pytest.mark.parametrize("name", DECLARED)
def test_signatures_say_what_can_be_given(name):
    cls = ENTRIES[name].loss
    keywords = ["ignore_index", "reduction", "label_smoothing"]
    expected = ["weight", *ENTRIES[name].hyperparameters, *keywords]
    parameters = inspect.signature(cls).parameters
    assert list(parameters) == expected
    assert [n for n, p in parameters.items() if p.kind is not p.KEYWORD_ONLY] == ["weight"]
    function = getattr(functional, snake(cls.__name__))
    parameters = inspect.signature(function).parameters
    assert list(parameters) == ["logits", "target", *expected, "sample_weight"]
    by_position = [n for n, p in parameters.items() if p.kind is not p.KEYWORD_ONLY]
    assert by_position == ["logits", "target", "weight"]  # those of torch's function
    assert cls.__name__ in function.__doc__
    assert cls.__doc__
    assert ".. math::" in cls.__doc__
    assert ">>>" in cls.__doc__


def documented_args(documented: type) -> dict[str, str]:
    """The ``Args:`` section of a docstring: the text of each argument, on one line."""
    text = inspect.cleandoc(documented.__doc__ or "")
    section = re.search(r"^Args:\n((?: {4}.*\n?)+)", text, flags=re.MULTILINE)
    items = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", section[1] if section else "", flags=re.M)
    return {name: " ".join(about.split()) for name, about in items}


@pytest.mark.parametrize("name", DECLARED)
def test_docstrings_state_the_range_and_default_of_each_hyperparameter(name):
    documented, declared = documented_args(ENTRIES[name].loss), ENTRIES[name].hyperparameters
    assert list(documented) == list(declared)
    for n, hyper in declared.items():
        assert hyper.range in documented[n]
        assert documented[n].endswith(f"Default: {hyper.default:g}.")


def test_the_loss_of_two_views_is_documented_likewise():
    about = documented_args(noiseproof.GeneralizedJensenShannon)["pi"]
    pi = noiseproof.JensenShannon.pi
    assert pi.range in about
    assert about.endswith(f"Default: {pi.default:g}.")


def test_function_takes_every_convention():
    weight, times = torch.rand(5), torch.rand(8)
    keywords = {"gamma": 2.0, "ignore_index": 3, "label_smoothing": 0.2}
    loss = noiseproof.NormalizedFocalLoss(weight, **keywords)
    function = functional.normalized_focal_loss
    value = function(LOGITS, TARGET, weight, sample_weight=times, **keywords)
    assert value == loss(LOGITS, TARGET, sample_weight=times)
    assert value == function(LOGITS, TARGET, weight=weight, sample_weight=times, **keywords)
    with pytest.raises(TypeError, match=r"no hyper-parameter 'gama' \(did you mean 'gamma'\?\)"):
        functional.focal_loss(LOGITS, TARGET, gama=2.0)
    with pytest.raises(ValueError, match="reduction must be one of"):
        functional.focal_loss(LOGITS, TARGET, reduction="avg")


@pytest.mark.parametrize("text", EVERY)
def test_text_parses_back(text):
    loss = noiseproof.parse(text, ignore_index=7)
    again = noiseproof.parse(str(loss), **loss.keywords)
    assert again == loss
    assert str(again) == str(loss)
    assert type(again) is type(loss)


@pytest.mark.parametrize("text", [*SUBJECTS, *MAPPED])
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_are_equal(text, copied):
    loss = noiseproof.parse(text, weight=torch.rand(5), reduction="sum")
    again = copied(loss)
    assert again == loss
    assert torch.equal(again(LOGITS, TARGET), loss(LOGITS, TARGET))


def test_algebra():
    nce, rce = noiseproof.NormalizedCrossEntropy(), noiseproof.ReverseCrossEntropy(A=-4)
    loss = 10 * nce + 0.1 * rce
    assert loss == noiseproof.parse("10*nce + 0.1*rce(A=-4)")
    assert str(loss) == "10*nce + 0.1*rce"
    assert repr(loss) == "Loss('10*nce + 0.1*rce')"
    expected = 10 * nce(LOGITS, TARGET) + 0.1 * rce(LOGITS, TARGET)
    torch.testing.assert_close(loss(LOGITS, TARGET), expected)

    assert nce + rce == rce + nce == noiseproof.parse("RCE + NCE")
    assert nce + nce == 2 * nce == nce * 2
    assert 1 * nce == nce
    assert type(1 * nce) is noiseproof.NormalizedCrossEntropy
    assert sum([nce, rce]) == nce + rce
    assert (
        2 * (nce + 3 * rce)
        == noiseproof.parse("2*(nce + 3*rce)")
        == noiseproof.parse("2*nce + 6*rce")
    )
    assert -nce == -1 * nce
    assert str(rce - 0.5 * nce) == "rce - 0.5*nce"
    assert noiseproof.parse("-(nce - rce)") == rce - nce
    assert nce != rce
    assert nce != "nce"
    assert nce != noiseproof.NormalizedCrossEntropy(reduction="sum")


def test_a_weight_of_zero_keeps_its_term():
    loss = noiseproof.parse("0*nce + rce")
    assert str(loss) == "0*nce + rce"
    assert loss.kind == "passive"
    assert noiseproof.parse("nce + 0*rce").kind == "active"


def test_text_keeps_every_digit():
    loss = (
        0.1234567890123456789 * noiseproof.FocalLoss(gamma=1 / 3) + 1e-7 * noiseproof.CrossEntropy()
    )
    assert noiseproof.parse(str(loss)) == loss


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("reduction", "sum"),
        ("ignore_index", 0),
        ("label_smoothing", 0.1),
        ("weight", torch.ones(5)),
    ],
)
def test_losses_of_different_keywords_do_not_add(keyword, value):
    nce = noiseproof.NormalizedCrossEntropy(**{keyword: value})
    with pytest.raises(ValueError, match=f"{keyword} is .* for one and .* for the other"):
        nce + noiseproof.ReverseCrossEntropy()
    total = nce + noiseproof.ReverseCrossEntropy(**{keyword: value})
    assert total == noiseproof.parse("nce + rce", **{keyword: value})
    assert (3 * nce).keywords.keys() == nce.keywords.keys()


@pytest.mark.parametrize("other", [1, 1.0, torch.ones(()), "nce", None])
def test_only_losses_add(other):
    with pytest.raises(TypeError):
        noiseproof.NormalizedCrossEntropy() + other


@pytest.mark.parametrize("factor", [torch.ones(()), noiseproof.parse("nce"), None, "2", True])
def test_only_numbers_scale(factor):
    with pytest.raises(TypeError):
        factor * noiseproof.NormalizedCrossEntropy()


def test_hyperparameters_do_not_change():
    loss = noiseproof.FocalLoss(gamma=2)
    with pytest.raises(AttributeError, match=r"make a new one, FocalLoss\(gamma=3\)"):
        loss.gamma = 3
    assert loss.gamma == 2


def test_representation():
    assert repr(noiseproof.FocalLoss()) == "FocalLoss(gamma=0.5)"
    assert repr(noiseproof.FocalLoss(reduction="sum")) == "FocalLoss(gamma=0.5, reduction='sum')"
    assert str(noiseproof.FocalLoss()) == "fl"
    assert str(noiseproof.NormalizedFocalLoss(gamma=2)) == "nfl(gamma=2)"
    assert str(noiseproof.parse("normalize(ce + mae)")) == "normalize(ce + mae)"
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), noiseproof.FocalLoss())
    assert "FocalLoss(gamma=0.5)" in repr(model)


def test_equal_losses_in_one_model_are_both_moved():
    """Equal by value, but nn.Module must not take one for the other."""
    pair = torch.nn.ModuleList(
        [
            noiseproof.parse("nce", weight=torch.ones(5)),
            noiseproof.parse("nce", weight=torch.ones(5)),
        ]
    )
    assert pair[0] == pair[1]
    pair.double()
    assert [loss.weight.dtype for loss in pair] == [torch.float64] * 2
    assert len(list(pair.modules())) == 3


def test_registry_says_what_there_is():
    entries = noiseproof.losses.registry()
    paper = ("ce", "fl", "gce", "mae", "rce", "sce", "nce", "nfl", "ngce", "nmae", "nrce")
    assert tuple(entries)[:11] == paper
    ours = {k: e for k, e in entries.items() if isinstance(e.loss, type)}
    for name, entry in ours.items():  # not the function that a docstring registers
        assert entry.name == name
        assert entry.formula
        assert entry.reference
        assert entry.summary
        matrix_only = issubclass(entry.loss, MatrixLoss)
        assert entry.kind in (("undetermined",) if matrix_only else ("active", "passive"))
        assert isinstance(entry.make(), Loss)
        for hyper in entry.hyperparameters.values():
            assert hyper.name in hyper.range
    assert entries["gce"].hyperparameters["rho"].range == "0 < rho <= 1"
    assert entries["fl"].hyperparameters["gamma"].range == "gamma >= 0"
    assert entries["rce"].hyperparameters["A"].range == "A < 0"


def test_names_are_taken_once():
    from noiseproof.losses import SeparableLoss

    with pytest.raises(ValueError, match="'ce' is taken by noiseproof"):

        class Another(SeparableLoss, name="ce", formula="", reference=""):
            pass


def test_a_declared_loss_can_be_subclassed():
    class Doubled(noiseproof.CrossEntropy):
        def forward(self, logits, target, *, sample_weight=None):
            return 2 * super().forward(logits, target, sample_weight=sample_weight)

    assert Doubled()(LOGITS, TARGET) == 2 * noiseproof.CrossEntropy()(LOGITS, TARGET)


def test_a_declaration_needs_a_name():
    from noiseproof.losses import SeparableLoss

    class Nameless(SeparableLoss):
        pass

    with pytest.raises(TypeError, match=r"give the loss a name: class Nameless\("):
        Nameless()
