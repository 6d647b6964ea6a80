"""How sure a difference is, where two losses answer the same held-out samples."""

from __future__ import annotations

import numpy as np
import pytest

from noiseproof.results import HeldOut
from noiseproof.tools._paired import paired_difference, scores


def answers(correct: list[bool] | np.ndarray, index: list[int] | None = None) -> HeldOut:
    right = [int(value) for value in correct]
    return HeldOut(index or list(range(len(right))), [1] * len(right), right)


def pair(n: int, ours_alone: int, theirs_alone: int) -> tuple[HeldOut, HeldOut]:
    """Of n samples so many that one alone has right; both have the others right."""
    ours = [i >= theirs_alone for i in range(n)]
    theirs = [not theirs_alone <= i < theirs_alone + ours_alone for i in range(n)]
    return answers(ours), answers(theirs)


@pytest.mark.parametrize(
    ("ours_alone", "theirs_alone", "told_apart"),
    [(0, 0, False), (6, 5, False), (4, 0, False), (20, 4, True), (4, 20, False), (40, 30, False)],
)
def test_only_samples_that_one_alone_has_right_count(ours_alone, theirs_alone, told_apart):
    ours, theirs = pair(200, ours_alone, theirs_alone)
    found = paired_difference({0: ours}, {0: theirs})
    assert found.points == pytest.approx((ours_alone - theirs_alone) / 2)
    assert found.told_apart == told_apart
    assert found.told_apart == (found.points > found.margin)


def test_mcnemars_standard_error():
    n, b, c = 500, 30, 12
    ours, theirs = pair(n, b, c)
    found = paired_difference({0: ours}, {0: theirs})
    error = np.sqrt((b + c - (b - c) ** 2 / n) / (n - 1) / n)
    assert found.margin == pytest.approx(100 * (1.95996 * error + 1 / n), rel=1e-4)


def test_it_is_surer_than_two_accuracies_apart():
    both_wrong = [False] * 80  # as where 40 % of the labels are wrong
    ours, theirs = (answers([*map(bool, a.predicted), *both_wrong]) for a in pair(120, 14, 2))
    found = paired_difference({0: ours}, {0: theirs})
    unpaired = 196 * np.sqrt(sum(p * (1 - p) / 200 for p in (118 / 200, 106 / 200)))
    assert found.told_apart
    assert found.points < unpaired


def test_a_sample_that_several_seeds_hold_out_counts_as_one():
    ours, theirs = pair(200, 14, 6)
    once = paired_difference({0: ours}, {0: theirs})
    thrice = paired_difference(dict.fromkeys(range(3), ours), dict.fromkeys(range(3), theirs))
    assert thrice.points == pytest.approx(once.points)
    assert thrice.margin == pytest.approx(once.margin - 100 / 200 + 100 / 600)
    other = {s: answers(ours.predicted, [200 * s + i for i in range(200)]) for s in range(3)}
    others = {s: answers(theirs.predicted, [200 * s + i for i in range(200)]) for s in range(3)}
    assert paired_difference(other, others).margin < 0.75 * once.margin


def test_seeds_that_disagree_widen_it():
    good, bad = pair(200, 30, 0), pair(200, 0, 20)
    ours, theirs = pair(200, 5, 0)
    alike = paired_difference({0: ours, 1: ours}, {0: theirs, 1: theirs})
    apart = paired_difference({0: good[0], 1: bad[0]}, {0: good[1], 1: bad[1]})
    assert apart.points == pytest.approx(alike.points)
    assert apart.margin > 3 * alike.margin
    assert not apart.told_apart


def test_more_comparisons_widen_it():
    ours, theirs = pair(200, 16, 4)
    margins = [paired_difference({0: ours}, {0: theirs}, n).margin for n in (1, 2, 5)]
    assert margins == sorted(margins)
    assert len(set(margins)) == 3


def test_the_mean_recall():
    given, predicted = [0] * 90 + [1] * 10, [0] * 90 + [0] * 5 + [1] * 5
    held_out = HeldOut(list(range(100)), given, predicted)
    assert np.mean(list(scores(held_out).values())) == pytest.approx(0.95)
    assert np.mean(list(scores(held_out, balanced=True).values())) == pytest.approx(0.75)
    all_of_one = HeldOut(list(range(100)), given, [0] * 100)
    found = paired_difference({0: held_out}, {0: all_of_one}, balanced=True)
    assert found.points == pytest.approx(25)
    plain = paired_difference({0: held_out}, {0: all_of_one})
    assert plain.points == pytest.approx(5)
    assert found.margin > plain.margin  # it hangs on ten samples


def test_nothing_shared():
    ours, theirs = pair(10, 2, 1)
    assert paired_difference({}, {}) is None
    assert paired_difference({0: ours}, {1: theirs}) is None


def test_equal_losses_are_told_apart_no_more_often_than_it_says():
    drawn = np.random.default_rng(0)
    told = 0
    for _ in range(600):
        both = drawn.random(180) < 0.5
        ours, theirs = (np.where(both, True, drawn.random(180) < 0.6) for _ in range(2))
        found = paired_difference({0: answers(ours)}, {0: answers(theirs)})
        told += found.told_apart  # one side of the 95 %
    assert told <= 0.025 * 600 + 3 * np.sqrt(600 * 0.025)
