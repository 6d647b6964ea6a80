"""The numbers in a loss by name."""

from __future__ import annotations

import pytest

from noiseproof import UsageError, syntax


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ce", {}),
        ("gce", {"rho": 0.7}),
        ("RCE + 10*normalize(ce)", {"nce": 10, "rce": 1, "A": -4}),
        ("logit_clip(nce + rce, tau=2)", {"nce": 1, "rce": 1, "A": -4, "tau": 2}),
        ("nfl + 0.1*fl", {"fl": 0.1, "fl__gamma": 0.5, "nfl": 1, "nfl__gamma": 0.5}),
        ("fl(gamma=1) + fl(gamma=2)", {}),  # nothing tells one from the other
    ],
)
def test_names(text, expected):
    assert syntax.parameters(text) == expected
    assert syntax.with_parameters(text, expected) == syntax.short(
        syntax.read(syntax.with_parameters(text, {}))
    )


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("gce", {"rho": 0.3}, "gce(rho=0.3)"),
        ("gce(rho=0.3)", {"rho": 0.7}, "gce"),
        ("rce + nce", {"rce": 0.1, "A": -2}, "nce + 0.1*rce(A=-2)"),
        ("rce + nce", {"alpha": 10, "beta": 2}, "10*nce + 2*rce"),  # active first
        ("rce + nce", {"rce__A": -2}, "nce + rce(A=-2)"),
        ("sce", {"alpha": 1}, "sce(alpha=1)"),
        ("nce + sce", {"alpha": 2}, "nce + sce(alpha=2)"),  # its own comes before the weight
        ("logit_clip(nce + rce)", {"tau": 2, "rce": 3}, "logit_clip(nce + 3*rce, tau=2)"),
    ],
)
def test_other_numbers(text, values, expected):
    assert syntax.with_parameters(text, values) == expected


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("gce", {"rh": 1}, r"'gce' has no parameter 'rh' \(did you mean 'rho'\?\); it has rho"),
        ("ce", {"alpha": 1}, "it has no numbers"),
        ("gce", {"alpha": 1}, "it has rho"),
        ("gce", {"rho": 3}, "rho = 3 is out of range, 0 < rho <= 1"),
        ("gce", {"rho": "0.7"}, "rho must be a number; it was '0.7'"),
        ("gce", {"rho": True}, "must be a number"),
        ("nce + rce", {"nce": float("nan")}, "nan"),
    ],
)
def test_refused(text, values, message):
    with pytest.raises(UsageError, match=message):
        syntax.with_parameters(text, values)
