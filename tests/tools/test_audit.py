"""The ranking of suspects and what is estimated of the labels."""

from __future__ import annotations

import csv
import io
import subprocess
import sys

import numpy as np
import pytest
import torch

import noiseproof
from noiseproof import noise
from noiseproof.tools import Audit, audit

K, N = 5, 4000


def subject(kind: str = "symmetric", rate: float = 0.3, sharp: float = 4.0):
    """Labels with noise, and the probabilities of a network that is mostly right."""
    drawn = np.random.default_rng(0)
    truth = np.arange(N) % K
    logits = drawn.normal(size=(N, K))
    logits[np.arange(N), truth] += sharp
    p = np.exp(logits)
    p /= p.sum(1, keepdims=True)
    given = getattr(noise, kind)(truth, rate, num_classes=K, seed=0).labels
    return p, given, truth


@pytest.mark.parametrize(("kind", "rate"), [("symmetric", 0.3), ("pairflip", 0.3)])
def test_wrong_labels_are_found_and_counted(kind, rate):
    p, given, truth = subject(kind, rate)
    wrong = given != truth
    found = audit(p, given)
    assert found.rate == pytest.approx(rate, abs=0.06)
    assert wrong[found.ranking[: wrong.sum()]].mean() > 0.85
    assert (found.suggested == truth)[found.index].mean() > 0.8
    real = noise.transition_matrix(truth, given, K)
    assert np.abs(found.transition - real).max() < 0.08


def test_how_labels_are_mistaken_makes_the_ranking_better():
    """Of pairs that are mistaken for each other, the network alone knows less than with T."""
    p, given, truth = subject("pairflip", 0.4, sharp=2.0)
    wrong = given != truth
    by_network = np.argsort(p[np.arange(N), given])
    ours = audit(p, given).ranking
    assert wrong[ours[: wrong.sum()]].mean() > wrong[by_network[: wrong.sum()]].mean() + 0.02


def test_right_labels_are_left_alone():
    p, _, truth = subject(sharp=9.0)
    found = audit(p, truth)
    assert found.rate < 0.01
    assert len(found) < 40


@pytest.mark.parametrize("num_classes", [3, 49, 500])
def test_no_share_of_wrong_labels_is_below_zero(num_classes):
    """Though shares of many classes add up to a little more than 1."""
    labels = np.arange(2 * num_classes) % num_classes
    found = audit(np.eye(num_classes)[labels], labels)
    assert found.rate >= 0
    assert f"{found.rate:.1%}" == "0.0%"
    assert min(share.rate for share in found.by_class()) >= 0


def test_the_matrix_is_what_forward_correction_takes():
    p, given, _ = subject()
    found = audit(p, given)
    assert found.transition.sum(1) == pytest.approx(np.ones(K))
    loss = noiseproof.forward_correction(noiseproof.CrossEntropy(), torch.tensor(found.transition))
    assert loss(torch.randn(4, K), torch.tensor([0, 1, 2, 3])).isfinite()


def test_annotators_are_told_apart():
    p, given, truth = subject(rate=0.0)
    drawn = np.random.default_rng(1)
    who = np.array(["ann", "bob"])[np.arange(N) // K % 2]
    careless = (who == "bob") & (drawn.random(N) < 0.5)
    given = np.where(careless, (truth + 1) % K, given)
    shares = {s.name: s for s in audit(p, given, annotators=who).by_annotator()}
    assert list(shares) == ["bob", "ann"]  # the worst first
    assert shares["bob"].labels == N // 2
    assert shares["bob"].rate == pytest.approx(0.5, abs=0.1)
    assert shares["ann"].rate < 0.1


def test_classes_have_their_share():
    p, _, truth = subject(sharp=6.0)
    given = np.where((truth == 1) & (np.arange(N) % 2 == 0), 0, truth)
    shares = audit(p, given).by_class()
    assert shares[0].labels == 1200
    assert 0.2 < shares[0].rate < 0.4  # a third
    assert max(s.rate for s in shares[1:]) < 0.05


def same(a: Audit, b: Audit) -> bool:
    return bool(np.array_equal(a.ranking, b.ranking) and a.rate == b.rate)


def test_it_takes_what_people_have():
    p, given, _ = subject()
    expected = audit(p, given)
    names = np.array(list("abcde"))
    assert same(audit(torch.tensor(p), torch.tensor(given)), expected)
    assert same(audit(p.tolist(), given.tolist()), expected)
    assert same(audit(p, names[given]), expected)
    assert same(audit(p, names[given].tolist(), classes=list("abcde")), expected)
    assert audit(p, names[given]).suspects(1)[0].given in "abcde"
    pandas = pytest.importorskip("pandas")
    frame, column = pandas.DataFrame(p), pandas.Series(names[given])
    assert same(audit(frame, column), expected)
    assert same(audit(frame, column.astype("category")), expected)
    half = audit(p.astype(np.float16), given)
    assert half.rate == pytest.approx(expected.rate, abs=0.01)


def test_a_class_without_labels_and_one_without_probability():
    p = np.array([[0.9, 0.1, 0.0]] * 6 + [[0.1, 0.9, 0.0]] * 6)
    given = np.array([0] * 6 + [1] * 5 + [0])
    found = audit(p, given)
    assert found.transition[2].tolist() == [0, 0, 1]
    assert found.index.tolist() == [11]
    assert np.isfinite(found.scores).all()


def test_the_order_does_not_matter():
    p, given, _ = subject()
    order = np.random.default_rng(2).permutation(N)
    assert audit(p[order], given[order]).rate == pytest.approx(audit(p, given).rate)


@pytest.mark.parametrize(
    ("p", "labels", "options", "message"),
    [
        ([0.5, 0.5], [0], {}, r"\[N, K\]"),
        ([[2.0, -1.0]], [0], {}, "softmax"),
        ([[3.0, 4.0]], [0], {}, "softmax"),
        ([[float("nan"), 1.0]], [0], {}, "NaN"),
        ([["a", "b"]], [0], {}, "numbers"),
        ([[0.5, 0.5]], [2], {}, "2 classes"),
        ([[0.5, 0.5]], [0, 1], {}, "one for each sample"),
        ([[0.5, 0.5]], ["cat"], {}, "classes="),
        ([[0.5, 0.5]], ["cat"], {"classes": ["dog", "cow"]}, "not among classes"),
        ([[0.5, 0.5]], ["cat"], {"classes": ["cat"]}, "1 classes"),
        ([[0.5, 0.5]], [0], {"names": ["a", "b"]}, "names"),
        ([[0.5, 0.5]], [0], {"annotators": ["a", "b"]}, "annotators"),
    ],
)
def test_mistakes_are_named(p, labels, options, message):
    with pytest.raises(noiseproof.UsageError, match=message):
        audit(p, labels, **options)


def test_csv_and_repr(tmp_path):
    p, given, _ = subject()
    found = audit(p, given, names=[f"=file {i}" for i in range(N)], annotators=["me"] * N)
    text = found.to_csv(tmp_path / "suspects.csv", number=3)
    assert (tmp_path / "suspects.csv").read_text() == text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [int(row["index"]) for row in rows] == found.ranking[:3].tolist()
    assert rows[0]["name"].startswith("'=file")  # no spreadsheet computes it
    assert rows[0]["annotator"] == "me"
    assert len(list(csv.reader(io.StringIO(found.to_csv())))) == len(found) + 1
    assert f"{found.rate:.1%}" in repr(found)
    assert repr(found).count("\n") == 6


@pytest.mark.slow
def test_cleanlab_beside_ours():
    pytest.importorskip("cleanlab")
    p, given, _ = subject()
    found = audit(p, given, cleanlab=True)
    assert np.array_equal(
        np.sort(p[found.cleanlab, given[found.cleanlab]]), p[found.cleanlab, given[found.cleanlab]]
    )
    rows = list(csv.DictReader(io.StringIO(found.to_csv(number=2))))
    first = int(rows[0]["index"])
    assert int(rows[0]["cleanlab_rank"]) == found.cleanlab.tolist().index(first) + 1


def test_cleanlab_may_be_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "cleanlab.rank", None)
    with pytest.raises(noiseproof.MissingExtraError, match=r"noiseproof\[audit\]"):
        audit([[0.5, 0.5], [0.5, 0.5]], [0, 1], cleanlab=True)


def test_it_does_not_wait_for_torch():
    code = (
        "import sys; from noiseproof.tools import audit\n"
        "audit([[0.9, 0.1], [0.2, 0.8]], [0, 1]).to_csv()\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
