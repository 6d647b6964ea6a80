"""A loss has the same style everywhere, and no two losses have the same."""

from __future__ import annotations

from typing import get_args

import pytest

from noiseproof import _vega
from noiseproof.catalogue import METHODS, noise_title
from noiseproof.report import _charts, make_report, make_study, picture
from noiseproof.report._figure import ChartType
from noiseproof.report._styles import assign_styles

from .subjects import reading, record, whole


def test_no_two_methods_have_the_same_style():
    found = assign_styles((m.label, m.label) for m in METHODS.values())
    assert len({(s.light, s.dash) for s in found.values()}) == len(METHODS)
    assert len({(s.dark, s.dash) for s in found.values()}) == len(METHODS)


def test_labels_of_one_method_share_its_colour_but_not_its_dash():
    found = assign_styles([("NCE+RCE", "NCE+RCE"), ("NCE+RCE (authors)", "NCE+RCE"), ("x", "x")])
    first, second, other = found.values()
    assert first.light == second.light != other.light
    assert first.dash != second.dash


def test_a_loss_has_the_same_style_in_every_report():
    alone = make_study(reading(record())).styles["CE"]
    assert make_study(reading(*whole())).styles["CE"] == alone


@pytest.mark.parametrize("chart", get_args(ChartType))
@pytest.mark.parametrize("theme", list(_vega.THEMES))
def test_vega_lite_has_no_complaint_about_a_chart(chart, theme, capfd):
    vl_convert = pytest.importorskip("vl_convert", reason="the extra report is not installed")
    styles = make_study(reading(*whole())).styles
    spec = {**_charts.panel_spec(chart, styles, theme), "data": {"name": "rows"}}
    vl_convert.vegalite_to_vega(spec, config=_charts.config(theme), show_warnings=True)
    assert "".join(capfd.readouterr()) == ""


def test_every_chart_can_be_drawn_without_a_browser():
    report = make_report(reading(*whole()))
    one_of_each = {figure.chart: figure for figure in report.figures}
    assert set(one_of_each) == {"epochs", "rates", "label-dots", "heatmap"}
    for figure in one_of_each.values():
        svg = picture(figure, report.study.styles, "svg").decode()
        assert figure.panels[0].title in svg
        assert svg == picture(figure, report.study.styles, "svg").decode()


def test_names_of_noise():
    assert noise_title("symmetric", 0.45) == "symmetric 0.45"
    assert noise_title("cifar100n", 0.0) == "CIFAR-100N"
    assert noise_title("cifar10n-random1", 0.0) == "CIFAR-10N random1"
