"""The conclusions follow from the results, whichever loss is best."""

from __future__ import annotations

from noiseproof.report import make_report

from .subjects import reading, record, seeds


def conclude(*records):
    return make_report(reading(*records)).conclusions


def of(rate=0.4, **losses):
    return [record(a, loss=loss.replace("_", "+"), rate=rate) for loss, a in losses.items()]


def test_it_says_that_active_passive_losses_win_when_they_do():
    head = conclude(*of(ce=0.5, nce=0.7, nce_rce=0.9))[0]
    assert head.startswith("NCE+RCE is best on Digits, symmetric 0.4 noise: 90.0")
    assert "20.0 points before NCE" in head
    assert "beats plain NCE (+20.0 points)" in head


def test_it_says_that_plain_nce_wins_when_it_does():
    head = conclude(*of(ce=0.5, nce=0.9, nce_rce=0.7, nfl_mae=0.8))[0]
    assert head.startswith("NCE is best on Digits")
    assert "no active-passive loss beats plain NCE (-15.0 points on average)" in head


def test_it_says_when_cross_entropy_wins():
    lines = conclude(*of(ce=0.9, nce=0.8, nce_rce=0.7))
    assert lines[0].startswith("CE is best")
    assert "Cross entropy is nowhere behind." in lines


def test_over_many_settings_it_counts():
    records = [
        *of(0.2, ce=0.5, nce=0.8, nce_rce=0.9),
        *of(0.4, ce=0.5, nce=0.8, nfl_mae=0.9),
        *of(0.6, ce=0.5, nce=0.8, nfl_mae=0.7),
    ]
    lines = conclude(*records)
    assert lines[0].startswith("An active-passive loss is best in 2 of 3 noisy settings")
    assert "beat plain NCE in 2 of 3 comparisons" in lines[0]
    assert "0.2: NCE+RCE" in lines[1]
    assert "0.6: NCE (80.0" in lines[1]


def test_a_loss_that_is_best_everywhere():
    twice = [*of(0.2, ce=0.5, nce=0.8), *of(0.4, ce=0.5, nce=0.7)]
    assert conclude(*twice)[0] == "NCE is best in both noisy settings."
    thrice = [*twice, *of(0.6, ce=0.5, nce=0.6)]
    assert conclude(*thrice)[0] == "NCE is best in all 3 noisy settings."


def test_a_lead_within_the_deviation_is_a_tie():
    near = conclude(*seeds((0.90, 0.94), loss="nce"), *seeds((0.89, 0.93), loss="mae"))
    far = conclude(*seeds((0.90, 0.901), loss="nce"), *seeds((0.79, 0.80), loss="mae"))
    assert "level with MAE" in near[0]
    assert "level" not in far[0]


def test_what_was_not_run_is_not_concluded_on():
    assert any("Plain NCE was not run" in line for line in conclude(*of(ce=0.5, nce_rce=0.9)))
    assert conclude(*of(ce=0.5)) == [
        "No two losses were run under the same noise, so there is nothing to compare."
    ]
    clean = [record(0.9, noise="none", rate=0.0, loss=loss) for loss in ("ce", "nce")]
    assert "clean labels" in conclude(*clean)[0]
    assert "nothing to conclude" in conclude(record(0.1, error="diverged"))[0]


def test_other_protocols_are_other_baselines():
    head = conclude(
        record(0.5, loss="nce"),
        record(0.9, loss="nce+rce", protocol="authors", variant="authors"),
    )[0]
    assert "beats" not in head


def test_weights_of_ones_own_are_active_passive_too():
    head = conclude(*of(ce=0.5, nce=0.7), record(0.9, loss="10*nce+0.1*rce(A=-4)"))[0]
    assert head.startswith("10*NCE+0.1*RCE is best")
    assert "beats plain NCE" in head
