"""A loss looks the same everywhere, and no two losses look alike."""

from __future__ import annotations

import pytest

from noiseproof.report import _charts, _compile, figures, study
from noiseproof.report._names import noise_name, styles
from noiseproof.results import METHODS

from .subjects import reading, record, whole


def test_no_two_methods_look_alike():
    found = styles((name, name) for name in METHODS)
    assert len({(s.light, s.dash) for s in found.values()}) == len(METHODS)
    assert len({(s.dark, s.dash) for s in found.values()}) == len(METHODS)


def test_labels_of_one_method_share_its_colour_but_not_its_dash():
    found = styles([("NCE+RCE", "NCE+RCE"), ("NCE+RCE (authors)", "NCE+RCE"), ("x", "x")])
    first, second, other = found.values()
    assert first.light == second.light != other.light
    assert first.dash != second.dash


def test_a_loss_keeps_its_look_whatever_it_stands_beside():
    alone = study(reading(record())).styles["CE"]
    assert study(reading(*whole())).styles["CE"] == alone


@pytest.mark.parametrize("kind", ["epochs", "rates", "drops", "pairs", "grid"])
@pytest.mark.parametrize("theme", list(_charts.THEMES))
def test_every_chart_is_valid_vega_lite(kind, theme):
    altair = pytest.importorskip("altair")
    spec = _compile.chart(kind, study(reading(*whole())).styles, theme)
    altair.LayerChart.from_dict({**spec, "data": {"name": "rows"}})  # raises where it is not


def test_every_figure_can_be_drawn_without_a_browser():
    found = study(reading(*whole()))
    drawn = figures(found)
    one_of_each = {figure.kind: figure for figure in drawn}.values()
    for figure in one_of_each:
        svg = _compile.picture(figure, found.styles, "svg").decode()
        assert figure.panels[0].title in svg
        assert svg == _compile.picture(figure, found.styles, "svg").decode()


def test_names_of_noise():
    assert noise_name("symmetric", 0.45) == "symmetric 0.45"
    assert noise_name("cifar100n", 0.0) == "CIFAR-100N"
    assert noise_name("cifar10n-random1", 0.0) == "CIFAR-10N random1"
