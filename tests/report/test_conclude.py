"""The conclusions follow from the results, whichever loss is best."""

from __future__ import annotations

from noiseproof.catalogue import METHODS
from noiseproof.report import make_report
from noiseproof.report._words import full_names

from .subjects import reading, record, seeds

PERCENT = "\N{NO-BREAK SPACE}%"


def conclude(*records):
    return make_report(reading(*records)).conclusions


def of(rate=0.4, **losses):
    return [record(a, loss=loss.replace("_", "+"), rate=rate) for loss, a in losses.items()]


def test_the_headline_is_what_cross_entropy_loses_in_words():
    head, best, *_ = conclude(*of(ce=0.5, nce=0.7, mae=0.9))
    assert head == (
        "Cross entropy (CE) loses 40.0 points of test accuracy to mean absolute error (MAE): "
        f"50.0{PERCENT} against 90.0{PERCENT} on Digits with symmetric noise of 0.4."
    )
    assert best == (
        f"MAE is best on Digits with symmetric noise of 0.4: 90.0{PERCENT}, 20.0 points before "
        "normalized cross entropy (NCE)."
    )


def test_the_headline_takes_the_condition_where_cross_entropy_loses_most():
    lines = conclude(*of(0.2, ce=0.8, nce=0.9), *of(0.6, ce=0.3, nce=0.8))
    assert lines[0].startswith("Cross entropy (CE) loses up to 50.0 points of test accuracy to ")
    assert "30.0" in lines[0]
    assert lines[0].endswith(" on Digits with symmetric noise of 0.6.")


def test_a_loss_within_the_deviation_is_said():
    lines = conclude(*seeds((0.90, 0.94), loss="nce"), *seeds((0.89, 0.93), loss="ce"))
    assert lines[0].endswith("on Digits with symmetric noise of 0.4, within the deviation over "
                             "the seeds.")  # fmt: skip


def test_active_and_passive_are_explained_where_they_are_used():
    explained = [line for line in conclude(*of(ce=0.5, nce=0.7, nce_rce=0.9)) if "passive" in line]
    assert explained[0].startswith("An active loss only raises the probability of the label; ")
    assert not [line for line in conclude(*of(ce=0.5, nce=0.7)) if "passive" in line]


def test_every_loss_is_spelt_out_where_it_comes_first():
    text = " ".join(conclude(*of(0.2, ce=0.5, nfl_mae=0.8, gce=0.7), *of(0.4, ce=0.5, gce=0.9)))
    for words, name in (("cross entropy", "CE"), ("generalized cross entropy", "GCE")):
        assert text.lower().index(f"{words} ({name.lower()})") < text.index(f"{name} ")
    assert "NFL+MAE (normalized focal loss + mean absolute error)" in text
    for method in METHODS.values():
        assert full_names(method.label), f"{method.label} has no words"


def test_it_says_that_active_passive_losses_win_when_they_do():
    lines = conclude(*of(ce=0.5, nce=0.7, nce_rce=0.9))
    assert lines[1].startswith("NCE+RCE is best on Digits with symmetric noise of 0.4: 90.0")
    assert "20.0 points before NCE" in lines[1]
    assert "The active-passive loss beats plain NCE (+20.0 points)." in lines


def test_it_says_that_plain_nce_wins_when_it_does():
    lines = conclude(*of(ce=0.5, nce=0.9, nce_rce=0.7, nfl_mae=0.8))
    assert lines[1].startswith("NCE is best on Digits")
    assert (
        "No active-passive loss beats plain NCE (-15.0 points on average, from -20.0 to -10.0)."
        in lines
    )


def test_it_says_when_cross_entropy_wins():
    lines = conclude(*of(ce=0.9, nce=0.8, nce_rce=0.7))
    where = "on Digits with symmetric noise of 0.4"
    assert lines[0] == f"Cross entropy (CE) is nowhere behind another loss {where}."
    assert lines[1].startswith("CE is best")
    twice = conclude(*of(0.2, ce=0.9, nce=0.8), *of(0.4, ce=0.9, nce=0.8))
    assert twice[0] == "Cross entropy (CE) is nowhere behind another loss in these results."


def test_over_many_settings_it_counts():
    records = [
        *of(0.2, ce=0.5, nce=0.8, nce_rce=0.9),
        *of(0.4, ce=0.5, nce=0.8, nfl_mae=0.9),
        *of(0.6, ce=0.5, nce=0.8, nfl_mae=0.7),
    ]
    lines = conclude(*records)
    assert lines[1].startswith("An active-passive loss is best in 2 of 3 noisy settings")
    assert any("beat plain NCE in 2 of 3 comparisons" in line for line in lines)
    assert lines[-2].startswith("Best on Digits with symmetric noise: NCE+RCE at 0.2 (90.0")
    assert "NCE at 0.6 (80.0" in lines[-2]


def test_a_loss_that_is_best_everywhere():
    twice = [*of(0.2, ce=0.5, nce=0.8), *of(0.4, ce=0.5, nce=0.7)]
    assert conclude(*twice)[1] == "NCE is best in both noisy settings."
    thrice = [*twice, *of(0.6, ce=0.5, nce=0.6)]
    assert conclude(*thrice)[1] == "NCE is best in all 3 noisy settings."


def test_without_cross_entropy_the_headline_is_the_best_loss():
    assert conclude(*of(nce=0.8, mae=0.7))[0].startswith("Normalized cross entropy (NCE) is best")


def test_a_lead_within_the_deviation_is_a_tie():
    near = conclude(*seeds((0.90, 0.94), loss="nce"), *seeds((0.89, 0.93), loss="mae"))
    far = conclude(*seeds((0.90, 0.901), loss="nce"), *seeds((0.79, 0.80), loss="mae"))
    assert "level with mean absolute error (MAE)" in near[0]
    assert "level" not in far[0]


def test_many_rates_and_data_sets_are_counted_and_not_listed():
    rates = [record(a, loss=x, rate=r / 100) for r in range(1, 41) for x, a in
             (("ce", 0.5), ("nce", 0.8))]  # fmt: skip
    assert conclude(*rates)[-2].endswith("most often NCE, at 40 of 40 rates.")
    datasets = [record(a, loss=x, dataset=f"data-{i:02}") for i in range(40) for x, a in
                (("ce", 0.5), ("nce", 0.8))]  # fmt: skip
    lines = conclude(*datasets)
    assert len(lines) < 12
    assert lines[-2].startswith("The tables also have data-06 with symmetric noise, data-07 with")
    assert lines[-2].endswith("and 28 more.")
    assert "also" not in " ".join(conclude(*datasets[:12]))
    assert conclude(*datasets[:14])[-2] == "The tables also have data-06 with symmetric noise."


def test_what_was_not_run_is_not_concluded_on():
    lines = conclude(*of(ce=0.5, nce_rce=0.9))
    assert any(line.startswith("Plain NCE was not run") for line in lines)
    assert "The active-passive loss beats CE (+40.0 points)." in lines
    assert conclude(*of(ce=0.5)) == [
        "No two losses were run under the same noise, so there is nothing to compare."
    ]
    clean = [record(0.9, noise="none", rate=0.0, loss=loss) for loss in ("ce", "nce")]
    assert "clean labels" in conclude(*clean)[0]
    assert "nothing to conclude" in conclude(record(0.1, error="diverged"))[0]


def test_other_protocols_are_other_baselines():
    lines = conclude(
        record(0.5, loss="nce"),
        record(0.9, loss="nce+rce", protocol="authors", variant="authors"),
    )
    assert not [line for line in lines if "beats" in line]


def test_weights_of_ones_own_are_active_passive_too():
    lines = conclude(*of(ce=0.5, nce=0.7), record(0.9, loss="10*nce+0.1*rce(A=-4)"))
    assert lines[1].startswith("10*NCE+0.1*RCE is best")
    assert any("beats plain NCE" in line for line in lines)


def test_it_says_where_the_best_losses_have_one_seed():
    two = *seeds((0.9, 0.8), loss="ce"), *seeds((0.7, 0.8), loss="nce")
    assert not [line for line in conclude(*two) if "one seed" in line]
    assert conclude(*of(ce=0.5, nce=0.7))[-1] == "With one seed nothing can be said about chance."
    assert conclude(*two, *of(0.6, ce=0.5, nce=0.7))[-1] == (
        "In 1 of the 2 noisy settings the best loss or the next has one seed, so that nothing can "
        "be said about chance."
    )
    assert conclude(*two, record(0.95, loss="mae"))[-1].startswith(
        "In every noisy setting the best"
    )
